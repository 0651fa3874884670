package service

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Connections are those of a service that consumes work: one connection each to consume, to publish and
// for requests, since the server keeps one buffer per connection.
type Connections struct {
	JS                jetstream.JetStream // to consume
	Publish, Requests *nats.Conn
}

// Connect opens the connections of a service that consumes work.
func (p *Process) Connect(ctx context.Context) (Connections, error) {
	var conns [3]*nats.Conn
	for i := range conns {
		nc, err := p.NATS(ctx)
		if err != nil {
			return Connections{}, err
		}
		conns[i] = nc
	}
	js, err := jetstream.New(conns[0])
	return Connections{JS: js, Publish: conns[1], Requests: conns[2]}, err
}

// Service is what Serve runs: Run blocks until its context ends, finishes what it holds and returns nil.
type Service interface {
	Run(ctx context.Context) error
}

// Serve is the work of a process that is one service: open it, then run it.
func Serve[S Service, C any](open func(context.Context, *Process, C) (S, error)) func(context.Context, *Process, *C) error {
	return func(ctx context.Context, p *Process, cfg *C) error {
		svc, err := open(ctx, p, *cfg)
		if err != nil {
			return err
		}
		return svc.Run(ctx)
	}
}
