package bus

import (
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weir-project/weir/pkg/messages"
)

const (
	// watchEvery is how often a running handler is looked at.
	watchEvery = 200 * time.Millisecond
	// cancelGrace is how long a cancelled handler may take to return.
	cancelGrace = 2 * time.Second
)

// progressEvery is a third of the ack wait, so that two signs of life may be lost.
func (s *Subscriber) progressEvery() time.Duration {
	return max(time.Duration(s.ackWait.Load())/3, 10*time.Millisecond)
}

// serve owns one delivery until it is answered and its handler has returned.
func (s *Subscriber) serve(l *lease) {
	defer s.leases.Done()
	defer l.cancel(nil)
	s.received(l)
	if err := s.refuse(l); err != nil {
		s.settle(l, err)
		s.release()
		return
	}
	s.metrics.inFlight.Add(l.ctx, 1, s.metrics.attrs)
	defer s.metrics.inFlight.Add(l.ctx, -1, s.metrics.attrs)
	w := l.watermill()
	l.begin()
	if s.watch(l, w) {
		s.release()
	}
}

// release gives the worker back.
func (s *Subscriber) release() {
	select {
	case s.freed <- struct{}{}:
	case <-s.stopping:
	}
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

// watch hands w out and waits for its answer, signalling progress meanwhile. It reports whether the
// worker is free again; it is not while a handler that ignores its cancelled context still runs and
// the subscriber is stopping.
func (s *Subscriber) watch(l *lease, w *message.Message) bool {
	progress := time.NewTicker(s.progressEvery())
	defer progress.Stop()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	out, stopping, cut := s.out, s.stopping, s.cut
	answered := false
	var giveUp <-chan time.Time
	for {
		select {
		case out <- w:
			out, stopping = nil, nil
		case <-stopping: // nobody took it yet
			s.settle(l, ErrStopping)
			return true
		case <-w.Acked():
			s.finish(l, answered, nil)
			return true
		case <-w.Nacked():
			s.finish(l, answered, l.verdict())
			return true
		case <-progress.C:
			if !answered {
				s.answer(progressReply(s.nc, l.wire.Reply))
			}
		case <-look.C:
			answered = s.lookAt(l, answered)
		case <-cut:
			cut = nil
			l.cancel(ErrStopping)
			giveUp = time.After(cancelGrace)
		case <-giveUp:
			s.finish(l, answered, ErrStopping)
			return false
		}
	}
}

// finish answers unless that was done.
func (s *Subscriber) finish(l *lease, answered bool, err error) {
	if !answered {
		s.settle(l, err)
	}
}

// lookAt cancels a handler whose time is over and, when that does not help, gives its message to
// somebody else. The worker stays taken until the handler returns: that bounds what hung handlers
// hold.
func (s *Subscriber) lookAt(l *lease, answered bool) bool {
	if answered || !l.overdue(0) {
		return answered
	}
	l.cancel(ErrHandlerTimeout)
	if !l.overdue(cancelGrace) {
		return false
	}
	s.metrics.add(s.metrics.stuck)
	s.cfg.Log.Error("handler ignores its deadline", "msg_id", l.id(), "delivery", l.delivery.Delivered)
	s.settle(l, errors.Join(ErrHandlerTimeout, errors.New("the handler still runs")))
	return true
}

// answer logs what could not be sent; the server then delivers the message again.
func (s *Subscriber) answer(err error) {
	if err != nil {
		s.cfg.Log.Warn("answer a delivery", "err", err)
	}
}
