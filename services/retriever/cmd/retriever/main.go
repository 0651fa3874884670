// Command retriever answers queries. See package retriever.
package main

import (
	"context"
	"os"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/retriever"
)

func main() {
	cfg := retriever.DefaultConfig()
	os.Exit(service.Main("retriever", &cfg, run))
}

func run(ctx context.Context, p *service.Process, cfg *retriever.Config) error {
	pool, err := p.Postgres(ctx, pgstore.Configure)
	if err != nil {
		return err
	}
	nc, err := p.NATS(ctx)
	if err != nil {
		return err
	}
	svc, err := retriever.New(*cfg, retriever.Deps{
		NC: nc, Store: pgstore.New(pool), Logger: p.Logger, Ready: p.Health.Ready,
		Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	})
	if err != nil {
		return err
	}
	return svc.Run(ctx)
}
