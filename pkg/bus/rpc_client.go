package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/pkg/messages"
)

// Client calls request-reply operations. Only NC is required. Safe for concurrent use.
type Client struct {
	NC *nats.Conn
	// RetryFor is how long a call waits for a service when none listens: at start-up, or between two
	// replicas. Zero does not wait.
	RetryFor time.Duration
	// Patient repeats a call that is refused as OVERLOADED after the time its reply asks for, as long as the
	// context has that time: such a call was not begun.
	Patient bool
	// Timeout is that of a call whose context has no deadline; zero is 10 s.
	Timeout time.Duration
	Telemetry
}

// Call makes one call on nc, waiting up to five seconds for a service to listen.
func Call(ctx context.Context, nc *nats.Conn, subject string, header Header, in, out any) error {
	return Client{NC: nc, RetryFor: 5 * time.Second}.Call(ctx, subject, header, in, out)
}

// Call sends in as JSON (a []byte as it is, nil as an empty body) and decodes the reply's data into
// out, which may be nil. The service learns how much time is left. An error of the service is a
// *messages.Error; so are UNAVAILABLE when none listens and DEADLINE_EXCEEDED when none answers in
// time. A subject that the account may not use is [ErrPermission].
func (c Client) Call(ctx context.Context, subject string, header Header, in, out any) error {
	c.Telemetry = c.Telemetry.withDefaults()
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	ctx, span := c.tracer().Start(ctx, "call "+operation(subject), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("rpc.system", "nats"), attribute.String("messaging.destination.name", subject)))
	err := c.call(ctx, subject, header, in, out)
	endSpan(span, err)
	if err != nil {
		return fmt.Errorf("call %s: %w", subject, err)
	}
	return nil
}

func (c Client) call(ctx context.Context, subject string, header Header, in, out any) error {
	body, err := encodeBody(in)
	if err != nil {
		return err
	}
	reply, err := c.request(ctx, subject, c.Inject(ctx, header), body)
	if err != nil {
		return err
	}
	var env messages.Envelope
	if err := json.Unmarshal(reply.Data, &env); err != nil || env.Code == "" {
		return noEnvelope(reply, err)
	}
	if err := env.Err(); err != nil {
		return err
	}
	if out == nil || len(env.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(env.Data, out); err != nil {
		return fmt.Errorf("decode reply: %w", err)
	}
	return nil
}

// noEnvelope is the error of a reply that is none of Weir's. One of NATS micro itself says why in its header.
func noEnvelope(reply *nats.Msg, err error) error {
	if text := reply.Header.Get(micro.ErrorHeader); text != "" {
		return fmt.Errorf("%w: %.256s", ErrNoEnvelope, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoEnvelope, err)
	}
	return ErrNoEnvelope
}

func encodeBody(in any) ([]byte, error) {
	switch v := in.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case json.RawMessage:
		return v, nil
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return body, nil
}

// request repeats while nobody listens, until RetryFor is over.
func (c Client) request(ctx context.Context, subject string, header Header, body []byte) (*nats.Msg, error) {
	until := time.Now().Add(c.RetryFor)
	for attempt := 1; ; attempt++ {
		m, err := wireRequest(ctx, subject, header, body)
		if err != nil {
			return nil, err
		}
		reply, err := c.once(ctx, m)
		if err == nil {
			wait := c.refused(ctx, reply)
			if wait == 0 {
				return reply, nil
			}
			if err := sleep(ctx, wait); err != nil {
				return nil, c.failure(ctx, subject, err)
			}
			continue
		}
		if !errors.Is(err, nats.ErrNoResponders) {
			return nil, c.failure(ctx, subject, err)
		}
		if time.Now().After(until) || sleep(ctx, backoff(attempt, 20*time.Millisecond, 500*time.Millisecond)) != nil {
			return nil, fmt.Errorf("%w: %w", messages.Errorf(messages.CodeUnavailable, "no service listens on %s", subject), err)
		}
	}
}

// refused is how long to wait before a call that was refused for too much load is made again, 0 when it is not.
// The wait is longer than asked for by up to a half: else all that were refused together would come together.
func (c Client) refused(ctx context.Context, reply *nats.Msg) time.Duration {
	seconds, err := strconv.Atoi(natsCarrier(reply.Header).Get(messages.HeaderRetryAfter))
	if !c.Patient || err != nil || seconds < 1 || seconds > maxRetryAfter {
		return 0
	}
	asked := time.Duration(seconds) * time.Second
	deadline, _ := ctx.Deadline()
	room := time.Until(deadline) - asked
	if room <= 0 {
		return 0
	}
	return asked + rand.N(min(asked/2, room/2)+1)
}

// maxRetryAfter is the longest wait, in seconds, that is kept to.
const maxRetryAfter = 3600

func wireRequest(ctx context.Context, subject string, header Header, body []byte) (*nats.Msg, error) {
	m := nats.NewMsg(subject)
	m.Data = body
	for k, v := range header {
		if !validKey(k) || !validValue(v) {
			return nil, fmt.Errorf("header %.64q is malformed", k)
		}
		m.Header[k] = []string{v}
	}
	if deadline, ok := ctx.Deadline(); ok {
		ms := max(time.Until(deadline).Milliseconds(), 0)
		m.Header[messages.HeaderDeadline] = []string{strconv.FormatInt(ms, 10)}
	}
	return m, nil
}

// once makes one request. A permission violation arrives apart from it, so it is looked for while
// waiting, or the caller would see only a timeout.
func (c Client) once(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, before := make(chan struct{}), c.NC.LastError()
	defer close(stop)
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if c.NC.LastError() != before && denied(c.NC, m.Subject) {
					cancel(ErrPermission)
				}
			}
		}
	}()
	reply, err := c.NC.RequestMsgWithContext(ctx, m)
	if err != nil && errors.Is(context.Cause(ctx), ErrPermission) {
		return nil, ErrPermission
	}
	return reply, err
}

func (c Client) failure(ctx context.Context, subject string, err error) error {
	switch {
	case errors.Is(err, ErrPermission):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeDeadlineExceeded, "no reply in time from %s", subject), err)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeUnavailable, "not connected"), err)
	}
	return err
}

// operation is the last token of a subject, which is bounded, unlike the tenant before it.
func operation(subject string) string {
	for i := len(subject) - 1; i >= 0; i-- {
		if subject[i] == '.' {
			return subject[i+1:]
		}
	}
	return subject
}
