// Command retriever answers queries. See package retriever.
package main

import (
	"os"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/retriever"
)

func main() {
	cfg := retriever.DefaultConfig()
	os.Exit(service.Main("retriever", &cfg, service.Serve(retriever.Open)))
}
