package bus

import (
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

const scopeName = "github.com/weir-project/weir/pkg/bus"

// Telemetry is where a part of the bus reports to. The zero value reports nothing, but still passes
// W3C trace context on.
type Telemetry struct {
	Log        *slog.Logger
	Tracer     trace.TracerProvider
	Meter      metric.MeterProvider
	Propagator propagation.TextMapPropagator
}

func (t Telemetry) withDefaults() Telemetry {
	if t.Log == nil {
		t.Log = slog.New(slog.DiscardHandler)
	}
	if t.Tracer == nil {
		t.Tracer = tracenoop.NewTracerProvider()
	}
	if t.Meter == nil {
		t.Meter = metricnoop.NewMeterProvider()
	}
	if t.Propagator == nil {
		t.Propagator = w3c{propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})}
	}
	return t
}

func (t Telemetry) tracer() trace.Tracer { return t.Tracer.Tracer(scopeName) }

// silent reports that nobody looks at spans: their attributes need not be put together.
func (t Telemetry) silent() bool {
	_, noop := t.Tracer.(tracenoop.TracerProvider)
	return noop
}
