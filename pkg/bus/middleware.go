package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// verdicts answers a message as its handler demands, whatever happens; the router's own Nack could not say why.
func (r *Runner) verdicts(next message.HandlerFunc) message.HandlerFunc {
	return func(w *message.Message) (out []*message.Message, err error) {
		l := leaseOf(w.Context())
		err = errors.New("the handler did not return")
		defer func() { r.sub.end(l, r.stageOf(err)) }()
		out, err = next(w)
		return out, err
	}
}

// stageOf names the stage in a permanent error that does not.
func (r *Runner) stageOf(err error) error {
	if e, ok := messages.AsError(err); ok && e.Stage == "" && classify(err) == classPermanent {
		named := *e
		named.Stage = r.sub.cfg.Stage.Name
		return &named
	}
	return err
}

// crews runs all that follows on a goroutine of the crew.
func (r *Runner) crews(next message.HandlerFunc) message.HandlerFunc {
	return func(w *message.Message) (out []*message.Message, err error) {
		r.crew.run(func() {
			defer func() {
				if p := recover(); p != nil { // not the handler's: see recovers
					err = fmt.Errorf("panic around the handler: %v", p)
				}
			}()
			out, err = next(w)
		})
		return out, err
	}
}

// pauses keeps a message that met an outage, in progress, and runs it again when the gate opens. The
// stage fetches nothing meanwhile. Stopping ends the wait and hands the message back.
func (r *Runner) pauses(next message.HandlerFunc) message.HandlerFunc {
	return func(w *message.Message) ([]*message.Message, error) {
		l, base := leaseOf(w.Context()), w.Context()
		for {
			l.begin()
			w.SetContext(base)
			out, err := next(w)
			if classify(err) != classPause {
				return out, err
			}
			l.idle()
			after, _ := Paused(err)
			wait := r.sub.gate.pause(after)
			r.sub.metrics.add(r.sub.metrics.paused)
			r.sub.log(l).Warn("stage paused by an outage", "wait", wait, "err", err)
			if stop := r.waitGate(base); stop != nil {
				return nil, fmt.Errorf("%w while paused: %s", stop, err.Error())
			}
		}
	}
}

func (r *Runner) waitGate(ctx context.Context) error {
	for {
		wait := r.sub.gate.wait()
		if wait <= 0 {
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-r.sub.stopping:
			t.Stop()
			return ErrStopping
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// timeouts bounds one run. The cause of the context's end outranks what the handler made of it.
func (r *Runner) timeouts(next message.HandlerFunc) message.HandlerFunc {
	return func(w *message.Message) ([]*message.Message, error) {
		ctx, cancel := context.WithTimeoutCause(w.Context(), r.sub.cfg.Stage.Timeout, ErrHandlerTimeout)
		defer cancel()
		w.SetContext(ctx)
		started := time.Now()
		out, err := next(w)
		r.sub.metrics.observe(r.sub.metrics.handlerTime, time.Since(started))
		if err != nil && ctx.Err() != nil {
			return nil, outlived(ctx, err)
		}
		return out, err
	}
}

// outlived returns the error of a run whose context ended: a verdict on the document holds, an outage
// unless stopping, anything else is the stop or the timeout.
func outlived(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch c := classify(err); {
	case c == classPermanent, c == classPause && !errors.Is(cause, ErrStopping):
		return err
	}
	return fmt.Errorf("%w: %s", cause, err.Error())
}

func (r *Runner) traces(next message.HandlerFunc) message.HandlerFunc {
	return func(w *message.Message) ([]*message.Message, error) {
		d, _ := DeliveryOf(w.Context())
		ctx, span := r.sub.cfg.startProcess(w.Context(), r.sub.cfg.Stage.Name, d)
		w.SetContext(ctx)
		out, err := next(w)
		endSpan(span, err)
		return out, err
	}
}

// recovers turns a panic, of the handler or of what worked for it, into the permanent failure of that message. What
// it said goes to the log only: it may hold document text.
func (r *Runner) recovers(next message.HandlerFunc) message.HandlerFunc {
	return func(w *message.Message) (out []*message.Message, err error) {
		err = guard.Call(func() (err error) {
			out, err = next(w)
			return err
		})
		p, ok := guard.Caught(err)
		if !ok {
			return out, err
		}
		if l := leaseOf(w.Context()); l != nil {
			r.sub.log(l).Error("handler panicked", "err", p.Value, "stack", string(p.Stack))
		}
		return nil, messages.Errorf(messages.CodeInternal, "the handler panicked")
	}
}

// routerLog passes the router's messages on at debug level: what matters is logged where a message is
// answered.
type routerLog struct{ log *slog.Logger }

var _ watermill.LoggerAdapter = routerLog{}

func (r routerLog) Error(msg string, err error, f watermill.LogFields) {
	r.with(f).log.Debug(msg, "err", err)
}
func (r routerLog) Info(msg string, f watermill.LogFields)  { r.with(f).log.Debug(msg) }
func (r routerLog) Debug(msg string, f watermill.LogFields) { r.with(f).log.Debug(msg) }
func (r routerLog) Trace(string, watermill.LogFields)       {}

func (r routerLog) With(f watermill.LogFields) watermill.LoggerAdapter { return r.with(f) }

func (r routerLog) with(f watermill.LogFields) routerLog {
	if len(f) == 0 {
		return r
	}
	args := make([]any, 0, 2*len(f))
	for k, v := range f {
		args = append(args, k, v)
	}
	return routerLog{r.log.With(args...)}
}
