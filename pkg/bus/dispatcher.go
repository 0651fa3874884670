package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of fetching.
const (
	quantum      = 16      // messages of one lane at a time
	quantumBytes = 4 << 20 // of them, or one message
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
	if err := d.lookUpFirst(ctx); err != nil {
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

// firstLookUpMost bounds how long a start waits for a server that does not answer.
const firstLookUpMost = time.Minute

// lookUpFirst is lookUp that outlasts an outage of the server. Each request has its own, shorter time.
func (d *dispatcher) lookUpFirst(ctx context.Context) error {
	until := time.Now().Add(firstLookUpMost)
	for attempt := 1; ; attempt++ {
		err := d.lookUp(ctx)
		if err == nil || missing(err) || time.Now().After(until) {
			return err
		}
		d.s.cfg.Log.Warn("look for consumers", "err", err)
		if sleep(ctx, backoff(attempt, 100*time.Millisecond, laneRestMax)) != nil {
			return err
		}
	}
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
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		d.ask()
		if wait := d.untilWake(); wait > 0 {
			wake.Reset(wait)
		}
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
		case <-d.s.wake:
			d.free += int(d.s.freed.Swap(0))
		case <-wake.C:
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

// untilWake is the time until a resting lane or the gate needs a look, zero when none does.
func (d *dispatcher) untilWake() time.Duration {
	wait := time.Duration(0)
	sooner := func(t time.Duration) {
		if t = max(t, time.Millisecond); wait == 0 || t < wait {
			wait = t
		}
	}
	for _, l := range d.lanes {
		if l.state == laneResting && !d.recovering { // else it rests until that is over
			sooner(time.Until(l.wake))
		}
	}
	if g := d.s.gate.wait(); g > 0 {
		sooner(g)
	}
	return wait
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

// quantumBytes leaves room for the largest message there can be: one that did not fit would stop its lane.
func (d *dispatcher) quantumBytes() int {
	return max(quantumBytes, int(d.s.nc.MaxPayload())+maxDeadHeaderBytes)
}

func (d *dispatcher) fetch(l *lane, n int) {
	l.request++
	reply := d.inbox + "." + strconv.Itoa(l.index) + "." + strconv.FormatUint(l.request, 10)
	if err := d.s.nc.PublishRequest(l.subject, reply, pullRequest{Batch: n, MaxBytes: d.quantumBytes(), NoWait: true}.encode()); err != nil {
		d.onTrouble(l, err)
		return
	}
	l.state, l.reserved, l.got, l.deadline = laneFetching, n, 0, time.Now().Add(fetchTimeout)
	d.free -= n
}
