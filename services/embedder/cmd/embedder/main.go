// Command embedder turns chunk texts and queries into vectors. See package embedder.
package main

import (
	"context"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/embedder"
)

func main() {
	cfg := embedder.DefaultConfig()
	os.Exit(service.Main("embedder", &cfg, run))
}

func run(ctx context.Context, p *service.Process, cfg *embedder.Config) error {
	var conns [3]*nats.Conn // consuming, publishing, requests: one buffer of the server each
	for i := range conns {
		nc, err := p.NATS(ctx)
		if err != nil {
			return err
		}
		conns[i] = nc
	}
	js, err := jetstream.New(conns[0])
	if err != nil {
		return err
	}
	svc, err := embedder.New(*cfg, embedder.Deps{
		JS: js, Publish: conns[1], Requests: conns[2], Logger: p.Logger, Ready: p.Health.Ready,
		Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	})
	if err != nil {
		return err
	}
	return svc.Run(ctx)
}
