package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// ConnectOptions are the settings of a connection. The zero value is usable.
type ConnectOptions struct {
	Log *slog.Logger
	// OnError is called, besides logging, with every asynchronous error: slow consumers and
	// permission violations, which the request itself only sees as a timeout. It must not block.
	OnError func(error)
	// OnClosed is called once when the connection is closed for good. It must not block.
	OnClosed func(error)
	// Extra is appended: credentials, TLS, an inbox prefix, an in-process server.
	Extra []nats.Option
}

// Connect opens a connection named name and waits for the server until ctx ends; afterwards it
// reconnects for ever. Use one connection for bulk publishing, one for consuming and one for
// requests, so that a large fan-in makes none of the others a slow consumer. The caller closes it.
func Connect(ctx context.Context, url, name string, opts ConnectOptions) (*nats.Conn, error) {
	nc, err := nats.Connect(url, append(baseOptions(name, opts), opts.Extra...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats at %s: %w", url, err)
	}
	if err := waitConnected(ctx, nc); err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to nats at %s: %w", url, err)
	}
	return nc, nil
}

func baseOptions(name string, opts ConnectOptions) []nats.Option {
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("connection", name)
	return []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.Timeout(5 * time.Second),
		nats.PingInterval(20 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			log.Error("nats error", "subject", subjectOf(sub), "err", err)
			if opts.OnError != nil {
				opts.OnError(err)
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { log.Warn("nats disconnected", "err", err) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("nats reconnected", "server", nc.ConnectedServerName()) }),
		nats.ClosedHandler(func(nc *nats.Conn) {
			log.Info("nats connection closed", "err", nc.LastError())
			if opts.OnClosed != nil {
				opts.OnClosed(nc.LastError())
			}
		}),
	}
}

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// reconnectDelay grows from 100 ms to 2 s, half of it random.
func reconnectDelay(attempts int) time.Duration {
	d := min(100*time.Millisecond<<min(attempts, 6), 2*time.Second)
	return d/2 + rand.N(d/2)
}

func waitConnected(ctx context.Context, nc *nats.Conn) error {
	status := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	for {
		switch nc.Status() {
		case nats.CONNECTED:
			return nil
		case nats.CLOSED:
			return errors.Join(nats.ErrConnectionClosed, nc.LastError())
		}
		select {
		case <-status:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), nc.LastError())
		}
	}
}
