package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go/jetstream"
)

// Handler does the work of one stage on one message. Returned messages are stored before the message
// is acknowledged. Errors are classed as in the package comment. It must be idempotent, and end soon
// after ctx does.
type Handler func(ctx context.Context, d Delivery) ([]Message, error)

// Runner runs a stage: a Watermill router over a [Subscriber], with tracing, metrics, pausing and
// publishing around the handler.
type Runner struct {
	sub     *Subscriber
	pub     *Publisher
	handler Handler
	router  *message.Router
	crew    crew
}

// NewRunner returns a runner of cfg.Stage that fetches on the connection of js and publishes through
// pub. It starts nothing. Both stay the caller's, who closes them after Run returned.
func NewRunner(js jetstream.JetStream, pub *Publisher, handler Handler, cfg SubscriberConfig) (*Runner, error) {
	if handler == nil {
		return nil, errors.New("create runner: a handler is required")
	}
	sub, err := NewSubscriber(js, pub, cfg)
	if err != nil {
		return nil, fmt.Errorf("create runner: %w", err)
	}
	sub.runner = true
	logger := routerLog{sub.cfg.Log}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: sub.cfg.DrainTimeout + 2*cancelGrace + 30*time.Second}, logger)
	if err != nil {
		return nil, fmt.Errorf("create runner of %s: %w", sub.cfg.Stage.Name, err)
	}
	r := &Runner{sub: sub, pub: pub, handler: handler, router: router}
	name := sub.cfg.Stage.Name
	router.AddConsumerHandler(name, name, sub, r.handle)
	router.AddMiddleware(r.crews, r.verdicts, r.pauses, r.timeouts, r.traces, r.recovers)
	return r, nil
}

// Run serves the stage until ctx is done, then drains. It returns nil on a clean stop, or why the
// stage cannot be served or ended by itself: [ErrConsumerMissing]. Call it once.
func (r *Runner) Run(ctx context.Context) error {
	defer r.crew.close()
	if err := r.sub.prepare(ctx); err != nil { // in the router, it would leave a goroutine of that behind
		if ctx.Err() != nil {
			return nil // stopped before it began
		}
		return err
	}
	err := r.router.Run(ctx)
	return errors.Join(err, r.sub.Close(), r.sub.Err())
}

// Running is closed once the stage is being served: Run may still fail before that.
func (r *Runner) Running() <-chan struct{} { return r.router.Running() }

// handle is the innermost part: the stage's handler, then its messages.
func (r *Runner) handle(w *message.Message) error {
	d, ok := DeliveryOf(w.Context())
	if !ok {
		return errors.New("message without a delivery")
	}
	out, err := r.handler(w.Context(), d)
	switch cfg := r.sub.cfg; {
	case err == nil:
	case cfg.Done != nil && cfg.Done(err):
		return nil
	case cfg.Outage != nil && cfg.Outage(err):
		return Pause(err, 0)
	default:
		return err
	}
	if _, err := r.pub.publish(w.Context(), out); err != nil {
		return fmt.Errorf("publish results: %w", err)
	}
	return nil
}
