package bus

import (
	"context"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"

	"github.com/weir-project/weir/pkg/messages"
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

// w3c passes W3C trace context and baggage on. Most messages bear neither: a look is all they cost.
type w3c struct{ propagation.TextMapPropagator }

func (p w3c) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	if carrier.Get(messages.HeaderTraceParent) == "" && carrier.Get(messages.HeaderBaggage) == "" {
		return ctx
	}
	return p.TextMapPropagator.Extract(ctx, carrier)
}

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
