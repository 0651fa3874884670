// Package embednats runs a nats-server with JetStream inside this process. It is a package of its own
// so that only `weir up` and tests link the server.
package embednats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/crypto/bcrypt"
)

// DefaultPort is the port NATS clients expect.
const DefaultPort = 4222

// DefaultSyncInterval bounds what a power cut can take: JetStream's own default is two minutes. What
// a cut still takes is found again by the reconciler, because Postgres is the truth.
const DefaultSyncInterval = 2 * time.Second

// readyTimeout is how long a server may take to recover its streams.
const readyTimeout = 60 * time.Second

// Config describes one server. Dir is required, everything else has a sane zero value.
type Config struct {
	// Dir holds the JetStream files; it is created. One server per directory: the caller locks it.
	Dir string
	// Port on 127.0.0.1. 0: DefaultPort when it is free, else any free one. -1: any free one. Another
	// number is taken as it is, and starting fails when it is in use.
	Port int
	// DontListen opens no socket: only connections made with InProcess reach the server.
	DontListen bool
	// User and Password are asked of every client; both empty: no authentication.
	User, Password string
	// SyncInterval between two fsyncs; 0: DefaultSyncInterval.
	SyncInterval time.Duration
	// MaxStoreBytes is the most JetStream may reserve on disk; 0: three quarters of what is free.
	MaxStoreBytes int64
	// Logger gets warnings and errors, and notices at debug level; nil: none.
	Logger *slog.Logger
}

// Server is a running nats-server. Its methods are safe for concurrent use.
type Server struct {
	ns  *server.Server
	cfg Config
}

// Start starts a server and returns when it answers and its streams are recovered. ctx bounds only the
// start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("start nats server: no directory given")
	}
	opts, err := options(cfg)
	if err != nil {
		return nil, fmt.Errorf("start nats server: %w", err)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("start nats server: %w", err)
	}
	log := &logger{to: cfg.Logger, fatal: make(chan string, 1)}
	if log.to == nil {
		log.to = slog.New(slog.DiscardHandler)
	}
	ns.SetLoggerV2(log, false, false, false)
	ns.Start()
	if err := waitReady(ctx, ns, cfg.DontListen, log.fatal); err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, fmt.Errorf("start nats server: %w", err)
	}
	return &Server{ns: ns, cfg: cfg}, nil
}

func options(cfg Config) (*server.Options, error) {
	hash, err := hashed(cfg.Password)
	if err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName:        "weir",
		Host:              "127.0.0.1",
		Port:              port(cfg),
		DontListen:        cfg.DontListen,
		Username:          cfg.User,
		Password:          hash,
		JetStream:         true,
		StoreDir:          cfg.Dir,
		SyncInterval:      cfg.SyncInterval,
		JetStreamMaxStore: cfg.MaxStoreBytes,
		NoSigs:            true,
	}
	if opts.SyncInterval == 0 {
		opts.SyncInterval = DefaultSyncInterval
	}
	return opts, nil
}

// hashed spares the server's warning about a password in the clear. The cheapest hash will do for a random
// password, and is computed at every connect.
func hashed(password string) (string, error) {
	if password == "" {
		return "", nil
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return string(hash), nil
}

func port(cfg Config) int {
	if cfg.Port != 0 {
		return cfg.Port
	}
	probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(DefaultPort)))
	if err != nil {
		return server.RANDOM_PORT
	}
	if err := probe.Close(); err != nil {
		return server.RANDOM_PORT
	}
	return DefaultPort
}

func waitReady(ctx context.Context, ns *server.Server, inProcessOnly bool, fatal <-chan string) error {
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	for {
		listens := inProcessOnly || ns.Addr() != nil
		if listens && ns.Running() && ns.JetStreamEnabled() && ns.ReadyForConnections(time.Second) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line := <-fatal:
			return errors.New(line)
		case <-deadline.C:
			return fmt.Errorf("not ready after %s", readyTimeout)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Port is the TCP port, 0 for a server that does not listen.
func (s *Server) Port() int {
	addr, ok := s.ns.Addr().(*net.TCPAddr)
	if s.cfg.DontListen || !ok {
		return 0
	}
	return addr.Port
}

// URL is the address clients of this machine use, credentials included; "" for a server that does not
// listen.
func (s *Server) URL() string {
	if s.cfg.DontListen {
		return ""
	}
	u := url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))}
	if s.cfg.User != "" {
		u.User = url.UserPassword(s.cfg.User, s.cfg.Password)
	}
	return u.String()
}

// InProcess is the client option of a connection that needs no socket. Pass the empty string as URL.
func (s *Server) InProcess() nats.Option {
	return func(o *nats.Options) error {
		o.User, o.Password = s.cfg.User, s.cfg.Password
		return nats.InProcessServer(s.ns)(o)
	}
}

// Raw is the server itself, for tests that need more than this package offers.
func (s *Server) Raw() *server.Server { return s.ns }

// Done is closed when the server has stopped, whoever asked for it.
func (s *Server) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		s.ns.WaitForShutdown()
		close(done)
	}()
	return done
}

// Stop shuts the server down and waits until its files are closed. Calling it twice is harmless.
func (s *Server) Stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// logger passes the server's lines on to slog. The server does not end at a fatal line, it only says
// it: the first one is kept for the start.
type logger struct {
	to    *slog.Logger
	fatal chan string
}

func (l *logger) line(level slog.Level, format string, v []any) {
	if l.to.Enabled(context.Background(), level) {
		l.to.Log(context.Background(), level, "nats server", "line", fmt.Sprintf(format, v...))
	}
}

// Fatalf keeps the first line and logs every one.
func (l *logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
	l.line(slog.LevelError, format, v)
}

func (l *logger) Noticef(format string, v ...any) { l.line(slog.LevelDebug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.line(slog.LevelWarn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.line(slog.LevelError, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.line(slog.LevelDebug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.line(slog.LevelDebug, format, v) }
