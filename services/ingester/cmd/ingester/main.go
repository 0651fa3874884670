// Command ingester takes documents in. See package ingester.
package main

import (
	"context"
	"os"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func main() {
	parseworker.Main()
	cfg := ingester.DefaultConfig()
	os.Exit(service.Main("ingester", &cfg, run))
}

func run(ctx context.Context, p *service.Process, cfg *ingester.Config) error {
	nc, err := p.NATS(ctx)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	pool, err := p.Postgres(ctx, pgstore.Configure)
	if err != nil {
		return err
	}
	svc, err := ingester.New(*cfg, ingester.Deps{
		JS: js, Store: pgstore.New(pool), Logger: p.Logger, Ready: p.Health.Ready,
		Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	})
	if err != nil {
		return err
	}
	return svc.Run(ctx)
}
