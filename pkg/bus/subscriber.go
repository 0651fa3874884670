package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// SubscriberConfig are the settings of a subscriber. Stage is required, the rest has defaults.
type SubscriberConfig struct {
	Stage messages.Stage
	// Workers is how many messages are handled at once; zero is 4. It is also the most that a dying
	// process leaves to be delivered again.
	Workers int
	// WatchWait is how long one watch of an empty lane lasts; zero is 3 s. A watch dies with the
	// leader of its consumer, so this bounds the gap after an election.
	WatchWait time.Duration
	// DrainTimeout is how long Close lets running handlers work before it cancels them; zero is 20 s.
	DrainTimeout time.Duration
	// MissingGrace is how long a removed stream or consumer may take to come back before the
	// subscriber ends with ErrConsumerMissing; zero is 30 s.
	MissingGrace time.Duration
	// OnMissing, if set, is called to bring a removed stream or consumer back, such as a closure over
	// Provision. It is called again, with a growing delay, while it fails.
	OnMissing func(context.Context) error
	// Outage, if set, tells which errors of a [Runner]'s handler mean that something every message needs
	// is away, such as the database: they are treated as by [Pause]. Done tells which mean that there is
	// nothing left to do for the message: it is acknowledged.
	Outage, Done func(error) bool
	Telemetry
}

func (c SubscriberConfig) withDefaults() SubscriberConfig {
	if c.Workers <= 0 {
		c.Workers = 4
	}
	if c.WatchWait <= 0 {
		c.WatchWait = 3 * time.Second
	}
	if c.DrainTimeout <= 0 {
		c.DrainTimeout = 20 * time.Second
	}
	if c.MissingGrace <= 0 {
		c.MissingGrace = 30 * time.Second
	}
	c.Stage.Lanes = max(c.Stage.Lanes, 1)
	c.Stage.MaxTries = max(c.Stage.MaxTries, 1)
	if c.Stage.Timeout <= 0 {
		c.Stage.Timeout = 5 * time.Minute
	}
	if c.Stage.BackoffMin <= 0 {
		c.Stage.BackoffMin = 500 * time.Millisecond
	}
	c.Stage.BackoffMax = max(c.Stage.BackoffMax, c.Stage.BackoffMin)
	c.Telemetry = c.Telemetry.withDefaults()
	c.Log = c.Log.With("stage", c.Stage.Name)
	return c
}

// Subscriber hands out the messages of one stage. Acknowledging a message is what acknowledges it to
// the server; a Nack is a failed try, see [Fail] for saying more. Safe for concurrent use; it serves
// one Subscribe in its life.
type Subscriber struct {
	cfg     SubscriberConfig
	nc      *nats.Conn
	js      jetstream.JetStream
	dead    *Publisher
	metrics *stageMetrics
	gate    *gate
	tries   *tries
	created *creationTimes
	ackWait atomic.Int64 // nanoseconds, as the consumers have it

	mu      sync.Mutex
	started bool
	err     error

	out      chan *message.Message
	stopOnce sync.Once
	stopping chan struct{} // closed: fetch no more
	cut      chan struct{} // closed: the drain time is over
	done     chan struct{} // closed: all is over
	freed    atomic.Int64  // workers that became free and the dispatcher has not counted
	wake     chan struct{} // there are some
	leases   sync.WaitGroup
	runner   bool // a Runner takes every message at once and calls end
	prepared *dispatcher

	heldMu sync.Mutex
	held   map[*lease]struct{}
}

var _ message.Subscriber = (*Subscriber)(nil)

// NewSubscriber returns a subscriber of cfg.Stage on the connection of js. Dead letters go through
// dead. Both stay the caller's.
func NewSubscriber(js jetstream.JetStream, dead *Publisher, cfg SubscriberConfig) (*Subscriber, error) {
	if cfg.Stage.Name == "" || cfg.Stage.Stream == "" || dead == nil {
		return nil, errors.New("create subscriber: a stage and a publisher are required")
	}
	cfg = cfg.withDefaults()
	m, err := newStageMetrics(cfg.Telemetry, cfg.Stage.Name)
	if err != nil {
		return nil, fmt.Errorf("create subscriber of %s: %w", cfg.Stage.Name, err)
	}
	return &Subscriber{
		cfg: cfg, nc: js.Conn(), js: js, dead: dead, metrics: m,
		gate: newGate(), tries: newTries(), created: newCreationTimes(js),
		out: make(chan *message.Message), stopping: make(chan struct{}), cut: make(chan struct{}),
		done: make(chan struct{}), wake: make(chan struct{}, 1), held: map[*lease]struct{}{},
	}, nil
}

// Subscribe starts to fetch; topic must be the stage's name. The channel is closed, once and last,
// when ctx is done or Close is called and every message of it was answered or handed back. Messages
// carry a context of their own that outlives ctx: see SubscriberConfig.DrainTimeout.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	if topic != s.cfg.Stage.Name {
		return nil, fmt.Errorf("subscribe to %q: this subscriber serves %q", topic, s.cfg.Stage.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return nil, fmt.Errorf("subscribe to %q: subscribed already", topic)
	}
	err := s.prepare(ctx)
	if err != nil && ctx.Err() != nil { // stopped before it began
		s.started = true
		close(s.done)
		close(s.out)
		return s.out, nil
	}
	if err != nil {
		return nil, err
	}
	s.started = true
	go s.run(ctx, s.prepared)
	return s.out, nil
}

// prepare looks up what Subscribe needs, unless that is done.
func (s *Subscriber) prepare(ctx context.Context) (err error) {
	if s.prepared == nil {
		s.prepared, err = newDispatcher(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("subscribe to %q: %w", s.cfg.Stage.Name, err)
	}
	return nil
}

func (s *Subscriber) run(ctx context.Context, d *dispatcher) {
	defer close(s.done)
	defer close(s.out)
	unhook := context.AfterFunc(ctx, s.stop)
	defer unhook()
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(over) })
	d.loop()
	s.stop()
	timer := time.AfterFunc(s.cfg.DrainTimeout, func() { close(s.cut) })
	defer timer.Stop()
	s.leases.Wait()
	close(over)
	watch.Wait()
	d.close()
	// Answers are asynchronous; have them on the wire before the connection may close.
	if err := s.nc.FlushTimeout(5 * time.Second); err != nil {
		s.cfg.Log.Warn("flush answers", "err", err)
	}
}

func (s *Subscriber) stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// Close stops fetching, hands back what was not started, waits for running handlers up to the drain
// timeout, then cancels them and hands their messages back. It returns when all is answered.
func (s *Subscriber) Close() error {
	s.stop()
	s.mu.Lock()
	started := s.started
	s.started = true
	s.mu.Unlock()
	if started {
		<-s.done
	}
	return nil
}

// Err tells why the subscriber ended by itself, nil when it was stopped or still runs.
func (s *Subscriber) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Subscriber) setErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}
