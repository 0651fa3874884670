package bus

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// onReply takes a message or a status.
func (d *dispatcher) onReply(m *nats.Msg) {
	isStatus, err := pullStatus(m)
	if !isStatus {
		d.onMessage(m)
		return
	}
	l, current := d.laneOf(m.Subject)
	if err == nil || !current {
		return
	}
	d.endFetch(l)
	if errors.Is(err, errRang) && l.got > 0 {
		return // the rest is too large for one fetch: it comes with the next
	}
	if errors.Is(err, errNoMessages) || errors.Is(err, errExpired) {
		d.onEmpty(l)
		return
	}
	d.onTrouble(l, err)
}

// laneOf finds the lane whose present fetch a status answers.
func (d *dispatcher) laneOf(subject string) (l *lane, current bool) {
	index, request, _ := strings.Cut(strings.TrimPrefix(subject, d.inbox+"."), ".")
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(d.lanes) {
		return nil, false
	}
	l = d.lanes[i]
	return l, l.state == laneFetching && request == strconv.FormatUint(l.request, 10)
}

// onMessage takes a message, which bears its consumer's name but not its request. One that comes after
// its fetch was given up is taken if there is a free worker: the server counts it as delivered.
func (d *dispatcher) onMessage(m *nats.Msg) {
	meta, err := m.Metadata()
	i := slices.IndexFunc(d.lanes, func(l *lane) bool { return err == nil && l.durable == meta.Consumer })
	if i < 0 {
		d.s.cfg.Log.Error("message of no lane", "subject", m.Subject, "err", err)
		return
	}
	l := d.lanes[i]
	current := l.state == laneFetching && l.reserved > 0
	switch {
	case current:
		l.reserved--
		l.got++
		l.failures, l.vain = 0, 0
	case d.free > 0:
		d.free--
	default:
		d.s.answer(nakReply(d.s.nc, m.Reply, 0))
		return
	}
	if !d.start(l, m, meta) {
		d.free++
	}
	if current && l.reserved == 0 {
		l.state = laneReady
	}
}

// endFetch frees the workers kept for messages that did not come.
func (d *dispatcher) endFetch(l *lane) {
	d.free += l.reserved
	l.reserved, l.state = 0, laneReady
}

// onEmpty watches the lane. A lane that rang but had nothing (another process took it) is watched
// again only after a growing moment.
func (d *dispatcher) onEmpty(l *lane) {
	l.failures = 0
	l.vain = min(l.vain+1, 10)
	if l.got == 0 && l.vain > 2 {
		l.quiet = true
		l.rest(backoff(l.vain-2, laneRestMin, 100*time.Millisecond))
		return
	}
	d.watch(l)
}

func (d *dispatcher) watch(l *lane) {
	l.state = laneWatched
	d.bg.Add(1)
	link := d.link
	go func() {
		defer d.bg.Done()
		d.bells <- bell{l.index, ring(link, d.s.nc, l.subject, d.s.cfg.WatchWait)}
	}()
}

func (d *dispatcher) onBell(b bell) {
	l := d.lanes[b.lane]
	if l.state != laneWatched {
		return
	}
	switch {
	case b.err == nil, errors.Is(b.err, context.Canceled):
		l.state = laneReady
	case errors.Is(b.err, errExpired):
		l.failures, l.vain = 0, 0
		d.watch(l)
	default:
		d.onTrouble(l, b.err)
	}
}

// relink drops what was asked over a connection that is no more, instead of waiting for its answers.
func (d *dispatcher) relink() {
	d.breakLink()
	d.link, d.breakLink = context.WithCancel(d.ctx)
	for _, l := range d.lanes {
		if l.state == laneFetching {
			d.endFetch(l)
		}
	}
}

// expire ends fetches without an answer: their server is gone or cannot deliver now.
func (d *dispatcher) expire() {
	now := time.Now()
	for _, l := range d.lanes {
		if l.state == laneFetching && now.After(l.deadline) {
			d.endFetch(l)
			d.onTrouble(l, errors.New("no answer to a request for messages"))
		}
	}
}

// onTrouble rests the lane and, when its consumer may be gone, looks for it.
func (d *dispatcher) onTrouble(l *lane, err error) {
	d.s.metrics.add(d.s.metrics.fetchErrors)
	l.failures++
	l.rest(backoff(l.failures, 100*time.Millisecond, laneRestMax))
	d.s.cfg.Log.Warn("fetch", "consumer", l.durable, "err", err)
	if errors.Is(err, errGone) && !d.recovering {
		d.recovering = true
		d.bg.Add(1)
		go func() {
			defer d.bg.Done()
			d.found <- found{d.awaitConsumers()}
		}()
	}
}

func (d *dispatcher) onFound(f found) {
	d.recovering = false
	if f.err != nil {
		d.s.setErr(f.err)
		d.s.cfg.Log.Error("consumer is missing", "err", f.err)
		d.s.stop()
		return
	}
	for _, l := range d.lanes {
		l.lastConsumer, l.lastStream = 0, 0
	}
}
