package rerank

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// metrics of rerank models. Labels: provider, and outcome: ok, a Kind, no_time or cancelled.
type metrics struct {
	time      metric.Float64Histogram
	calls     metric.Int64Counter
	documents metric.Int64Counter
}

func newMetrics(provider metric.MeterProvider) (*metrics, error) {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	meter := provider.Meter("github.com/weir-project/weir/services/retriever")
	m := &metrics{}
	var err, all error
	m.time, err = meter.Float64Histogram("weir.retriever.rerank", metric.WithUnit("s"), metric.WithDescription("time a rerank took, all its calls together"))
	all = errors.Join(all, err)
	m.calls, err = meter.Int64Counter("weir.retriever.rerank.calls", metric.WithUnit("{call}"), metric.WithDescription("calls of rerank servers, second tries among them"))
	all = errors.Join(all, err)
	m.documents, err = meter.Int64Counter("weir.retriever.rerank.documents", metric.WithUnit("{document}"), metric.WithDescription("texts that were scored"))
	if all = errors.Join(all, err); all != nil {
		return nil, fmt.Errorf("rerank metrics: %w", all)
	}
	return m, nil
}

// reranked counts a rerank of so many documents.
func (m *metrics) reranked(ctx context.Context, provider string, documents int, took time.Duration, err error) {
	ctx = context.WithoutCancel(ctx)
	m.time.Record(ctx, took.Seconds(), labels(provider, err))
	if err == nil {
		m.documents.Add(ctx, int64(documents), metric.WithAttributes(attribute.String("provider", provider)))
	}
}

// called counts one HTTP request. One that ended because another of the same rerank failed is cancelled.
func (m *metrics) called(ctx context.Context, provider string, err error) {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		err = context.Canceled
	}
	m.calls.Add(context.WithoutCancel(ctx), 1, labels(provider, err))
}

func labels(provider string, err error) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("provider", provider), attribute.String("outcome", outcome(err)))
}

// outcome is a short, bounded name of an error.
func outcome(err error) string {
	var known *Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &known):
		return strings.ReplaceAll(string(known.Kind), " ", "_")
	case errors.Is(err, ErrNoTime):
		return "no_time"
	case errors.Is(err, context.DeadlineExceeded): // of a call; whose deadline it was the rerank knows
		return "timed_out"
	}
	return "cancelled"
}
