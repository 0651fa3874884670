package bus

import (
	"errors"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weir-project/weir/pkg/messages"
)

// take owns one delivery until it is answered and its handler has returned: see end. A [Runner] takes messages
// at once and answers them itself; for anybody else a goroutine waits for both.
func (s *Subscriber) take(l *lease) {
	if !s.runner {
		l.given = make(chan struct{})
	}
	s.received(l)
	s.hold(l)
	if err := s.refuse(l); err != nil {
		go s.end(l, err)
		return
	}
	l.begin()
	w := l.watermill()
	if s.runner {
		s.handOut(l, w)
		return
	}
	go func() {
		if s.handOut(l, w) {
			s.await(l, w)
		}
	}()
}

func (s *Subscriber) received(l *lease) {
	s.metrics.add(s.metrics.delivered)
	if l.delivery.Delivered > 1 {
		s.metrics.add(s.metrics.redelivered)
		return
	}
	s.metrics.observe(s.metrics.queueWait, time.Since(l.delivery.StoredAt))
}

// refuse returns why a message must not reach its handler.
func (s *Subscriber) refuse(l *lease) error {
	if l.headErr != nil {
		return l.headErr
	}
	if limit := s.cfg.Stage.MaxTries * DeliveryFactor; l.delivery.Delivered > uint64(limit) {
		return messages.Errorf(messages.CodeDeliveriesExhausted, "delivered %d times without an answer", l.delivery.Delivered-1)
	}
	return nil
}

// handOut reports whether somebody took w before the subscriber was stopped.
func (s *Subscriber) handOut(l *lease, w *message.Message) bool {
	select {
	case s.out <- w:
		return true
	case <-s.stopping:
		s.end(l, ErrStopping)
		return false
	}
}

func (s *Subscriber) await(l *lease, w *message.Message) {
	select {
	case <-w.Acked():
		s.end(l, nil)
	case <-w.Nacked():
		s.end(l, l.verdict())
	case <-l.given:
	}
}

// end answers l, unless that was done, and gives its worker back. Its handler has returned.
func (s *Subscriber) end(l *lease, err error) {
	if l.claim() {
		s.settle(l, err)
	}
	s.drop(l)
}

// answer logs what could not be sent; the server then delivers the message again.
func (s *Subscriber) answer(err error) {
	if err != nil {
		s.cfg.Log.Warn("answer a delivery", "err", err)
	}
}

// hold adds l to the deliveries that are kept in progress.
func (s *Subscriber) hold(l *lease) {
	s.leases.Add(1)
	s.metrics.inFlight.Add(l.ctx, 1, s.metrics.attrs)
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	s.held[l] = struct{}{}
}

// drop is done with l, once.
func (s *Subscriber) drop(l *lease) {
	s.heldMu.Lock()
	_, held := s.held[l]
	delete(s.held, l)
	s.heldMu.Unlock()
	if !held {
		return
	}
	l.cancel(nil)
	if l.given != nil {
		close(l.given)
	}
	s.metrics.inFlight.Add(l.ctx, -1, s.metrics.attrs)
	s.release()
	s.leases.Done()
}

// release gives a worker back.
func (s *Subscriber) release() {
	s.freed.Add(1)
	select {
	case s.wake <- struct{}{}:
	default: // the dispatcher will look already
	}
}

// inHand returns the deliveries held now.
func (s *Subscriber) inHand() []*lease {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	out := make([]*lease, 0, len(s.held))
	for l := range s.held {
		out = append(out, l)
	}
	return out
}

const (
	// watchEvery is how often the deliveries in hand are looked at.
	watchEvery = 200 * time.Millisecond
	// cancelGrace is how long a cancelled handler may take to return.
	cancelGrace = 2 * time.Second
)

// progressEvery is a third of the ack wait, so that two signs of life may be lost.
func (s *Subscriber) progressEvery() time.Duration {
	return max(time.Duration(s.ackWait.Load())/3, 10*time.Millisecond)
}

func (s *Subscriber) lookEvery() time.Duration { return min(watchEvery, s.progressEvery()) }

// watch looks after the deliveries in hand until none is left of a stopped subscriber: signs of life, handlers
// whose time is over, and the end of the drain time.
func (s *Subscriber) watch(over <-chan struct{}) {
	var late sync.WaitGroup
	defer late.Wait()
	look := time.NewTimer(s.lookEvery())
	defer look.Stop()
	cut := s.cut
	var giveUp <-chan time.Time
	for {
		select {
		case <-look.C:
			for _, l := range s.inHand() {
				s.lookAt(l, &late)
			}
			look.Reset(s.lookEvery())
		case <-cut:
			cut, giveUp = nil, time.After(cancelGrace)
			for _, l := range s.inHand() {
				l.cancel(ErrStopping)
			}
		case <-giveUp: // what ignores that keeps its goroutine, but not the subscriber
			for _, l := range s.inHand() {
				s.end(l, ErrStopping)
			}
		case <-over:
			return
		}
	}
}

// lookAt signals progress when it is due. It cancels a handler whose time is over, which a [Runner] does itself, run by
// run, and, when that does not help, gives its message to somebody else. The worker stays taken until the handler
// returns: that bounds what hung handlers hold.
func (s *Subscriber) lookAt(l *lease, late *sync.WaitGroup) {
	if l.progressDue(s.progressEvery() - s.lookEvery()) {
		s.answer(progressReply(s.nc, l.wire.Reply))
	}
	if !l.overdue(0) {
		return
	}
	if !s.runner {
		l.cancel(ErrHandlerTimeout)
	}
	if !l.overdue(cancelGrace) || !l.claim() {
		return
	}
	l.cancel(ErrHandlerTimeout)
	s.metrics.add(s.metrics.stuck)
	s.cfg.Log.Error("handler ignores its deadline", "msg_id", l.id(), "delivery", l.delivery.Delivered)
	late.Go(func() { // the last try is published as a dead letter first
		s.settle(l, errors.Join(ErrHandlerTimeout, errors.New("the handler still runs")))
	})
}
