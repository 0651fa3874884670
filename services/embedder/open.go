package embedder

import (
	"context"

	"github.com/weir-project/weir/pkg/service"
)

// Open makes the service of a process: it opens the connections it needs, which the process closes after
// Run has returned.
func Open(ctx context.Context, p *service.Process, cfg Config) (*Service, error) {
	conns, err := p.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return New(cfg, Deps{
		JS: conns.JS, Publish: conns.Publish, Requests: conns.Requests, Logger: p.Logger,
		Ready: p.Health.Ready, Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	})
}
