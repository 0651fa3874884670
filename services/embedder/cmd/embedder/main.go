// Command embedder turns chunk texts and queries into vectors. See package embedder.
package main

import (
	"os"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/embedder"
)

func main() {
	cfg := embedder.DefaultConfig()
	os.Exit(service.Main("embedder", &cfg, service.Serve(embedder.Open)))
}
