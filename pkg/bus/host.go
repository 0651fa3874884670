package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/guard"
)

// Host is what one service does on the bus: it runs stages and answers requests.
type Host struct {
	Runners   []*Runner
	Requests  *nats.Conn // stays the caller's
	Info      ServiceInfo
	Options   ServiceOptions
	Endpoints []Endpoint // their queue group is the name of Info, where they name none
	// DrainTimeout is how long requests in hand may take at the end; runners have their own.
	DrainTimeout time.Duration
	// Ready, if set, is called once: when every stage is served and the server knows the endpoints.
	Ready func()
}

// Run serves until ctx is done, and drains. It returns nil on a clean stop, else why something cannot be served, or
// which stage ended by itself.
func (h Host) Run(ctx context.Context) error {
	g, ctx := guard.WithContext(ctx)
	for _, r := range h.Runners {
		g.Go(func() error { return r.Run(ctx) })
	}
	g.Go(func() error { return h.answer(ctx) })
	return g.Wait()
}

// answer answers requests until ctx is done, and then those in hand.
func (h Host) answer(ctx context.Context) error {
	svc, err := NewService(h.Requests, h.Info, h.Options)
	if err != nil {
		return err
	}
	err = h.start(ctx, svc)
	switch {
	case err == nil:
		svc.opts.Log.Info("serving", "service", h.Info.Name)
		if h.Ready != nil {
			h.Ready()
		}
		<-ctx.Done()
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = nil // stopped before everything had started
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.DrainTimeout)
	defer cancel()
	return errors.Join(err, svc.Stop(drain))
}

// start returns when everything is served.
func (h Host) start(ctx context.Context, svc *Service) error {
	for _, e := range h.Endpoints {
		if e.QueueGroup == "" {
			e.QueueGroup = h.Info.Name
		}
		if err := svc.AddEndpoint(e); err != nil {
			return err
		}
	}
	for _, r := range h.Runners {
		select {
		case <-r.Running():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	known, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := Flush(known, h.Requests); err != nil {
		return fmt.Errorf("announce endpoints of %s: %w", h.Info.Name, err)
	}
	return nil
}

// announceTimeout bounds the wait for the server to know the endpoints, an outage of its included.
const announceTimeout = time.Minute

// Flush waits until the server has seen what nc sent before, subscriptions among it. ctx needs a deadline. A connection
// that is lost meanwhile is waited for, and has told the server its subscriptions again.
func Flush(ctx context.Context, nc *nats.Conn) error {
	for {
		err := nc.FlushWithContext(ctx)
		if !errors.Is(err, nats.ErrConnectionClosed) || nc.IsClosed() || sleep(ctx, reflushEvery) != nil {
			return err
		}
	}
}

// reflushEvery is the pause between two looks at a lost connection, whose flushes fail at once.
const reflushEvery = 20 * time.Millisecond
