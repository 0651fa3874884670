package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of fetching.
const (
	quantum      = 4 // messages of one lane at a time
	fetchTimeout = 5 * time.Second
	laneRestMin  = 5 * time.Millisecond
	laneRestMax  = 2 * time.Second
	tickEvery    = 250 * time.Millisecond
)

// dispatcher is the single goroutine that decides which lane free workers ask next. Workers are
// counted in free; each is either free, reserved by a fetch under way (which the server answers at
// once), or running.
type dispatcher struct {
	s     *Subscriber
	ctx   context.Context // of requests; ends with the loop
	stop  context.CancelFunc
	lanes []*lane
	next  int // lane to look at first
	free  int

	inbox  string
	sub    *nats.Subscription
	inMsgs chan *nats.Msg
	bells  chan bell
	found  chan found
	status chan nats.Status
	bg     sync.WaitGroup

	// Requests under way are lost with the connection: link ends with it.
	link       context.Context
	breakLink  context.CancelFunc
	recovering bool
}

// bell is the end of a watch; found the end of a recovery.
type (
	bell struct {
		lane int
		err  error
	}
	found struct{ err error }
)

func newDispatcher(ctx context.Context, s *Subscriber) (*dispatcher, error) {
	st := s.cfg.Stage
	d := &dispatcher{
		s: s, free: s.cfg.Workers, inbox: s.nc.NewInbox(),
		inMsgs: make(chan *nats.Msg, 2*s.cfg.Workers+8*st.Lanes+64),
		bells:  make(chan bell, st.Lanes), found: make(chan found, 1),
	}
	for i := range st.Lanes {
		d.lanes = append(d.lanes, &lane{index: i, durable: st.Durable(i), subject: pullSubject(s.js, st.Stream, st.Durable(i))})
	}
	if err := d.lookUp(ctx); err != nil {
		return nil, err
	}
	var err error
	if d.sub, err = s.nc.ChanSubscribe(d.inbox+".*.*", d.inMsgs); err != nil {
		return nil, fmt.Errorf("subscribe to replies: %w", err)
	}
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.link, d.breakLink = context.WithCancel(d.ctx)
	d.status = s.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING)
	return d, nil
}

// lookUp asks for every consumer and the stream's creation time.
func (d *dispatcher) lookUp(ctx context.Context) error {
	st := d.s.cfg.Stage
	for _, l := range d.lanes {
		c, err := d.s.js.Consumer(ctx, st.Stream, l.durable)
		if err != nil {
			return fmt.Errorf("look up consumer %s of stream %s: %w", l.durable, st.Stream, err)
		}
		d.s.ackWait.Store(int64(c.CachedInfo().Config.AckWait))
	}
	_, err := d.s.created.get(ctx, st.Stream, 0)
	return err
}

// loop runs until the subscriber stops.
func (d *dispatcher) loop() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		d.ask()
		select {
		case <-d.s.stopping:
			d.handBackRest()
			return
		case m := <-d.inMsgs:
			d.onReply(m)
		case b := <-d.bells:
			d.onBell(b)
		case f := <-d.found:
			d.onFound(f)
		case <-d.status:
			d.relink()
		case <-d.s.freed:
			d.free++
		case <-time.After(d.untilWake()):
		case <-tick.C:
			d.expire()
		}
	}
}

// handBackRest gives fetches under way a moment to answer and hands back what they bring.
func (d *dispatcher) handBackRest() {
	d.stop()
	timeout := time.After(time.Second)
	for d.fetching() {
		select {
		case m := <-d.inMsgs:
			d.onReply(m)
		case <-timeout:
			return
		}
	}
}

func (d *dispatcher) fetching() bool {
	for _, l := range d.lanes {
		if l.state == laneFetching {
			return true
		}
	}
	return false
}

// close ends every background request. Messages that still arrive go back after their ack wait.
func (d *dispatcher) close() {
	d.breakLink()
	d.stop()
	d.s.nc.RemoveStatusListener(d.status)
	d.bg.Wait()
	if err := d.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		d.s.cfg.Log.Warn("unsubscribe", "err", err)
	}
}

// untilWake is the time until a resting lane or the gate needs a look.
func (d *dispatcher) untilWake() time.Duration {
	wait := time.Second
	for _, l := range d.lanes {
		if l.state == laneResting {
			wait = min(wait, time.Until(l.wake))
		}
	}
	if g := d.s.gate.wait(); g > 0 {
		wait = min(wait, g)
	}
	return max(wait, time.Millisecond)
}

// ask sends requests for as many messages as there are free workers, lane after lane.
func (d *dispatcher) ask() {
	d.wakeLanes()
	if d.recovering || d.s.gate.wait() > 0 || !d.s.nc.IsConnected() {
		return // a request that waits for a connection would come too late
	}
	for range d.lanes {
		if d.free == 0 {
			return
		}
		l := d.lanes[d.next]
		d.next = (d.next + 1) % len(d.lanes)
		if l.state == laneReady {
			d.fetch(l, d.share())
		}
	}
}

func (d *dispatcher) wakeLanes() {
	now := time.Now()
	for _, l := range d.lanes {
		if l.state != laneResting || d.recovering || now.Before(l.wake) {
			continue
		}
		l.state = laneReady
		if l.quiet {
			l.quiet = false
			d.watch(l)
		}
	}
}

// share is how many messages the next lane may have: an equal part of the free workers.
func (d *dispatcher) share() int {
	ready := 0
	for _, l := range d.lanes {
		if l.state == laneReady {
			ready++
		}
	}
	return min(quantum, max(1, d.free/max(ready, 1)))
}

func (d *dispatcher) fetch(l *lane, n int) {
	l.request++
	reply := d.inbox + "." + strconv.Itoa(l.index) + "." + strconv.FormatUint(l.request, 10)
	if err := d.s.nc.PublishRequest(l.subject, reply, pullRequest{Batch: n, NoWait: true}.encode()); err != nil {
		d.onTrouble(l, err)
		return
	}
	l.state, l.reserved, l.got, l.deadline = laneFetching, n, 0, time.Now().Add(fetchTimeout)
	d.free -= n
}

// onReply takes a message or a status.
func (d *dispatcher) onReply(m *nats.Msg) {
	status, ok := pullStatus(m)
	if !ok {
		d.onMessage(m)
		return
	}
	l, current := d.laneOf(m.Subject)
	if status == nil || !current {
		return
	}
	d.endFetch(l)
	if errors.Is(status, errNoMessages) || errors.Is(status, errExpired) {
		d.onEmpty(l)
		return
	}
	d.onTrouble(l, status)
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
			d.found <- found{d.recover()}
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
