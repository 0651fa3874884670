package bus

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/micro"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-project/weir/pkg/messages"
)

// rpcMetrics are the instruments of a service; labels are endpoint names and codes.
type rpcMetrics struct {
	requests metric.Int64Counter
	inFlight metric.Int64UpDownCounter
	time     metric.Float64Histogram
}

func newRPCMetrics(t Telemetry) (*rpcMetrics, error) {
	k := &makers{m: t.Meter.Meter(scopeName)}
	m := &rpcMetrics{
		requests: k.counter("weir.rpc.requests", "{request}", "requests answered, by code"),
		inFlight: k.gauge("weir.rpc.in_flight", "{request}", "requests being handled"),
		time: k.seconds("weir.rpc.time", "time from receipt to reply",
			.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
	}
	return m, k.err
}

func endpointAttr(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("endpoint", name))
}

func (m *rpcMetrics) begin(name string) { m.inFlight.Add(context.Background(), 1, endpointAttr(name)) }

func (m *rpcMetrics) end(name string, code messages.Code, took time.Duration) {
	m.inFlight.Add(context.Background(), -1, endpointAttr(name))
	m.time.Record(context.Background(), took.Seconds(), endpointAttr(name))
	m.refused(name, code)
}

// refused counts one answer.
func (m *rpcMetrics) refused(name string, code messages.Code) {
	m.requests.Add(context.Background(), 1, metric.WithAttributes(
		attribute.String("endpoint", name), attribute.String("code", string(code))))
}

// endpointStats are true figures for discovery: micro's own time only the hand-off.
type endpointStats struct {
	requests, errors, refused atomic.Int64
	nanos                     atomic.Int64
}

func (s *endpointStats) observe(took time.Duration, failed bool) {
	s.requests.Add(1)
	s.nanos.Add(took.Nanoseconds())
	if failed {
		s.errors.Add(1)
	}
}

// EndpointStats is the data of an endpoint in the answer to a STATS request.
type EndpointStats struct {
	Requests  int64   `json:"requests"`
	Errors    int64   `json:"errors"`
	Refused   int64   `json:"refused"`
	AverageMS float64 `json:"average_ms"`
}

func (s *Service) statsOf(e *micro.Endpoint) any {
	s.mu.Lock()
	st := s.stats[e.Name]
	s.mu.Unlock()
	if st == nil {
		return nil
	}
	out := EndpointStats{Requests: st.requests.Load(), Errors: st.errors.Load(), Refused: st.refused.Load()}
	if out.Requests > 0 {
		out.AverageMS = float64(st.nanos.Load()) / float64(out.Requests) / 1e6
	}
	return out
}
