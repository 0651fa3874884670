package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
)

// NATSConfig says how to connect.
type NATSConfig struct {
	// URL is one or more addresses, separated by commas.
	URL SecretURL
	// Name is shown by the server's connection list.
	Name string
	// Creds is a credentials file; empty: none.
	Creds string
	// Wait is how long to try before the first connection succeeds; 0: one try.
	Wait time.Duration
	// Options are applied last.
	Options []nats.Option
}

// OpenNATS returns a connection that is up and that reconnects for ever, with jitter. What goes wrong
// later, permission errors included, is logged: to a request such an error looks like a timeout. The
// caller drains or closes it.
func OpenNATS(ctx context.Context, cfg NATSConfig, logger *slog.Logger) (*nats.Conn, error) {
	opts := append(natsOptions(cfg, logger), cfg.Options...)
	var nc *nats.Conn
	err := untilUp(ctx, cfg.Wait, func(context.Context) error {
		var err error
		nc, err = nats.Connect(cfg.URL.Reveal(), opts...)
		return withoutURL(err)
	}, func(err error) {
		logger.Warn("waiting for nats", "url", cfg.URL, "err", err)
	})
	if err != nil {
		return nil, fmt.Errorf("connect to nats at %s: %w", cfg.URL, err)
	}
	return nc, nil
}

// withoutURL takes away the address that an error of parsing it repeats, password and all.
func withoutURL(err error) error {
	var parsed *url.Error
	if errors.As(err, &parsed) {
		return fmt.Errorf("read the address: %w", parsed.Err)
	}
	return err
}

// ConnectedURL is the address of the server that nc is connected to, empty without one. The client's own redaction leaves
// a token in it.
func ConnectedURL(nc *nats.Conn) SecretURL { return SecretURL(nc.ConnectedUrl()) }

func natsOptions(cfg NATSConfig, logger *slog.Logger) []nats.Option {
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.Timeout(5 * time.Second),
		nats.MaxReconnects(-1),
		nats.PermissionErrOnSubscribe(true),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.PingInterval(20 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			logger.Error("nats error", "subject", subject, "err", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("nats disconnected", "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			logger.Info("nats reconnected", "url", ConnectedURL(nc))
		}),
	}
	if cfg.Creds != "" {
		opts = append(opts, nats.UserCredentials(cfg.Creds))
	}
	return opts
}

// reconnectDelay grows from 100 ms to 2 s over whole rounds of the server list, with jitter so that
// the clients of a restarted server do not all come at once.
func reconnectDelay(rounds int) time.Duration {
	base := 100 * time.Millisecond << min(max(rounds, 0), 5)
	base = min(base, 2*time.Second)
	return base/2 + jitter(base/2)
}

// drainNATS lets subscriptions finish what they hold and closes, within timeout.
func drainNATS(nc *nats.Conn, timeout time.Duration) error {
	if nc.IsClosed() {
		return nil
	}
	closed := nc.StatusChanged(nats.CLOSED)
	if err := nc.Drain(); err != nil {
		nc.Close() // not connected: nothing to drain
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-time.After(timeout):
		nc.Close()
		return errors.New("drain nats connection: not done in time")
	}
}
