// Command indexer makes documents searchable. See package indexer.
package main

import (
	"context"
	"os"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/indexer"
)

func main() {
	cfg := indexer.DefaultConfig()
	os.Exit(service.Main("indexer", &cfg, func(ctx context.Context, p *service.Process, cfg *indexer.Config) error {
		svc, err := indexer.Open(ctx, p, *cfg)
		if err != nil {
			return err
		}
		return svc.Run(ctx)
	}))
}
