package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// PublisherConfig are the settings of a publisher. The zero value is usable.
type PublisherConfig struct {
	// MaxInFlight messages and MaxInFlightBytes wait for their acknowledgement at once, over all
	// callers; zero is 512 and 32 MiB.
	MaxInFlight      int
	MaxInFlightBytes int64
	// AckTimeout is how long one publish waits before it is repeated; zero is 5 s.
	AckTimeout time.Duration
	// RetryFor bounds the repeats of a call whose context has no deadline; zero is 60 s, which
	// outlives an election.
	RetryFor time.Duration
	// NoCreated leaves Created of every [Ack] zero: looking it up needs a permission that a tenant has not.
	NoCreated bool
	Telemetry
}

func (c PublisherConfig) withDefaults() PublisherConfig {
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 512
	}
	if c.MaxInFlightBytes <= 0 {
		c.MaxInFlightBytes = 32 << 20
	}
	if c.AckTimeout <= 0 {
		c.AckTimeout = 5 * time.Second
	}
	if c.RetryFor <= 0 {
		c.RetryFor = time.Minute
	}
	c.Telemetry = c.Telemetry.withDefaults()
	return c
}

// Publisher stores messages in JetStream. Safe for concurrent use. The zero value is not usable.
type Publisher struct {
	cfg     PublisherConfig
	nc      *nats.Conn
	js      jetstream.JetStream
	count   *semaphore.Weighted
	bytes   *semaphore.Weighted
	created *creationTimes
	metrics *publishMetrics
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher on nc, which stays the caller's.
func NewPublisher(nc *nats.Conn, cfg PublisherConfig) (*Publisher, error) {
	cfg = cfg.withDefaults()
	js, err := jetstream.New(nc,
		jetstream.WithPublishAsyncMaxPending(4*cfg.MaxInFlight),
		jetstream.WithPublishAsyncTimeout(cfg.AckTimeout))
	if err != nil {
		return nil, fmt.Errorf("create publisher: %w", err)
	}
	m, err := newPublishMetrics(cfg.Telemetry)
	if err != nil {
		return nil, fmt.Errorf("create publisher: %w", err)
	}
	return &Publisher{
		cfg: cfg, nc: nc, js: js, metrics: m, created: newCreationTimes(js),
		count: semaphore.NewWeighted(int64(cfg.MaxInFlight)),
		bytes: semaphore.NewWeighted(cfg.MaxInFlightBytes),
	}, nil
}

// Publish implements Watermill's Publisher: it returns nil once all messages are stored. The context
// is the first message's; the message id is the header Nats-Msg-Id, else the UUID.
func (p *Publisher) Publish(topic string, msgs ...*message.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	out := make([]Message, len(msgs))
	for i, w := range msgs {
		out[i] = fromWatermill(topic, w)
	}
	_, err := p.publish(msgs[0].Context(), out)
	return err
}

// PublishAck stores msgs and returns one [Ack] each, in their order. On an error some may be stored
// all the same: call again with the same ids. [ErrBackpressure] says that a stream is full,
// [ErrPermission] that the account may not publish there.
func (p *Publisher) PublishAck(ctx context.Context, msgs ...Message) ([]Ack, error) {
	acks, err := p.publish(ctx, msgs)
	if err != nil {
		return nil, err
	}
	if p.cfg.NoCreated {
		return acks, nil
	}
	for i := range acks {
		if acks[i].Created, err = p.created.get(ctx, acks[i].Stream, infoMaxAge); err != nil {
			return nil, err
		}
	}
	return acks, nil
}

// Close does nothing: the connection has one owner, and it is not the publisher.
func (p *Publisher) Close() error { return nil }

func (p *Publisher) publish(ctx context.Context, msgs []Message) (acks []Ack, err error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	ctx, span := p.cfg.startPublish(ctx, msgs)
	defer func() { endSpan(span, err) }()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cfg.RetryFor)
		defer cancel()
	}
	b := &batch{p: p, wire: make([]outgoing, len(msgs)), acks: make([]Ack, len(msgs)), todo: make([]int, len(msgs))}
	for i, m := range msgs {
		h := make(nats.Header, len(m.Header)+3)
		p.cfg.Propagator.Inject(ctx, natsCarrier(h))
		msg, err := encode(m, h)
		if err != nil {
			return nil, fmt.Errorf("publish to %s: %w", m.Subject, err)
		}
		b.wire[i] = outgoing{Msg: msg, weight: min(int64(msg.Size()), p.cfg.MaxInFlightBytes)}
		b.todo[i] = i
	}
	return b.acks, b.run(ctx)
}

// batch is one call of publish.
type batch struct {
	p    *Publisher
	wire []outgoing
	acks []Ack

	todo     []int     // not yet stored
	failed   []int     // of this round, to be repeated
	lastErr  error     // of the last repeatable failure
	fatal    error     // the first failure that repeating cannot help
	inFlight []pending // published, oldest first
}

// outgoing is a message and what it takes of the bytes that may be in flight.
type outgoing struct {
	*nats.Msg
	weight int64
}

type pending struct {
	index  int
	future jetstream.PubAckFuture
}

func (b *batch) run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		b.round(ctx)
		if b.fatal != nil {
			b.count(b.p.metrics.failures.Add, len(b.failed)+1)
			return b.fatal
		}
		if len(b.failed) == 0 {
			return nil
		}
		if err := sleep(ctx, backoff(attempt, 50*time.Millisecond, 2*time.Second)); err != nil {
			b.count(b.p.metrics.failures.Add, len(b.failed))
			return fmt.Errorf("publish to %s: %w", b.wire[b.failed[0]].Subject, errors.Join(err, b.lastErr))
		}
		b.count(b.p.metrics.retries.Add, len(b.failed))
		b.todo, b.failed = b.failed, nil
	}
}

// round publishes all of todo and waits for every answer.
func (b *batch) round(ctx context.Context) {
	for _, i := range b.todo {
		if b.fatal != nil || !b.acquire(ctx, i) {
			b.failed = append(b.failed, i)
			continue
		}
		f, err := b.p.js.PublishMsgAsync(b.wire[i].Msg)
		if err != nil {
			b.release(i)
			b.fail(i, err)
			continue
		}
		b.inFlight = append(b.inFlight, pending{i, f})
	}
	for len(b.inFlight) > 0 {
		b.settleOldest(ctx)
	}
}

// acquire takes the room of message i, settling own messages while there is none.
func (b *batch) acquire(ctx context.Context, i int) bool {
	for !b.tryAcquire(i) {
		if len(b.inFlight) > 0 {
			b.settleOldest(ctx)
			continue
		}
		// Holding nothing, so waiting for others cannot deadlock.
		if err := b.p.count.Acquire(ctx, 1); err != nil {
			b.lastErr = err
			return false
		}
		if err := b.p.bytes.Acquire(ctx, b.wire[i].weight); err != nil {
			b.p.count.Release(1)
			b.lastErr = err
			return false
		}
		break
	}
	b.p.metrics.inFlight.Add(context.Background(), 1)
	return true
}

func (b *batch) tryAcquire(i int) bool {
	if !b.p.count.TryAcquire(1) {
		return false
	}
	if b.p.bytes.TryAcquire(b.wire[i].weight) {
		return true
	}
	b.p.count.Release(1)
	return false
}

func (b *batch) release(i int) {
	b.p.bytes.Release(b.wire[i].weight)
	b.p.count.Release(1)
	b.p.metrics.inFlight.Add(context.Background(), -1)
}

func (b *batch) settleOldest(ctx context.Context) {
	next := b.inFlight[0]
	b.inFlight = b.inFlight[1:]
	defer b.release(next.index)
	select {
	case ack := <-next.future.Ok():
		b.count(b.p.metrics.published.Add, 1)
		b.acks[next.index] = Ack{Stream: ack.Stream, Sequence: ack.Sequence, Duplicate: ack.Duplicate}
	case err := <-next.future.Err():
		b.fail(next.index, err)
	case <-ctx.Done():
		b.fail(next.index, context.DeadlineExceeded)
	}
}

func (b *batch) fail(i int, err error) {
	subject := b.wire[i].Subject
	retry, err := publishError(err)
	if retry && denied(b.p.nc, subject) {
		retry, err = false, fmt.Errorf("%w: publish to %s", ErrPermission, subject)
	}
	if retry {
		b.failed = append(b.failed, i)
		if b.lastErr == nil || !errors.Is(err, context.DeadlineExceeded) {
			b.lastErr = err // the reason, rather than that time is over
		}
		return
	}
	if b.fatal == nil {
		b.fatal = fmt.Errorf("publish to %s: %w", subject, err)
	}
}

func (b *batch) count(add addFunc, n int) { add(context.Background(), int64(n)) }

// sleep waits d or until ctx ends, then returning its cause.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
