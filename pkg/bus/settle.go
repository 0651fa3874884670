package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// settle answers a delivery as err demands.
func (s *Subscriber) settle(l *lease, err error) {
	seq, m := l.delivery.Sequence, s.metrics
	switch classify(err) {
	case classOK:
		s.tries.done(seq)
		s.gate.succeeded()
		m.add(m.acked)
		s.answer(ackReply(s.nc, l.wire.Reply))
	case classStopping:
		m.add(m.handedBack)
		s.log(l).Info("hand message back", "err", err)
		s.answer(nakReply(s.nc, l.wire.Reply, 0))
	case classPause: // only without the runner's middleware, which keeps the message instead
		after, _ := Paused(err)
		m.add(m.paused)
		s.answer(nakReply(s.nc, l.wire.Reply, s.gate.pause(after)))
	case classPermanent:
		s.bury(l, err)
	case classRetry:
		s.failed(l, err)
	}
}

// failed counts a failed try; the last one is dead-lettered.
func (s *Subscriber) failed(l *lease, err error) {
	n := s.tries.failed(l.delivery.Sequence)
	if n < s.cfg.Stage.MaxTries && l.delivery.Delivered < uint64(s.cfg.Stage.MaxTries*DeliveryFactor) {
		s.retry(l, err, n)
		return
	}
	s.bury(l, &messages.Error{
		Code: messages.CodeDeliveriesExhausted, Stage: s.cfg.Stage.Name,
		Message: fmt.Sprintf("gave up after %d tries: %s", n, clip(err.Error(), 500)),
	})
}

func (s *Subscriber) retry(l *lease, err error, n int) {
	delay := backoff(n, s.cfg.Stage.BackoffMin, s.cfg.Stage.BackoffMax)
	s.metrics.add(s.metrics.nacked)
	s.log(l).Warn("message failed, will be tried again", "tries", n, "delay", delay, "err", err)
	s.answer(nakReply(s.nc, l.wire.Reply, delay))
}

// bury publishes the dead letter, and only then gives the message up. The dead-letter stage has
// nowhere to put its own failures: it keeps trying.
func (s *Subscriber) bury(l *lease, err error) {
	if s.cfg.Stage.Name == messages.StageDead {
		s.log(l).Error("dead letter cannot be recorded", "err", err)
		s.metrics.add(s.metrics.nacked)
		s.answer(nakReply(s.nc, l.wire.Reply, s.cfg.Stage.BackoffMax))
		return
	}
	letter := s.deadLetter(l, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), 20*time.Second)
	defer cancel()
	if _, perr := s.publishDead(ctx, l, letter); perr != nil {
		s.metrics.add(s.metrics.deadFailed)
		s.log(l).Error("publish dead letter", "err", perr, "cause", err)
		s.answer(nakReply(s.nc, l.wire.Reply, s.cfg.Stage.BackoffMax))
		return
	}
	s.tries.done(l.delivery.Sequence)
	s.metrics.add(s.metrics.dead)
	s.metrics.add(s.metrics.terminated)
	s.log(l).Warn("message dead-lettered", "subject", letter.Subject, "err", err)
	s.answer(termReply(s.nc, l.wire.Reply, clip(oneLine(letter.Header[messages.HeaderDeadCode]), 100)))
}

// publishDead keeps the message in progress while its dead letter is being stored.
func (s *Subscriber) publishDead(ctx context.Context, l *lease, letter Message) ([]Ack, error) {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(s.progressEvery())
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.answer(progressReply(s.nc, l.wire.Reply))
			case <-stop:
				return
			}
		}
	}()
	return s.dead.publish(ctx, []Message{letter})
}

// Bounds of a dead letter's own headers.
const (
	deadPrefix     = "dlq-"
	maxReasonBytes = 1000
	deadSlack      = 4 << 10
)

// deadLetter describes a given-up message: its headers and body, and why. A body that no longer fits
// is cut, and the header dlq-truncated then tells its size.
func (s *Subscriber) deadLetter(l *lease, err error) Message {
	d := l.delivery
	h := make(Header, len(d.Header)+10)
	for k, v := range d.Header {
		if strings.EqualFold(k, messages.HeaderPassword) { // never stored, whoever sent it where it must not go
			continue
		}
		if strings.HasPrefix(k, deadPrefix) { // only the bus says those
			continue
		}
		h[k] = v
	}
	s.deadHeaders(h, d, err)
	for key, name := range map[string]string{messages.HeaderTenant: d.Tenant, messages.HeaderKB: d.KB} {
		if _, ok := h[key]; ok { // a lying one may be why it is dead
			h[key] = orNone(name)
		}
	}
	body := d.Body
	if room := int(s.nc.MaxPayload()) - headerBytes(h) - deadSlack; len(body) > room {
		h[messages.HeaderDeadTruncated] = strconv.Itoa(len(body))
		body = body[:max(room, 0)]
	}
	return Message{
		Subject: messages.DeadSubject(s.cfg.Stage.Name, orNone(d.Tenant), orNone(d.KB)),
		ID:      fmt.Sprintf("dlq:%s:%d", clip(l.id(), 1000), d.Sequence),
		Header:  h, Body: body,
	}
}

func (s *Subscriber) deadHeaders(h Header, d Delivery, err error) {
	e, ok := messages.AsError(err)
	if !ok {
		e = messages.Errorf(messages.CodeInternal, "%v", err)
	}
	h[messages.HeaderDeadCode] = clip(oneLine(string(e.Code)), 100)
	h[messages.HeaderDeadReason] = clip(oneLine(e.Message), maxReasonBytes)
	if e.Field != "" {
		h[messages.HeaderDeadField] = clip(oneLine(e.Field), 200)
	}
	h[messages.HeaderDeadStage] = s.cfg.Stage.Name
	h[messages.HeaderDeadStream] = d.Stream
	h[messages.HeaderDeadSeq] = strconv.FormatUint(d.Sequence, 10)
	h[messages.HeaderDeadTries] = strconv.FormatUint(d.Delivered, 10)
	h[messages.HeaderDeadSubject] = oneLine(d.Subject)
	if d.ID != "" {
		h[messages.HeaderDeadMsgID] = clip(oneLine(d.ID), 1000)
	}
}

func headerBytes(h Header) int {
	n := 0
	for k, v := range h {
		n += len(k) + len(v) + 4
	}
	return n
}

// orNone is the token of an unknown tenant or knowledge base.
func orNone(name string) string {
	if name == "" || strings.ContainsAny(name, " .*>\t\r\n") || !validValue(name) {
		return messages.TenantScope
	}
	return name
}

// clip cuts s to n bytes at a rune's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// oneLine makes s fit for a header value.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.TrimSpace(s)
}
