package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// awaitConsumers waits until every consumer is there again, asking OnMissing to help. Only the time in which
// the server itself says that something is missing counts towards the grace: an election or a lost
// connection may last.
func (d *dispatcher) awaitConsumers() error {
	var missingSince time.Time
	for attempt := 1; ; attempt++ {
		err := d.lookUpOnce()
		if err == nil || d.ctx.Err() != nil {
			return nil
		}
		if !missing(err) {
			missingSince = time.Time{}
		} else {
			if missingSince.IsZero() {
				missingSince = time.Now()
			}
			if time.Since(missingSince) > d.s.cfg.MissingGrace {
				return fmt.Errorf("%w: %w", ErrConsumerMissing, err)
			}
			d.bringBack()
		}
		d.s.cfg.Log.Warn("look for consumers", "err", err)
		if sleep(d.ctx, backoff(attempt, 100*time.Millisecond, laneRestMax)) != nil {
			return nil
		}
	}
}

func (d *dispatcher) lookUpOnce() error {
	ctx, cancel := context.WithTimeout(d.ctx, 5*time.Second)
	defer cancel()
	return d.lookUp(ctx)
}

func (d *dispatcher) bringBack() {
	if d.s.cfg.OnMissing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
	defer cancel()
	if err := d.s.cfg.OnMissing(ctx); err != nil {
		d.s.cfg.Log.Error("bring consumers back", "err", err)
	}
}

func missing(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// start gives m to a worker. It returns false when m went back instead.
func (d *dispatcher) start(l *lane, m *nats.Msg, meta *nats.MsgMetadata) bool {
	s := d.s
	select {
	case <-s.stopping:
		s.metrics.add(s.metrics.handedBack)
		s.answer(nakReply(s.nc, m.Reply, 0))
		return false
	default:
	}
	created, err := d.createdOf(l, meta)
	if err != nil {
		s.cfg.Log.Warn("hand message back", "err", err)
		s.answer(nakReply(s.nc, m.Reply, time.Second))
		return false
	}
	s.take(newLease(d.ctx, s, m, meta, created))
	return true
}

// createdOf returns the creation time of the message's stream. Sequences that run backwards betray a
// stream or consumer that was made anew behind our back: then the server is asked first, because a
// stale time would make a new message look like an old one.
func (d *dispatcher) createdOf(l *lane, meta *nats.MsgMetadata) (time.Time, error) {
	maxAge := infoMaxAge
	if meta.Sequence.Consumer <= l.lastConsumer || meta.NumDelivered == 1 && meta.Sequence.Stream <= l.lastStream {
		maxAge, l.lastStream = 0, 0
	}
	l.lastConsumer = meta.Sequence.Consumer
	if meta.NumDelivered == 1 {
		l.lastStream = max(l.lastStream, meta.Sequence.Stream)
	}
	if known, ok := d.s.created.fresh(d.s.cfg.Stage.Stream, maxAge); ok {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, 2*time.Second)
	defer cancel()
	created, err := d.s.created.get(ctx, d.s.cfg.Stage.Stream, maxAge)
	if known, ok := d.s.created.known(d.s.cfg.Stage.Stream); err != nil && ok && maxAge > 0 {
		return known, nil // nothing speaks against it
	}
	return created, err
}
