package bus

import (
	"context"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

// natsCarrier carries trace context in wire headers. Keys are kept as they are: NATS headers are
// case-sensitive, and the usual HTTP carrier would change them.
type natsCarrier nats.Header

var _ propagation.TextMapCarrier = natsCarrier{}

func (c natsCarrier) Get(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c natsCarrier) Set(key, value string) { c[key] = []string{value} }
func (c natsCarrier) Keys() []string        { return slices.Collect(maps.Keys(c)) }

// Inject returns a copy of h with the trace context of ctx; what h has already wins.
func (t Telemetry) Inject(ctx context.Context, h Header) Header {
	carrier := propagation.MapCarrier{}
	t.withDefaults().Propagator.Inject(ctx, carrier)
	out := make(Header, len(h)+len(carrier))
	maps.Copy(out, carrier)
	maps.Copy(out, h)
	return out
}

// Extract returns ctx with the trace context in h, if any.
func (t Telemetry) Extract(ctx context.Context, h Header) context.Context {
	return t.withDefaults().Propagator.Extract(ctx, propagation.MapCarrier(h))
}
