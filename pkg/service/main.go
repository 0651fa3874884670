package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
)

// Exit codes of a service.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2 // settings that are not valid
)

// shutdownWait bounds closing of connections and sending of telemetry after the work has ended.
const shutdownWait = 5 * time.Second

// Process is what a running service has around it. Connections are opened on demand and closed by Main
// after the work has returned, the last opened first.
type Process struct {
	Name      string
	Config    Config
	Logger    *slog.Logger
	Telemetry *Telemetry
	Health    *Health
	// NATSOptions are added to those of every connection, for instance to reach a server in this process.
	NATSOptions []nats.Option

	closers []func() error
}

// Postgres opens a pool, whose reachability becomes a condition of readiness. configure is applied to
// its settings last.
func (p *Process) Postgres(ctx context.Context, configure ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	return p.PostgresFor(ctx, 0, configure...)
}

// PostgresFor is Postgres for a service that can use conns connections (0: the usual number) where the
// settings name no number.
func (p *Process) PostgresFor(ctx context.Context, conns int, configure ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	if p.Config.DatabaseConns > 0 {
		conns = p.Config.DatabaseConns
	}
	pool, err := OpenPostgres(ctx, PostgresConfig{
		URL: p.Config.DatabaseURL, Name: "weir-" + p.Name,
		MaxConns: conns, Wait: p.Config.ConnectWait, Configure: configure,
	}, p.Logger)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() error { pool.Close(); return nil })
	p.Health.Check("postgres", pool.Ping)
	return pool, nil
}

// NATS opens a connection of its own, whose being up becomes a condition of readiness. A service that
// publishes in bulk, consumes and answers requests opens one for each: the server keeps one buffer
// per connection.
func (p *Process) NATS(ctx context.Context, opts ...nats.Option) (*nats.Conn, error) {
	nc, err := OpenNATS(ctx, NATSConfig{
		URL: p.Config.NATSURL, Creds: p.Config.NATSCreds, Name: "weir-" + p.Name,
		Wait: p.Config.ConnectWait, Options: append(slices.Clip(p.NATSOptions), opts...),
	}, p.Logger)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() error { return drainNATS(nc, shutdownWait) })
	p.Health.Check("nats", func(context.Context) error {
		if !nc.IsConnected() {
			return errors.New(nc.Status().String())
		}
		return nil
	})
	return nc, nil
}

// Close closes the connections, the last opened first. Main does it by itself.
func (p *Process) Close() error {
	var problems []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		problems = append(problems, p.closers[i]())
	}
	p.closers = nil
	return errors.Join(problems...)
}

func (p *Process) end() error {
	err := p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	return errors.Join(err, p.Telemetry.Shutdown(ctx))
}

// Main reads the settings of the service name from the command line and the environment, calls work
// under Run and returns the exit code of the process. work returns when its context ends.
func Main[S Settings](name string, settings S, work func(context.Context, *Process, S) error) int {
	io := stdio{args: os.Args[1:], getenv: os.Getenv, out: os.Stdout, errOut: os.Stderr}
	return runMain(context.Background(), name, settings, io, work)
}

type stdio struct {
	args        []string
	getenv      func(string) string
	out, errOut io.Writer
}

func runMain[S Settings](ctx context.Context, name string, settings S, io stdio, work func(context.Context, *Process, S) error) int {
	cfg := DefaultConfig()
	switch err := Load(name, io.args, io.getenv, io.out, &cfg, settings); {
	case errors.Is(err, ErrPrinted):
		return ExitOK
	case err != nil:
		fmt.Fprintf(io.errOut, "%s: %v\n", name, err)
		return ExitUsage
	}
	p, err := newProcess(ctx, name, cfg, io)
	if err != nil {
		fmt.Fprintf(io.errOut, "%s: %v\n", name, err)
		return ExitFailed
	}
	TuneGC(io.getenv)
	p.Logger.Info("starting")
	if err := p.run(ctx, func(ctx context.Context) error { return work(ctx, p, settings) }); err != nil {
		p.Logger.Error("ended", "err", err)
		return ExitFailed
	}
	p.Logger.Info("ended")
	return ExitOK
}

func newProcess(ctx context.Context, name string, cfg Config, io stdio) (*Process, error) {
	logger, err := NewLogger(io.errOut, cfg.LogFormat, cfg.LogLevel)
	if err != nil {
		return nil, err
	}
	telemetry, err := NewTelemetry(ctx, name, io.getenv)
	if err != nil {
		return nil, err
	}
	return &Process{
		Name: name, Config: cfg, Telemetry: telemetry, Health: &Health{},
		Logger: logger.With("service", name),
	}, nil
}

func (p *Process) run(ctx context.Context, work func(context.Context) error) error {
	stopHTTP := func() {}
	if p.Config.HTTPAddr != "" {
		var err error
		if stopHTTP, err = ServeHTTP(p.Config.HTTPAddr, p.Health.Handler(p.Telemetry.Metrics()), p.Logger); err != nil {
			return errors.Join(err, p.end())
		}
	}
	err := Run(ctx, p.Logger, p.Config.Grace, func(ctx context.Context) error {
		unready := context.AfterFunc(ctx, p.Health.NotReady)
		defer unready()
		return work(ctx)
	})
	stopHTTP()
	if errors.Is(err, ErrGrace) {
		return err // work still uses the connections: the end of the process closes them
	}
	return errors.Join(err, p.end())
}

// gcPercent lets the heap grow to three times what is in use before it is collected: services hold little and
// allocate much, so memory is cheaper than the collector's share of the processors.
const gcPercent = 200

// TuneGC sets how often this process collects garbage, unless the operator has an opinion (GOGC).
func TuneGC(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// jitter is a random duration in [0, most).
func jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}
