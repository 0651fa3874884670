package retriever

import (
	"context"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
)

// Open makes the service of a process: it opens the connections it needs, which the process closes after
// Run has returned.
func Open(ctx context.Context, p *service.Process, cfg Config) (*Service, error) {
	pool, err := p.PostgresFor(ctx, cfg.conns(), pgstore.Configure)
	if err != nil {
		return nil, err
	}
	nc, err := p.NATS(ctx)
	if err != nil {
		return nil, err
	}
	return New(cfg, Deps{
		NC: nc, Store: pgstore.New(pool), Logger: p.Logger, Ready: p.Health.Ready,
		Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	})
}
