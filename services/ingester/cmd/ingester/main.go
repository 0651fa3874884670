// Command ingester takes documents in. See package ingester.
package main

import (
	"context"
	"os"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func main() {
	parseworker.Main()
	cfg := ingester.DefaultConfig()
	os.Exit(service.Main("ingester", &cfg, func(ctx context.Context, p *service.Process, cfg *ingester.Config) error {
		svc, err := ingester.Open(ctx, p, *cfg)
		if err != nil {
			return err
		}
		return svc.Run(ctx)
	}))
}
