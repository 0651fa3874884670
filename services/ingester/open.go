package ingester

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
)

// Open makes the service of a process: it opens the connections it needs, which the process closes after
// Run has returned.
func Open(ctx context.Context, p *service.Process, cfg Config) (*Service, error) {
	work, err := p.NATS(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := p.NATS(ctx)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(work)
	if err != nil {
		return nil, err
	}
	pool, err := p.Postgres(ctx, pgstore.Configure)
	if err != nil {
		return nil, err
	}
	return New(cfg, Deps{
		JS: js, Requests: requests, Store: pgstore.New(pool), Logger: p.Logger, Ready: p.Health.Ready,
		Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	})
}
