package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

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
	kb    *client.KB
	cfg   Config
	blind bool // the docs stream may not be looked at, which was told; of the asking goroutine
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
	c, err := client.New(nc, cfg.Tenant, client.Options{InFlight: cfg.InFlight, PublishRetryFor: cfg.Retry, MaxDocumentBytes: MaxDocumentBytes})
	if err != nil {
		return nil, err
	}
	return &Publisher{kb: c.KB(cfg.KB), cfg: cfg, track: newTracker(cfg.OnResult)}, nil
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
	g, sending := guard.WithContext(ctx)
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
	unwatch, err := p.kb.Watch(p.track.event)
	if err != nil && !errors.Is(err, client.ErrPermission) {
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
	o, err := p.prepare(ctx, item, id)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.fail(id, err)
		return nil
	}
	stored, err := p.store(ctx, o)
	if err != nil {
		return p.unsent(ctx, id, err)
	}
	p.track.stored(id, stored.Sequence)
	if p.cfg.NoWait {
		p.track.end(id, func(r *Result) { r.Status = messages.StatusPending })
	}
	return nil
}

// unsent sorts the error of a document that may not be stored. What was uploaded for it goes by itself, for
// after a timeout it may be stored all the same.
func (p *Publisher) unsent(ctx context.Context, id string, err error) error {
	if missing(err) {
		return fmt.Errorf("%w; is there a docs stream? `weir migrate` makes it", err)
	}
	if everyones(ctx, err) {
		return err
	}
	p.fail(id, err)
	return nil
}

// missing reports that nothing stores submits.
func missing(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// everyones tells an error of the bus from one of the message.
func everyones(ctx context.Context, err error) bool {
	for _, e := range []error{
		client.ErrPermission, nats.ErrConnectionClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return ctx.Err() != nil
}

// store waits for as long as the stream is full.
func (p *Publisher) store(ctx context.Context, o *client.Outgoing) (client.Submitted, error) {
	for told := false; ; {
		s, err := p.kb.Send(ctx, o)
		if !errors.Is(err, client.ErrBackpressure) {
			return s, err
		}
		if !told {
			told = true
			p.cfg.OnNote("the docs stream is full: waiting for the services to work it off")
		}
		select {
		case <-ctx.Done():
			return s, errors.Join(context.Cause(ctx), o.Discard(ctx))
		case <-time.After(p.cfg.Full):
		}
	}
}

func (p *Publisher) fail(id string, err error) {
	p.track.end(id, func(r *Result) { r.Status, r.Error = messages.StatusFailed, permanent(err) })
}
