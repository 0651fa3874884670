package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// Session is what the commands of one command line share. It is used by one goroutine, except for the
// connection it hands out.
type Session struct {
	IO

	// Tenant, JSON and Timeout are the flags of that name.
	Tenant  string
	JSON    bool
	Timeout time.Duration

	natsURL   string
	natsCreds string
	begun     bool // the command line was understood
	nc        *nats.Conn
}

func (s *Session) validate() error {
	if err := messages.ValidateName("tenant", s.Tenant); err != nil {
		return usageError{err}
	}
	if s.Timeout <= 0 {
		return Usagef("timeout: must be positive")
	}
	return nil
}

// Dir is the state directory of this machine.
func (s *Session) Dir() (statedir.Dir, error) { return statedir.Locate(s.Getenv) }

// NATSURL finds the address: --nats-url, WEIR_NATS_URL, NATS_URL, and then the run of this machine.
func (s *Session) NATSURL() (service.SecretURL, error) {
	for _, url := range []string{s.natsURL, s.Getenv("WEIR_NATS_URL"), s.Getenv("NATS_URL")} {
		if url != "" {
			return service.SecretURL(url), nil
		}
	}
	run, err := s.run()
	if err == nil && run.NATSURL != "" {
		return service.SecretURL(run.NATSURL), nil
	}
	return "", s.nowhere("NATS", "--nats-url or NATS_URL", err)
}

// DatabaseURL finds the address of Postgres in given, WEIR_DATABASE_URL, DATABASE_URL, and then the run of
// this machine.
func (s *Session) DatabaseURL(given string) (service.SecretURL, error) {
	for _, url := range []string{given, s.Getenv("WEIR_DATABASE_URL"), s.Getenv("DATABASE_URL")} {
		if url != "" {
			return service.SecretURL(url), nil
		}
	}
	run, err := s.run()
	if err == nil && run.DatabaseURL != "" {
		return service.SecretURL(run.DatabaseURL), nil
	}
	return "", s.nowhere("Postgres", "--database-url or DATABASE_URL", err)
}

func (s *Session) run() (statedir.Run, error) {
	dir, err := s.Dir()
	if err != nil {
		return statedir.Run{}, err
	}
	return dir.ReadRun()
}

func (s *Session) nowhere(what, settings string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: the run of this machine has no %s; set %s", ErrUnavailable, what, settings)
	}
	if errors.Is(err, statedir.ErrNoRun) {
		return fmt.Errorf("%w: do not know where %s is: %w; start one with `weir up --detach`, or set %s",
			ErrUnavailable, what, err, settings)
	}
	return fmt.Errorf("find %s: %w; or set %s", what, err, settings)
}

// Conn returns the connection of this command line, opened at the first call and closed by Main.
func (s *Session) Conn(ctx context.Context) (*nats.Conn, error) {
	if s.nc != nil {
		return s.nc, nil
	}
	url, err := s.NATSURL()
	if err != nil {
		return nil, err
	}
	creds := s.natsCreds
	if creds == "" {
		creds = s.Getenv("WEIR_NATS_CREDS")
	}
	cfg := service.NATSConfig{URL: url, Creds: creds, Name: "weir-cli"}
	if prefix := s.Getenv("WEIR_NATS_INBOX_PREFIX"); prefix != "" { // of a user who may not read everybody's replies
		cfg.Options = append(cfg.Options, nats.CustomInboxPrefix(prefix))
	}
	nc, err := service.OpenNATS(ctx, cfg, s.Logger())
	if err != nil {
		return nil, fmt.Errorf("%w: %w; is it running? `weir status` tells for this machine", ErrUnavailable, err)
	}
	s.nc = nc
	return nc, nil
}

// Logger writes warnings and errors to standard error.
func (s *Session) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (s *Session) close() {
	if s.nc != nil {
		s.nc.Close()
	}
}

// Print writes a result: v as JSON with --json, else what human writes.
func (s *Session) Print(v any, human func(w io.Writer) error) error {
	if s.JSON {
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		return nil
	}
	if err := human(s.Out); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}
