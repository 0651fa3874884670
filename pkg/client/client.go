package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// Errors that callers may test for, besides *messages.Error.
var (
	// ErrPermission says that the connection's user may not publish or subscribe there.
	ErrPermission = bus.ErrPermission
	// ErrBackpressure says that the stream of documents is full: nothing is lost, try later.
	ErrBackpressure = bus.ErrBackpressure
)

// Options are the settings of a client. The zero value is usable.
type Options struct {
	// Timeout bounds every call, also one whose context has more time. Zero: the context alone does, and 10 s
	// where it has no deadline.
	Timeout time.Duration
	// RetryFor is how long a call waits for a service when none listens, as while one restarts. Zero: 5 s;
	// negative: not at all.
	RetryFor time.Duration
	// FailOverloaded returns OVERLOADED at once. Without it a call is made again after the time that the service
	// asks for, as long as that time is left.
	FailOverloaded bool
	// InFlight is how many messages may wait for their acknowledgement at once. Zero: 512.
	InFlight int
	// PublishRetryFor is how long a message is sent again while nothing stores it, where the context has no
	// deadline. Zero: a minute, which outlives an election of the servers.
	PublishRetryFor time.Duration
	// Silence is how long PublishWait waits for an event before it asks for the state of its document. Zero:
	// 20 s.
	Silence time.Duration
	// MaxDocumentBytes is the largest content that is sent at all. Zero: DefaultMaxDocumentBytes. Services have
	// a limit of their own.
	MaxDocumentBytes int64
	// Telemetry is where calls and publishes are traced and counted.
	Telemetry bus.Telemetry
}

// DefaultMaxDocumentBytes is the default of the services' own limit, --max-document-bytes.
const DefaultMaxDocumentBytes = 100_000_000

func (o Options) withDefaults() Options {
	if o.RetryFor == 0 {
		o.RetryFor = 5 * time.Second
	}
	if o.Silence <= 0 {
		o.Silence = 20 * time.Second
	}
	if o.MaxDocumentBytes <= 0 {
		o.MaxDocumentBytes = DefaultMaxDocumentBytes
	}
	return o
}

// Client acts for one tenant. Safe for concurrent use. There is nothing to close.
type Client struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	tenant string
	opts   Options
	rpc    bus.Client
	pub    *bus.Publisher
	blind  atomic.Bool // the stream of documents may not be looked at

	mu        sync.Mutex
	listeners map[string]*listener // by knowledge base
}

// New returns a client on nc, which stays the caller's. A name that no tenant can have is a
// VALIDATION_ERROR.
func New(nc *nats.Conn, tenant string, opts Options) (*Client, error) {
	if err := messages.ValidateName("tenant", tenant); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	pub, err := bus.NewPublisher(nc, bus.PublisherConfig{
		MaxInFlight: opts.InFlight, RetryFor: opts.PublishRetryFor, NoCreated: true, Telemetry: opts.Telemetry,
	})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Client{
		nc: nc, js: js, tenant: tenant, opts: opts, pub: pub, listeners: map[string]*listener{},
		rpc: bus.Client{NC: nc, RetryFor: opts.RetryFor, Patient: !opts.FailOverloaded, Telemetry: opts.Telemetry},
	}, nil
}

// Tenant returns the tenant that the client acts for.
func (c *Client) Tenant() string { return c.tenant }

// CallOption changes one call.
type CallOption func(bus.Header)

// WithIdempotencyKey lets a submit or delete be repeated safely: the same key, at most 128 bytes, is carried
// out once. A key of another document, or of the other operation, is refused.
func WithIdempotencyKey(key string) CallOption {
	return func(h bus.Header) { h[messages.HeaderIdempotencyKey] = key }
}

// WithRequestID gives the request an id, at most 128 bytes, by which it is found in the logs of services.
func WithRequestID(id string) CallOption {
	return func(h bus.Header) { h[messages.HeaderRequestID] = id }
}

// Call is what all typed calls are made of, and the way to an operation that has none: it asks op of scope, a
// knowledge base, messages.TenantScope or messages.AllScope, with in as JSON (nil: an empty body) and decodes
// the data of the reply into out (nil: dropped). An error of the service is a *messages.Error. So are
// UNAVAILABLE when none listens, even after Options.RetryFor, and DEADLINE_EXCEEDED when none answers in time;
// both also hold the cause.
func (c *Client) Call(ctx context.Context, scope, op string, in, out any, opts ...CallOption) error {
	if err := validScope(scope); err != nil {
		return err
	}
	if c.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout)
		defer cancel()
	}
	header := bus.Header{}
	for _, o := range opts {
		o(header)
	}
	subject := messages.RPCSubject(c.tenant, scope, op)
	var data json.RawMessage
	if err := c.rpc.Call(ctx, subject, header, in, &data); err != nil {
		return err
	}
	switch {
	case out == nil:
		return nil
	case len(data) == 0:
		return fmt.Errorf("call %s: %w", subject, errNoData)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("call %s: decode reply: %w", subject, err)
	}
	return nil
}

var errNoData = errors.New("the reply has no data")

// validScope keeps names from becoming other subjects.
func validScope(scope string) error {
	if scope == messages.TenantScope || scope == messages.AllScope {
		return nil
	}
	return messages.ValidateName("knowledgeBaseName", scope)
}

// ask is Call for a reply of a known type.
func ask[T any](ctx context.Context, c *Client, scope, op string, in any, opts []CallOption) (out T, err error) {
	err = c.Call(ctx, scope, op, in, &out, opts...)
	return out, err
}
