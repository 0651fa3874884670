package bus

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/pkg/messages"
)

const traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestOneTraceThroughStagesAndRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	exp := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exp))
	tel := Telemetry{Tracer: provider}
	e.pub = e.publisher(PublisherConfig{Telemetry: tel})
	svc, err := NewService(e.nc, ServiceInfo{Name: "weir-test", Version: "0.1.0"}, ServiceOptions{Telemetry: tel})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = svc.Stop(ctxOf(t)) }()
	if err := svc.AddEndpoint(Endpoint{Name: "embed", Subject: messages.SubjectEmbed, Handler: func(context.Context, Request) (any, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	e.run(SubscriberConfig{Telemetry: tel}, func(_ context.Context, d Delivery) ([]Message, error) {
		return []Message{{Subject: messages.WorkSubject(messages.StageEmbed, "t", "kb"), ID: d.ID}}, nil
	})
	done := make(chan struct{})
	e.run(SubscriberConfig{Stage: messages.StageNamed(messages.StageEmbed), Telemetry: tel}, func(ctx context.Context, _ Delivery) ([]Message, error) {
		defer close(done)
		return nil, Client{NC: e.nc, Telemetry: tel}.Call(ctx, messages.SubjectEmbed, nil, nil, nil)
	})
	_, err = e.pub.PublishAck(ctxOf(t), Message{
		Subject: messages.WorkSubject(messages.StageParse, "t", "kb"), ID: "m", Header: Header{messages.HeaderTraceParent: traceParent},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	want := map[string]trace.SpanKind{
		"send weir.work.parse": trace.SpanKindProducer, "process parse": trace.SpanKindConsumer,
		"send weir.work.embed": trace.SpanKindProducer, "process embed": trace.SpanKindConsumer,
		"call embed": trace.SpanKindClient, "serve embed": trace.SpanKindServer,
	}
	eventually(t, "all spans", func() bool { return len(exp.GetSpans()) >= len(want) })
	for _, s := range exp.GetSpans() {
		if s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("span %s is in trace %s", s.Name, s.SpanContext.TraceID())
		}
		if kind, ok := want[s.Name]; !ok || kind != s.SpanKind {
			t.Errorf("span %s of kind %v", s.Name, s.SpanKind)
		}
		if s.SpanKind == trace.SpanKindConsumer && len(s.Links) != 1 {
			t.Errorf("span %s has %d links", s.Name, len(s.Links))
		}
		delete(want, s.Name)
	}
	if len(want) != 0 {
		t.Errorf("missing spans %v", want)
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	reader := sdkmetric.NewManualReader()
	tel := Telemetry{Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}
	e.pub = e.publisher(PublisherConfig{Telemetry: tel})
	e.publish("t", "kb", "m", 3)
	var failed atomic.Bool
	e.run(SubscriberConfig{Telemetry: tel, Workers: 1}, func(_ context.Context, d Delivery) ([]Message, error) {
		switch {
		case d.ID == "m-0" && !failed.Swap(true):
			return nil, errors.New("once")
		case d.ID == "m-1":
			return nil, messages.Errorf(messages.CodeNoText, "no")
		}
		return nil, nil
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	var data metricdata.ResourceMetrics
	if err := reader.Collect(ctxOf(t), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				got[m.Name] += p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				got[m.Name] += int64(p.Count)
			}
		}
	}
	for name, want := range map[string]int64{
		"weir.bus.delivered": 4, "weir.bus.redelivered": 1, "weir.bus.acked": 2, "weir.bus.nacked": 1,
		"weir.bus.dead_letters": 1, "weir.bus.terminated": 1, "weir.bus.queue_wait": 3, "weir.bus.handler_time": 4,
		"weir.bus.in_flight": 0, "weir.bus.published": 4,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
}
