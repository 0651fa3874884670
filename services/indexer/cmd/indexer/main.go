// Command indexer makes documents searchable. See package indexer.
package main

import (
	"os"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/indexer"
)

func main() {
	cfg := indexer.DefaultConfig()
	os.Exit(service.Main("indexer", &cfg, service.Serve(indexer.Open)))
}
