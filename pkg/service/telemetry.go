package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Telemetry is the tracing and the metrics of one process. It is handed to what needs it; nothing
// global is set.
type Telemetry struct {
	// Tracers makes spans that cost nothing when nobody receives them.
	Tracers oteltrace.TracerProvider
	Meters  *metric.MeterProvider
	// Propagator carries W3C trace context and baggage.
	Propagator propagation.TextMapPropagator
	// Registry holds the metrics of Meters, of the Go runtime and of the process.
	Registry *prometheus.Registry

	stopTracing func(context.Context) error
}

// NewTelemetry prepares tracing and metrics of the process name. Spans go to the OTLP/HTTP endpoint of
// the usual OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT) when getenv has one, and nowhere
// otherwise; trace context passes through either way. Further span processors, such as a test's, may
// be given.
func NewTelemetry(ctx context.Context, name string, getenv func(string) string, also ...trace.SpanProcessor) (*Telemetry, error) {
	res := resource.NewSchemaless(attribute.String("service.name", name), attribute.String("service.namespace", "weir"))
	tracers, stopTracing, err := newTracers(ctx, res, getenv, also)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		return nil, fmt.Errorf("open metrics exporter: %w", err)
	}
	return &Telemetry{
		Tracers: tracers, stopTracing: stopTracing,
		Meters: metric.NewMeterProvider(metric.WithResource(res), metric.WithReader(reader)),
		Propagator: propagation.NewCompositeTextMapPropagator(
			propagation.TraceContext{}, propagation.Baggage{}),
		Registry: registry,
	}, nil
}

func newTracers(
	ctx context.Context, res *resource.Resource, getenv func(string) string, also []trace.SpanProcessor,
) (oteltrace.TracerProvider, func(context.Context) error, error) {
	export := getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	if !export && len(also) == 0 {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	opts := []trace.TracerProviderOption{trace.WithResource(res)}
	for _, p := range also {
		opts = append(opts, trace.WithSpanProcessor(p))
	}
	if export {
		exporter, err := otlptracehttp.New(ctx) // reads its settings from the same variables
		if err != nil {
			return nil, nil, fmt.Errorf("open trace exporter: %w", err)
		}
		opts = append(opts, trace.WithBatcher(exporter))
	}
	p := trace.NewTracerProvider(opts...)
	return p, p.Shutdown, nil
}

// Metrics serves the registry in the Prometheus text format.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.Registry, promhttp.HandlerOpts{})
}

// Shutdown sends what is still held and stops. ctx bounds the sending.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if err := errors.Join(t.stopTracing(ctx), t.Meters.Shutdown(ctx)); err != nil {
		return fmt.Errorf("stop telemetry: %w", err)
	}
	return nil
}
