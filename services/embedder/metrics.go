package embedder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-project/weir/pkg/embedding"
)

// metrics of the requests to providers. Labels: lane (interactive, batch), outcome (ok or a kind of
// failure).
type metrics struct {
	waited  metric.Float64Histogram
	request metric.Float64Histogram
	held    metric.Float64Counter
}

func newMetrics(provider metric.MeterProvider) (*metrics, error) {
	meter := provider.Meter("github.com/weir-project/weir/services/embedder")
	m := &metrics{}
	var err, all error
	m.waited, err = meter.Float64Histogram("weir.embedder.wait", metric.WithUnit("s"), metric.WithDescription("time a request waited for its turn"))
	all = errors.Join(all, err)
	m.request, err = meter.Float64Histogram("weir.embedder.request", metric.WithUnit("s"), metric.WithDescription("time the embedding server took"))
	all = errors.Join(all, err)
	m.held, err = meter.Float64Counter("weir.embedder.held", metric.WithUnit("s"), metric.WithDescription("time the server asked everyone to wait"))
	if all = errors.Join(all, err); all != nil {
		return nil, fmt.Errorf("embedder metrics: %w", all)
	}
	return m, nil
}

func (m *metrics) hooks() embedding.Hooks {
	ctx := context.Background()
	return embedding.Hooks{
		Waited: func(lane embedding.Lane, d time.Duration) {
			m.waited.Record(ctx, d.Seconds(), metric.WithAttributes(attribute.String("lane", lane.String())))
		},
		Done: func(lane embedding.Lane, d time.Duration, err error) {
			m.request.Record(ctx, d.Seconds(), metric.WithAttributes(
				attribute.String("lane", lane.String()), attribute.String("outcome", outcome(err))))
		},
		Held: func(d time.Duration) { m.held.Add(ctx, d.Seconds()) },
	}
}

// outcome is a short, bounded name of an error.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, k := range []struct {
		kind error
		name string
	}{
		{embedding.ErrUnavailable, "unavailable"},
		{embedding.ErrThrottled, "throttled"},
		{embedding.ErrTooLarge, "too_large"},
		{embedding.ErrRejected, "rejected"},
		{embedding.ErrDimension, "dimension"},
		{embedding.ErrUnauthorized, "configuration"},
		{embedding.ErrBadAnswer, "bad_answer"},
	} {
		if errors.Is(err, k.kind) {
			return k.name
		}
	}
	return "cancelled"
}
