package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// endpoint is an Endpoint being served.
type endpoint struct {
	Endpoint
	s     *Service
	slots chan struct{} // nil: no limit of its own
	stats *endpointStats
}

// accept runs in the subscription's only goroutine: it takes a slot or refuses, and hands off.
func (e *endpoint) accept(req micro.Request) {
	if !e.s.enter() {
		e.refuse(req, messages.Errorf(messages.CodeUnavailable, "the service is stopping"))
		return
	}
	release, ok := e.take()
	if !ok {
		e.s.running.Done()
		e.refuse(req, messages.Errorf(messages.CodeOverloaded, "too many requests at once"))
		return
	}
	go func() {
		defer e.s.running.Done()
		defer release()
		e.serve(req)
	}()
}

// take acquires a slot of every limit that applies, or none.
func (e *endpoint) take() (release func(), ok bool) {
	var held []chan struct{}
	release = func() {
		for _, c := range held {
			<-c
		}
	}
	limits := []chan struct{}{e.slots, e.s.all}
	if !e.Priority {
		limits = append(limits, e.s.plain)
	}
	for _, c := range limits {
		if c == nil {
			continue
		}
		select {
		case c <- struct{}{}:
			held = append(held, c)
		default:
			release()
			return nil, false
		}
	}
	return release, true
}

func (e *endpoint) refuse(req micro.Request, err *messages.Error) {
	e.s.metrics.refused(e.Name, err.Code)
	e.stats.refused.Add(1)
	id := requestID(nats.Header(req.Headers()))
	e.send(req, messages.Failure(err, id), micro.Headers{
		messages.HeaderRetryAfter: []string{strconv.Itoa(int((e.s.opts.RetryAfter + time.Second - 1) / time.Second))},
	})
}

func (e *endpoint) serve(req micro.Request) {
	started := time.Now()
	e.s.metrics.begin(e.Name)
	r, err := e.request(req, started)
	ctx := e.s.opts.Extract(e.s.ctx, r.Header)
	ctx, span := e.startSpan(ctx, r)
	var data any
	if err == nil {
		data, err = e.call(ctx, r)
	}
	env := e.envelope(r, data, err)
	endSpan(span, env.Err())
	e.send(req, env, nil)
	took := time.Since(started)
	e.stats.observe(took, env.Code != messages.CodeSuccess)
	e.s.metrics.end(e.Name, env.Code, took)
}

func (e *endpoint) startSpan(ctx context.Context, r Request) (context.Context, trace.Span) {
	return e.s.opts.tracer().Start(ctx, "serve "+e.Name,
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("rpc.system", "nats"), attribute.String("rpc.service", e.s.name),
			attribute.String("rpc.method", e.Name), attribute.String("messaging.destination.name", r.Subject),
			attribute.String("weir.request_id", r.ID)))
}

// request decodes the headers. With an error the request still has its subject and id.
func (e *endpoint) request(req micro.Request, at time.Time) (Request, error) {
	wire := nats.Header(req.Headers())
	r := Request{Subject: req.Subject(), Body: req.Data(), Header: Header{}, ID: requestID(wire), Received: at}
	h, _, err := decodeHeader(wire, headerLimitsOf(""))
	if err != nil {
		return r, err
	}
	r.Header = h
	if strings.HasPrefix(r.Subject, messages.SubjectRPC+".") {
		r.Tenant, r.Scope, err = messages.ParseScope(r.Subject)
	}
	return r, err
}

// call runs the handler within the request's deadline.
func (e *endpoint) call(ctx context.Context, r Request) (any, error) {
	budget, err := e.budget(r.Header)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, budget, context.DeadlineExceeded)
	defer cancel()
	var data any
	err = guard.Call(func() (err error) {
		data, err = e.Handler(ctx, r)
		return err
	})
	if err != nil && e.s.opts.Outage != nil && e.s.opts.Outage(err) {
		err = Pause(err, 0)
	}
	if err != nil && ctx.Err() != nil {
		if _, ok := messages.AsError(err); !ok {
			return nil, ended(ctx, err)
		}
	}
	return data, err
}

// ended is the reply of a request whose context ended.
func ended(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrStopping) {
		return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeUnavailable, "the service is stopping"), err)
	}
	return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeDeadlineExceeded, "the request ran out of time"), err)
}

func (e *endpoint) budget(h Header) (time.Duration, error) {
	v, ok := h[messages.HeaderDeadline]
	if !ok {
		return e.s.opts.DefaultDeadline, nil
	}
	ms, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, messages.Invalid(messages.HeaderDeadline, "must be a whole number of milliseconds")
	}
	if ms <= 0 {
		return 0, messages.Errorf(messages.CodeDeadlineExceeded, "the request arrived too late")
	}
	return time.Duration(min(ms, e.s.opts.MaxDeadline.Milliseconds())) * time.Millisecond, nil
}

// envelope is the reply. Causes that are not meant for callers are logged here and nowhere else.
func (e *endpoint) envelope(r Request, data any, err error) messages.Envelope {
	if err != nil {
		return messages.Failure(e.public(r, err), r.ID)
	}
	env := messages.Envelope{Code: messages.CodeSuccess, Message: "succeed", RequestID: r.ID}
	if data == nil {
		return env
	}
	err = guard.Call(func() (err error) {
		env.Data, err = json.Marshal(data)
		return err
	})
	if err != nil {
		return messages.Failure(e.public(r, fmt.Errorf("encode reply: %w", err)), r.ID)
	}
	return env
}

func (e *endpoint) public(r Request, err error) *messages.Error {
	log := e.s.opts.Log.With("endpoint", e.Name, "request_id", r.ID)
	if p, ok := guard.Caught(err); ok { // of the handler, or of what worked for it
		log.Error("endpoint panicked", "err", p.Value, "stack", string(p.Stack))
		return messages.Errorf(messages.CodeInternal, "internal error")
	}
	if _, paused := Paused(err); paused {
		log.Warn("request failed in an outage", "err", err)
		return messages.Errorf(messages.CodeUnavailable, "a part the request needs is unavailable")
	}
	if known, ok := messages.AsError(err); ok {
		log.Debug("request refused", "err", err)
		return known
	}
	log.Error("request failed", "err", err)
	return messages.Errorf(messages.CodeInternal, "internal error")
}

// send encodes and sends a reply; one that does not fit is replaced by RESPONSE_TOO_LARGE.
func (e *endpoint) send(req micro.Request, env messages.Envelope, h micro.Headers) {
	body, err := env.Encode()
	if err != nil {
		e.s.opts.Log.Error("encode envelope", "endpoint", e.Name, "err", err)
		return
	}
	if limit := e.s.nc.MaxPayload() - deadSlack; int64(len(body)) > limit && env.Code == messages.CodeSuccess {
		e.send(req, messages.Failure(messages.Errorf(messages.CodeResponseTooLarge,
			"the reply has %d bytes, at most %d fit", len(body), limit), env.RequestID), h)
		return
	}
	var opts []micro.RespondOpt
	if len(h) > 0 {
		opts = append(opts, micro.WithHeaders(h))
	}
	if req.Reply() == "" {
		return
	}
	if err := req.Respond(body, opts...); err != nil {
		e.s.opts.Log.Warn("send reply", "endpoint", e.Name, "request_id", env.RequestID, "err", err)
	}
}

// requestID is the caller's, when it is usable, else a new one.
func requestID(h nats.Header) string {
	if v := natsCarrier(h).Get(messages.HeaderRequestID); v != "" && len(v) <= 128 && validValue(v) {
		return v
	}
	return nuid.Next()
}
