package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// batch is one call of publish.
type batch struct {
	p    *Publisher
	wire []outgoing
	acks []Ack

	todo    []int // not yet stored
	failed  []int // of this round, to be repeated
	lastErr error // of the last repeatable failure
	fatal   error // the first failure that repeating cannot help

	inFlight int         // messages of this round that wait for their answer
	answers  chan answer // of this round, with room for all
	late     *time.Timer // when the oldest in flight has waited too long
}

// outgoing is a message, what it takes of the bytes that may be in flight, and while it is in flight the number
// of its answer and since when it waits.
type outgoing struct {
	*nats.Msg
	weight int64
	asked  uint64
	since  time.Time
}

func (b *batch) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		b.round(ctx)
		if b.fatal != nil {
			b.count(b.p.metrics.failures.Add, len(b.failed)+1)
			return b.fatal
		}
		if len(b.failed) == 0 {
			return nil
		}
		if err := sleep(ctx, backoff(attempt, 50*time.Millisecond, 2*time.Second)); err != nil {
			b.count(b.p.metrics.failures.Add, len(b.failed))
			return fmt.Errorf("publish to %s: %w", b.wire[b.failed[0]].Subject, errors.Join(err, b.lastErr))
		}
		b.count(b.p.metrics.retries.Add, len(b.failed))
		b.todo, b.failed = b.failed, nil
	}
}

// round publishes all of todo and waits for every answer.
func (b *batch) round(ctx context.Context) {
	b.answers, b.late = make(chan answer, len(b.todo)), time.NewTimer(b.p.cfg.AckTimeout)
	defer b.late.Stop()
	for _, i := range b.todo {
		if b.fatal != nil || !b.acquire(ctx, i) {
			b.failed = append(b.failed, i)
			continue
		}
		asked, err := b.p.answers.publish(b.wire[i].Msg, i, b.answers)
		if err != nil {
			b.release(i)
			b.fail(i, err)
			continue
		}
		b.wire[i].asked, b.wire[i].since = asked, time.Now()
		b.inFlight++
	}
	for b.inFlight > 0 {
		b.settleNext(ctx)
	}
}

// acquire takes the room of message i, settling own messages while there is none.
func (b *batch) acquire(ctx context.Context, i int) bool {
	for !b.tryAcquire(i) {
		if b.inFlight > 0 {
			b.settleNext(ctx)
			continue
		}
		// Holding nothing, so waiting for others cannot deadlock.
		if err := b.p.count.Acquire(ctx, 1); err != nil {
			b.lastErr = err
			return false
		}
		if err := b.p.bytes.Acquire(ctx, b.wire[i].weight); err != nil {
			b.p.count.Release(1)
			b.lastErr = err
			return false
		}
		break
	}
	b.p.metrics.inFlight.Add(context.Background(), 1)
	return true
}

func (b *batch) tryAcquire(i int) bool {
	if !b.p.count.TryAcquire(1) {
		return false
	}
	if b.p.bytes.TryAcquire(b.wire[i].weight) {
		return true
	}
	b.p.count.Release(1)
	return false
}

func (b *batch) release(i int) {
	b.p.bytes.Release(b.wire[i].weight)
	b.p.count.Release(1)
	b.p.metrics.inFlight.Add(context.Background(), -1)
}

// settleNext waits for the next answer, or gives up waiting for some.
func (b *batch) settleNext(ctx context.Context) {
	select {
	case a := <-b.answers:
		if b.wire[a.index].asked != 0 { // else it came too late
			b.settle(a)
		}
	case <-b.late.C:
		b.expire(time.Now().Add(-b.p.cfg.AckTimeout), jetstream.ErrAsyncPublishTimeout)
	case <-ctx.Done():
		b.expire(time.Now(), context.DeadlineExceeded)
	}
}

func (b *batch) settle(a answer) {
	b.wire[a.index].asked = 0
	b.inFlight--
	b.release(a.index)
	if a.err != nil {
		b.fail(a.index, a.err)
		return
	}
	b.acks[a.index] = a.ack
	b.count(b.p.metrics.published.Add, 1)
}

// expire gives up on what has waited since before until, and sets the clock for the rest, or for what is sent next.
func (b *batch) expire(until time.Time, err error) {
	for _, i := range b.todo {
		m := b.wire[i]
		switch {
		case m.asked == 0:
		case m.since.After(until):
			b.late.Reset(m.since.Sub(until))
			return
		default:
			b.p.answers.forget(m.asked)
			b.settle(answer{index: i, err: err})
		}
	}
	b.late.Reset(b.p.cfg.AckTimeout)
}

func (b *batch) fail(i int, err error) {
	subject := b.wire[i].Subject
	retry, err := publishError(err)
	if retry && denied(b.p.nc, subject) {
		retry, err = false, fmt.Errorf("%w: publish to %s", ErrPermission, subject)
	}
	if retry {
		b.failed = append(b.failed, i)
		if b.lastErr == nil || !errors.Is(err, context.DeadlineExceeded) {
			b.lastErr = err // the reason, rather than that time is over
		}
		return
	}
	if b.fatal == nil {
		b.fatal = fmt.Errorf("publish to %s: %w", subject, err)
	}
}

func (b *batch) count(add addFunc, n int) { add(context.Background(), int64(n)) }
