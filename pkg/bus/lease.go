package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/messages"
)

// lease is one delivery from its receipt to its answer.
type lease struct {
	s        *Subscriber
	wire     *nats.Msg
	delivery Delivery
	headErr  error // why the message cannot be handled at all

	ctx    context.Context // of the handler
	cancel context.CancelCauseFunc

	given chan struct{} // nil, or closed when the subscriber is done with it

	mu       sync.Mutex
	lastSign time.Time // of life that the server has
	answered bool
	deadline time.Time // of the present run, zero while none runs
	err      error     // verdict of the handler
}

type leaseKey struct{}

func leaseOf(ctx context.Context) *lease {
	l, _ := ctx.Value(leaseKey{}).(*lease)
	return l
}

// newLease describes m. It never fails: what is wrong with a message is kept for its dead letter.
func newLease(ctx context.Context, s *Subscriber, m *nats.Msg, meta *nats.MsgMetadata, created time.Time) *lease {
	l := &lease{s: s, wire: m, lastSign: time.Now()}
	ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.ctx = context.WithValue(ctx, leaseKey{}, l)
	l.delivery = Delivery{
		Subject: m.Subject, Body: m.Data, Header: Header{},
		Stream: meta.Stream, StreamCreated: created, Sequence: meta.Sequence.Stream,
		StoredAt: meta.Timestamp, Delivered: meta.NumDelivered,
	}
	h, id, err := decodeHeader(m.Header, headerLimitsOf(s.cfg.Stage.Name))
	if err != nil {
		l.headErr = err
		l.delivery.Header = Header{}
		l.delivery.ID = natsCarrier(m.Header).Get(messages.HeaderMsgID)
	} else {
		l.delivery.Header, l.delivery.ID = h, id
	}
	l.delivery.Tenant, l.delivery.KB, err = messages.ParseScope(m.Subject)
	if err == nil {
		err = checkScope(l.delivery.Header, l.delivery.Tenant, l.delivery.KB)
	}
	if l.headErr == nil {
		l.headErr = err
	}
	return l
}

// id names the message in logs and dead letters even when its publisher gave it no id.
func (l *lease) id() string {
	if l.delivery.ID != "" && validValue(l.delivery.ID) {
		return l.delivery.ID
	}
	return fmt.Sprintf("%s-%d", l.delivery.Stream, l.delivery.Sequence)
}

func (l *lease) watermill() *message.Message {
	w := message.NewMessageWithContext(l.ctx, l.id(), l.delivery.Body)
	if l.s.runner { // whose middleware leaves it alone
		w.Metadata = message.Metadata(l.delivery.Header)
		return w
	}
	for k, v := range l.delivery.Header {
		w.Metadata[k] = v
	}
	return w
}

// begin starts a run of the handler: its time counts from now.
func (l *lease) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = time.Now().Add(l.s.cfg.Stage.Timeout)
}

// idle ends the run without an answer, as while paused.
func (l *lease) idle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = time.Time{}
}

// claim reports whether the caller is to answer: only the first is.
func (l *lease) claim() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.answered
	l.answered = true
	return first
}

// progressDue reports that the last sign of life is that old, and takes one as given.
func (l *lease) progressDue(age time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.answered || now.Sub(l.lastSign) < age {
		return false
	}
	l.lastSign = now
	return true
}

// overdue reports that the time of the present run, and grace, are over and no answer was given.
func (l *lease) overdue(grace time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.answered && !l.deadline.IsZero() && time.Now().After(l.deadline.Add(grace))
}

func (l *lease) setVerdict(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *lease) verdict() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return errors.New("not acknowledged")
	}
	return l.err
}

// Fail says why the message of ctx will be Nacked; the error's class decides what happens to it, as
// in the package comment. A Nack without it is one failed try.
func Fail(ctx context.Context, err error) {
	if l := leaseOf(ctx); l != nil {
		l.setVerdict(err)
	}
}

// DeliveryOf returns the delivery behind a Watermill message's context, and whether there is one.
func DeliveryOf(ctx context.Context) (Delivery, bool) {
	l := leaseOf(ctx)
	if l == nil {
		return Delivery{}, false
	}
	return l.delivery, true
}

// log returns the logger of one delivery.
func (s *Subscriber) log(l *lease) *slog.Logger {
	return s.cfg.Log.With("msg_id", clip(l.id(), 300), "delivery", l.delivery.Delivered,
		"tenant", l.delivery.Tenant, "kb", l.delivery.KB)
}
