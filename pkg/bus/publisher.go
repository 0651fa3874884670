package bus

import (
	"context"
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
	answers *answers
	count   *semaphore.Weighted
	bytes   *semaphore.Weighted
	created *creationTimes
	metrics *publishMetrics
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher on nc, which stays the caller's.
func NewPublisher(nc *nats.Conn, cfg PublisherConfig) (*Publisher, error) {
	cfg = cfg.withDefaults()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("create publisher: %w", err)
	}
	m, err := newPublishMetrics(cfg.Telemetry)
	if err != nil {
		return nil, fmt.Errorf("create publisher: %w", err)
	}
	return &Publisher{
		cfg: cfg, nc: nc, answers: newAnswers(nc), metrics: m, created: newCreationTimes(js),
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
