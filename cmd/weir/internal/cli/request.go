package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
)

// Client returns the tenant's client on the connection of this command line. --timeout bounds its calls.
func (s *Session) Client(ctx context.Context) (*client.Client, error) {
	nc, err := s.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(nc, s.Tenant, client.Options{Timeout: s.Timeout})
}

// Request is the client's Call, whose errors say what a person can do about them.
func (s *Session) Request(ctx context.Context, kb, op string, in, out any) error {
	c, err := s.Client(ctx)
	if err != nil {
		return err
	}
	return explain(messages.RPCSubject(s.Tenant, kb, op), c.Call(ctx, kb, op, in, out))
}

// explain says what a person can do about a failed request. What a service refused says so itself.
func explain(subject string, err error) error {
	refused, answered := messages.AsError(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: no service answers %s; is it running? `weir status` tells for this machine: %w",
			ErrUnavailable, subject, nats.ErrNoResponders)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("no answer on %s in time; a longer --timeout may help: %w", subject, context.DeadlineExceeded)
	case answered:
		return refused
	case errors.Is(err, bus.ErrNoEnvelope):
		return fmt.Errorf("the answer on %s is not one of Weir: %w", subject, err)
	}
	return err
}
