package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// tracers gives every service a provider of its own name over one exporter.
func tracers(t testing.TB, spans *tracetest.InMemoryExporter) func(string) trace.TracerProvider {
	return func(service string) trace.TracerProvider {
		p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithResource(
			resource.NewSchemaless(attribute.String("service.name", service))))
		t.Cleanup(func() {
			if err := p.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return p
	}
}

const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceParent = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// oneTrace publishes and retrieves under one trace and looks for every service in it.
func oneTrace(spans *tracetest.InMemoryExporter) func(*system) {
	return func(s *system) {
		s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
		ev := s.watch("docs")
		body, err := messages.Encode(doc(1))
		if err != nil {
			s.t.Fatal(err)
		}
		s.publishRaw("docs", "traced", nats.Header{messages.HeaderTraceParent: []string{traceParent}}, body)
		ev.ready("traced")
		err = s.client().Call(s.t.Context(), messages.RPCSubject(s.tenant, "docs", messages.OpRetrieve),
			bus.Header{messages.HeaderTraceParent: traceParent},
			messages.RetrieveRequest{Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "a query that no other test makes"}}, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		want := []string{"call embed", "process embed", "process index", "process intake", "process parse", "search", "serve embed", "serve retrieve"}
		testkit.Eventually(s.t, func() error {
			services, names := inTrace(spans)
			for _, name := range want {
				if !names[name] {
					return fmt.Errorf("no span %q under the trace, only %v", name, slices.Sorted(maps.Keys(names)))
				}
			}
			if len(services) != 4 {
				return fmt.Errorf("spans of %v, want four services", services)
			}
			return parents(spans)
		})
	}
}

// inTrace are the services and names of the spans under the trace.
func inTrace(spans *tracetest.InMemoryExporter) (services, names map[string]bool) {
	services, names = map[string]bool{}, map[string]bool{}
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID().String() != traceID {
			continue
		}
		name, _ := span.Resource.Set().Value("service.name")
		services[name.AsString()], names[span.Name] = true, true
	}
	return services, names
}

// parents checks that every span of the trace hangs on another one of it, or on the caller's.
func parents(spans *tracetest.InMemoryExporter) error {
	known := map[trace.SpanID]bool{}
	for _, span := range spans.GetSpans() {
		known[span.SpanContext.SpanID()] = true
	}
	var problems []error
	for _, span := range spans.GetSpans() {
		parent := span.Parent.SpanID()
		if span.SpanContext.TraceID().String() == traceID && !known[parent] && parent.String() != "00f067aa0ba902b7" {
			problems = append(problems, fmt.Errorf("span %q hangs on %s, which is not there", span.Name, parent))
		}
	}
	return errors.Join(problems...)
}
