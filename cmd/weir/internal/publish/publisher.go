package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// requestTimeout bounds every single question to the server.
const requestTimeout = 10 * time.Second

// Config says where documents go. Tenant and KB are required.
type Config struct {
	Tenant, KB string
	// NoWait ends a document when it is stored, as Pending.
	NoWait bool
	// InFlight is how many documents are read and sent at once; zero is 16.
	InFlight int
	// OnResult is called with every document's end, one at a time. It must not block for long.
	OnResult func(Result)
	// OnNote is told what slows the run down. It may be called from several goroutines.
	OnNote func(text string)
	// Silence is how long to wait for an event before states are asked for; zero is 20 s. Full is the
	// pause when the stream is full; zero is 1 s. Retry is how long one document is sent again while nothing
	// stores it; zero is a minute, which outlives an election.
	Silence, Full, Retry time.Duration
}

// Publisher publishes documents. Counts may be called at any time, Run once.
type Publisher struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	cfg   Config
	pub   *bus.Publisher
	rpc   bus.Client
	blind bool // the docs stream may not be looked at; of the asking goroutine
	track *tracker
}

// New returns a publisher on nc, which stays the caller's.
func New(nc *nats.Conn, cfg Config) (*Publisher, error) {
	if cfg.InFlight <= 0 {
		cfg.InFlight = 16
	}
	if cfg.OnNote == nil {
		cfg.OnNote = func(string) {}
	}
	if cfg.Silence <= 0 {
		cfg.Silence = 20 * time.Second
	}
	if cfg.Full <= 0 {
		cfg.Full = time.Second
	}
	pub, err := bus.NewPublisher(nc, bus.PublisherConfig{MaxInFlight: cfg.InFlight, RetryFor: cfg.Retry, NoCreated: true})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("create publisher: %w", err)
	}
	return &Publisher{
		nc: nc, js: js, cfg: cfg, pub: pub, track: newTracker(cfg.OnResult),
		rpc: bus.Client{NC: nc, RetryFor: 5 * time.Second, Timeout: requestTimeout},
	}, nil
}

// Counts tells where the documents are.
func (p *Publisher) Counts() Counts { return p.track.snapshot() }

// Run publishes every item and returns when all have ended. A document that fails is a result, not an
// error: the error is that of the bus, or the end of ctx, and documents may then be open.
func (p *Publisher) Run(ctx context.Context, items <-chan Item) error {
	if !p.cfg.NoWait {
		stop, err := p.watch(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	g, sending := errgroup.WithContext(ctx)
	for range p.cfg.InFlight {
		g.Go(func() error { return p.sendAll(sending, items) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.track.close()
	select {
	case <-p.track.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch follows the events, and asks for states when they stay away.
func (p *Publisher) watch(ctx context.Context) (stop func(), err error) {
	unwatch, err := Watch(p.nc, p.cfg.Tenant, p.cfg.KB, p.track.event)
	if err != nil && !errors.Is(err, bus.ErrPermission) {
		return nil, err
	}
	if err != nil {
		p.cfg.OnNote(fmt.Sprintf("events cannot be read, asking for states instead: %v", err))
		unwatch = func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		p.ask(ctx)
	}()
	return func() {
		cancel()
		<-asked
		unwatch()
	}, nil
}

func (p *Publisher) sendAll(ctx context.Context, items <-chan Item) error {
	for {
		select {
		case item, ok := <-items:
			if !ok {
				return nil
			}
			if err := p.send(ctx, item); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send publishes one item. Its error is one that concerns every other item too.
func (p *Publisher) send(ctx context.Context, item Item) error {
	id := nuid.Next()
	p.track.add(id, item)
	if item.Err != nil {
		p.fail(id, item.Err)
		return nil
	}
	m, undo, err := p.message(ctx, item, id)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.fail(id, err)
		return nil
	}
	ack, err := p.store(ctx, m)
	if err != nil {
		undo()
		if missing(err) {
			return fmt.Errorf("%w; is there a docs stream? `weir migrate` makes it", err)
		}
		if everyones(ctx, err) {
			return err
		}
		p.fail(id, err)
		return nil
	}
	p.track.stored(id, ack.Sequence)
	if p.cfg.NoWait {
		p.track.end(id, func(r *Result) { r.Status = messages.StatusPending })
	}
	return nil
}

// missing reports that nothing stores submits.
func missing(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// everyones tells an error of the bus from one of the message.
func everyones(ctx context.Context, err error) bool {
	for _, e := range []error{
		bus.ErrPermission, nats.ErrConnectionClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return ctx.Err() != nil
}

// store waits for as long as the stream is full.
func (p *Publisher) store(ctx context.Context, m bus.Message) (bus.Ack, error) {
	for told := false; ; {
		acks, err := p.pub.PublishAck(ctx, m)
		if err == nil {
			return acks[0], nil
		}
		if !errors.Is(err, bus.ErrBackpressure) {
			return bus.Ack{}, err
		}
		if !told {
			told = true
			p.cfg.OnNote("the docs stream is full: waiting for the services to work it off")
		}
		select {
		case <-ctx.Done():
			return bus.Ack{}, context.Cause(ctx)
		case <-time.After(p.cfg.Full):
		}
	}
}

func (p *Publisher) fail(id string, err error) {
	p.track.end(id, func(r *Result) { r.Status, r.Error = messages.StatusFailed, permanent(err) })
}
