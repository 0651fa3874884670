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
)

// Telemetry is the tracing and the metrics of one process. It is handed to what needs it; nothing
// global is set.
type Telemetry struct {
	Tracers *trace.TracerProvider
	Meters  *metric.MeterProvider
	// Propagator carries W3C trace context and baggage.
	Propagator propagation.TextMapPropagator
	// Registry holds the metrics of Meters, of the Go runtime and of the process.
	Registry *prometheus.Registry
}

// NewTelemetry prepares tracing and metrics of the process name. Spans go to the OTLP/HTTP endpoint of
// the usual OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT) when getenv has one, and nowhere
// otherwise; trace context passes through either way. Further span processors, such as a test's, may
// be given.
func NewTelemetry(ctx context.Context, name string, getenv func(string) string, also ...trace.SpanProcessor) (*Telemetry, error) {
	res := resource.NewSchemaless(attribute.String("service.name", name), attribute.String("service.namespace", "weir"))
	tracing := []trace.TracerProviderOption{trace.WithResource(res)}
	for _, p := range also {
		tracing = append(tracing, trace.WithSpanProcessor(p))
	}
	if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" {
		exporter, err := otlptracehttp.New(ctx) // reads its settings from the same variables
		if err != nil {
			return nil, fmt.Errorf("open trace exporter: %w", err)
		}
		tracing = append(tracing, trace.WithBatcher(exporter))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		return nil, fmt.Errorf("open metrics exporter: %w", err)
	}
	return &Telemetry{
		Tracers: trace.NewTracerProvider(tracing...),
		Meters:  metric.NewMeterProvider(metric.WithResource(res), metric.WithReader(reader)),
		Propagator: propagation.NewCompositeTextMapPropagator(
			propagation.TraceContext{}, propagation.Baggage{}),
		Registry: registry,
	}, nil
}

// Metrics serves the registry in the Prometheus text format.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.Registry, promhttp.HandlerOpts{})
}

// Shutdown sends what is still held and stops. ctx bounds the sending.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if err := errors.Join(t.Tracers.Shutdown(ctx), t.Meters.Shutdown(ctx)); err != nil {
		return fmt.Errorf("stop telemetry: %w", err)
	}
	return nil
}
