package service

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// Lent is what a process owns and lends to a service that consumes work. JS is required, the rest has defaults.
type Lent struct {
	// JS consumes work; its connection must stay open until Run of the service has returned.
	JS jetstream.JetStream
	// Publish and Requests are connections of their own for results and for requests, since the server keeps one
	// buffer per connection; nil uses the one of JS.
	Publish, Requests *nats.Conn
	Logger            *slog.Logger
	Tracer            trace.TracerProvider
	Meter             metric.MeterProvider
	// Ready is called once, when work and requests are served.
	Ready func()
}

// WithDefaults returns l with what is missing, but for JS and Ready.
func (l Lent) WithDefaults() Lent {
	if l.Publish == nil {
		l.Publish = l.JS.Conn()
	}
	if l.Requests == nil {
		l.Requests = l.JS.Conn()
	}
	if l.Logger == nil {
		l.Logger = slog.New(slog.DiscardHandler)
	}
	if l.Tracer == nil {
		l.Tracer = tracenoop.NewTracerProvider()
	}
	if l.Meter == nil {
		l.Meter = metricnoop.NewMeterProvider()
	}
	return l
}

// Lend opens the connections of a service that consumes work, which the process closes after Run has returned.
func (p *Process) Lend(ctx context.Context) (Lent, error) {
	var conns [3]*nats.Conn
	for i := range conns {
		nc, err := p.NATS(ctx)
		if err != nil {
			return Lent{}, err
		}
		conns[i] = nc
	}
	js, err := jetstream.New(conns[0])
	return Lent{
		JS: js, Publish: conns[1], Requests: conns[2], Logger: p.Logger, Ready: p.Health.Ready,
		Tracer: p.Telemetry.Tracers, Meter: p.Telemetry.Meters,
	}, err
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
