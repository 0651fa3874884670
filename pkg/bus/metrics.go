package bus

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// stageMetrics are the instruments of one stage. Their only label is the stage's name.
type stageMetrics struct {
	attrs metric.MeasurementOption

	delivered, redelivered, acked, nacked, terminated, handedBack metric.Int64Counter
	dead, deadFailed, paused, fetchErrors, stuck                  metric.Int64Counter
	inFlight                                                      metric.Int64UpDownCounter
	queueWait, handlerTime                                        metric.Float64Histogram
}

// makers collects the first error of several instruments.
type makers struct {
	m   metric.Meter
	err error
}

func (k *makers) keep(name string, err error) {
	if err != nil && k.err == nil {
		k.err = fmt.Errorf("instrument %s: %w", name, err)
	}
}

func (k *makers) counter(name, unit, what string) metric.Int64Counter {
	c, err := k.m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	k.keep(name, err)
	return c
}

func (k *makers) gauge(name, unit, what string) metric.Int64UpDownCounter {
	c, err := k.m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	k.keep(name, err)
	return c
}

func (k *makers) seconds(name, what string, bounds ...float64) metric.Float64Histogram {
	h, err := k.m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(bounds...))
	k.keep(name, err)
	return h
}

func newStageMetrics(t Telemetry, stage string) (*stageMetrics, error) {
	k := &makers{m: t.Meter.Meter(scopeName)}
	m := &stageMetrics{
		attrs:       metric.WithAttributes(attribute.String("stage", stage)),
		delivered:   k.counter("weir.bus.delivered", "{message}", "messages received"),
		redelivered: k.counter("weir.bus.redelivered", "{message}", "messages received again"),
		acked:       k.counter("weir.bus.acked", "{message}", "messages done"),
		nacked:      k.counter("weir.bus.nacked", "{message}", "failed tries"),
		terminated:  k.counter("weir.bus.terminated", "{message}", "messages given up"),
		handedBack:  k.counter("weir.bus.handed_back", "{message}", "messages handed back unfinished while stopping"),
		dead:        k.counter("weir.bus.dead_letters", "{message}", "dead letters published"),
		deadFailed:  k.counter("weir.bus.dead_letter_failures", "{message}", "dead letters that could not be published"),
		paused:      k.counter("weir.bus.pauses", "{pause}", "runs that ended in an outage"),
		fetchErrors: k.counter("weir.bus.fetch_errors", "{error}", "failed requests for messages"),
		stuck:       k.counter("weir.bus.stuck_handlers", "{message}", "handlers that ignored their deadline"),
		inFlight:    k.gauge("weir.bus.in_flight", "{message}", "messages being handled"),
		queueWait: k.seconds("weir.bus.queue_wait", "time from storing to the first delivery",
			.005, .01, .05, .1, .5, 1, 5, 10, 60, 300, 1800, 7200),
		handlerTime: k.seconds("weir.bus.handler_time", "time of one handler run",
			.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300),
	}
	return m, k.err
}

func (m *stageMetrics) add(c metric.Int64Counter) { c.Add(context.Background(), 1, m.attrs) }

func (m *stageMetrics) observe(h metric.Float64Histogram, d time.Duration) {
	h.Record(context.Background(), d.Seconds(), m.attrs)
}

// publishMetrics are the instruments of a publisher.
type publishMetrics struct {
	published, retries, failures metric.Int64Counter
	inFlight                     metric.Int64UpDownCounter
}

func newPublishMetrics(t Telemetry) (*publishMetrics, error) {
	k := &makers{m: t.Meter.Meter(scopeName)}
	m := &publishMetrics{
		published: k.counter("weir.bus.published", "{message}", "messages stored"),
		retries:   k.counter("weir.bus.publish_retries", "{message}", "publishes repeated under the same id"),
		failures:  k.counter("weir.bus.publish_failures", "{message}", "publishes given up"),
		inFlight:  k.gauge("weir.bus.publish_in_flight", "{message}", "messages waiting for their acknowledgement"),
	}
	return m, k.err
}

// addFunc is the Add method of a counter.
type addFunc = func(ctx context.Context, n int64, opts ...metric.AddOption)
