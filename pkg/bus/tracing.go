package bus

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// destination is the bounded part of a subject: its family, never a tenant.
func destination(subject string) string {
	t := strings.SplitN(subject, ".", 4)
	return strings.Join(t[:min(len(t), 3)], ".")
}

func messagingAttrs(operation, subject string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "nats"),
		attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.destination.name", subject),
		attribute.String("messaging.destination.template", destination(subject)),
	}
}

// startPublish opens the producer span of a batch.
func (t Telemetry) startPublish(ctx context.Context, msgs []Message) (context.Context, trace.Span) {
	first := msgs[0]
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = t.Extract(ctx, first.Header)
	}
	if t.silent() {
		return ctx, tracenoop.Span{}
	}
	return t.tracer().Start(ctx, "send "+destination(first.Subject),
		trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(messagingAttrs("send", first.Subject)...),
		trace.WithAttributes(
			attribute.Int("messaging.batch.message_count", len(msgs)),
			attribute.String("messaging.message.id", first.ID)))
}

// startProcess opens the consumer span of a delivery under its producer's trace. A redelivery is
// linked to it besides, so that tries of one message can be told apart.
func (t Telemetry) startProcess(ctx context.Context, stage string, d Delivery) (context.Context, trace.Span) {
	ctx = t.Extract(ctx, d.Header)
	if t.silent() {
		return ctx, tracenoop.Span{}
	}
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(messagingAttrs("process", d.Subject)...),
		trace.WithAttributes(
			attribute.String("messaging.consumer.group.name", stage),
			attribute.String("messaging.message.id", d.ID),
			attribute.Int("messaging.message.body.size", len(d.Body)),
			attribute.Int64("messaging.nats.delivery", int64(d.Delivered))),
	}
	if producer := trace.SpanContextFromContext(ctx); producer.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: producer}))
	}
	return t.tracer().Start(ctx, "process "+stage, opts...)
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, errorType(err))
		span.SetAttributes(attribute.String("error.type", errorType(err)))
	}
	span.End()
}
