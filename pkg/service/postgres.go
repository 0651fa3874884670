package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNoDatabase is returned when a process needs Postgres and has no address of one.
var ErrNoDatabase = errors.New("no database: set --database-url or DATABASE_URL")

// PostgresConfig says how to connect.
type PostgresConfig struct {
	// URL is a Postgres URL or keyword string; several hosts are tried in turn.
	URL SecretURL
	// Name is the application_name, unless the URL has one.
	Name string
	// MaxConns bounds the pool; 0: 10.
	MaxConns int
	// Wait is how long to try before the first connection succeeds; 0: one try.
	Wait time.Duration
	// Configure is applied to the pool's settings last.
	Configure []func(*pgxpool.Config)
}

// OpenPostgres returns a pool that has connected once. The caller closes it.
func OpenPostgres(ctx context.Context, cfg PostgresConfig, logger *slog.Logger) (*pgxpool.Pool, error) {
	if cfg.URL == "" {
		return nil, ErrNoDatabase
	}
	pc, err := poolConfig(cfg)
	if err != nil {
		return nil, err
	}
	for _, configure := range cfg.Configure {
		configure(pc)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open postgres pool: %w", err)
	}
	err = untilUp(ctx, cfg.Wait, func(ctx context.Context) error { return pool.Ping(ctx) }, func(err error) {
		logger.Warn("waiting for postgres", "url", cfg.URL, "err", err)
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to postgres at %s: %w", cfg.URL, err)
	}
	return pool, nil
}

func poolConfig(cfg PostgresConfig) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL.Reveal())
	if err != nil {
		// pgx takes the password out of the text it quotes.
		return nil, fmt.Errorf("parse database-url: %w", err)
	}
	if pc.MaxConns = 10; cfg.MaxConns > 0 {
		pc.MaxConns = int32(min(cfg.MaxConns, 1000))
	}
	pc.MaxConnIdleTime = 5 * time.Minute
	pc.MaxConnLifetime = time.Hour
	pc.MaxConnLifetimeJitter = 5 * time.Minute
	pc.HealthCheckPeriod = 30 * time.Second
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	params := pc.ConnConfig.RuntimeParams
	if _, named := params["application_name"]; !named && cfg.Name != "" {
		params["application_name"] = cfg.Name
	}
	return pc, nil
}

// untilUp calls try until it succeeds, wait is over or ctx ends, and complains at most every five
// seconds.
func untilUp(ctx context.Context, wait time.Duration, try func(context.Context) error, complain func(error)) error {
	deadline := time.Now().Add(wait)
	var complained time.Time
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if time.Now().Add(pause).After(deadline) {
			return err
		}
		if time.Since(complained) > 5*time.Second {
			complained = time.Now()
			complain(err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}
