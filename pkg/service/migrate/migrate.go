// Package migrate applies the SQL files of a migration folder to a Postgres database. `weir migrate`,
// `weir up` and the tests share it, so a schema is never built in two ways.
package migrate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// lockKey is the advisory lock held while migrating; the number has no meaning beyond being ours.
const lockKey int64 = 0x57656972_6d696772

// lockPoll is the pause between two tries for the lock. Polling, not a blocking
// pg_advisory_lock: a waiting statement holds a snapshot, and CREATE INDEX CONCURRENTLY of the
// migrator that has the lock would wait for it for ever.
const lockPoll = 50 * time.Millisecond

// ErrOlder is returned by Check when the database lacks migrations this program needs.
var ErrOlder = errors.New("database schema is older than this program")

// ErrNewer is returned by Up and Check when the database has migrations this program does not know.
var ErrNewer = errors.New("database schema is newer than this program")

// Versions are the numbers of the newest migration applied and of the newest one known.
type Versions struct {
	Current int64 `json:"current"`
	Target  int64 `json:"target"`
}

// Up applies every migration of files that the database at url lacks, in order, each in its own
// transaction unless the file says otherwise, and returns the versions it ends at. Concurrent callers
// wait for each other until ctx ends. It uses sessions of its own and leaves none behind. A database
// that is ahead of files is left alone and answered with ErrNewer.
func Up(ctx context.Context, url string, files fs.FS, logger *slog.Logger) (Versions, error) {
	var at Versions
	err := withProvider(url, files, logger, func(db *sql.DB, p *goose.Provider) error {
		return locked(ctx, db, func() error {
			var err error
			if at, err = versions(ctx, p); err != nil {
				return err
			}
			if at.Current > at.Target {
				return newer(at)
			}
			if _, err = p.Up(ctx); err != nil {
				return named(err)
			}
			at, err = versions(ctx, p)
			return err
		})
	})
	if err != nil {
		return at, fmt.Errorf("migrate database: %w", err)
	}
	return at, nil
}

// Version reads the versions without changing or locking anything. A database that was never migrated
// has Current 0.
func Version(ctx context.Context, url string, files fs.FS) (Versions, error) {
	var at Versions
	err := withProvider(url, files, slog.New(slog.DiscardHandler), func(db *sql.DB, p *goose.Provider) error {
		made, err := hasVersionTable(ctx, db)
		if err != nil {
			return err
		}
		if !made {
			at.Target = target(p)
			return nil
		}
		at, err = versions(ctx, p)
		return err
	})
	if err != nil {
		return at, fmt.Errorf("read schema version: %w", err)
	}
	return at, nil
}

// Check returns nil when the database has exactly the migrations of files, else an error that wraps
// ErrOlder or ErrNewer and names the versions, or the error of reading them.
func Check(ctx context.Context, url string, files fs.FS) error {
	at, err := Version(ctx, url, files)
	switch {
	case err != nil:
		return err
	case at.Current < at.Target:
		return fmt.Errorf("%w: it is at %d, %d is needed; run `weir migrate`", ErrOlder, at.Current, at.Target)
	case at.Current > at.Target:
		return newer(at)
	}
	return nil
}

// Hash is a short fingerprint of the names and contents of files: equal schema, equal hash.
func Hash(files fs.FS) (string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", fmt.Errorf("list migrations: %w", err)
	}
	sum := sha256.New()
	for _, name := range names { // Glob sorts
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("read migration %s: %w", name, err)
		}
		fmt.Fprintf(sum, "%s\x00%d\x00", name, len(body))
		sum.Write(body)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// named puts the file before the error of a migration.
func named(err error) error {
	var partial *goose.PartialError
	if errors.As(err, &partial) && partial.Failed != nil && partial.Failed.Source != nil {
		return fmt.Errorf("apply %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	return err
}

func newer(at Versions) error {
	return fmt.Errorf("%w: it is at %d, this program knows %d; use a newer program", ErrNewer, at.Current, at.Target)
}

func withProvider(url string, files fs.FS, logger *slog.Logger, work func(*sql.DB, *goose.Provider) error) (err error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("parse database url: %w", err)
	}
	if _, named := cfg.RuntimeParams["application_name"]; !named {
		cfg.RuntimeParams["application_name"] = "weir-migrate"
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSlog(logger), goose.WithVerbose(false), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return work(db, provider)
}

// locked runs work while one session of db holds the advisory lock.
func locked(ctx context.Context, db *sql.DB, work func() error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	// Closing the database after us ends the session, and with it the lock, whatever happens here.
	defer func() { err = errors.Join(err, conn.Close()) }()
	for {
		var got bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", lockKey).Scan(&got); err != nil {
			return fmt.Errorf("take migration lock: %w", err)
		}
		if got {
			return work()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another migration: %w", context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

func hasVersionTable(ctx context.Context, db *sql.DB) (bool, error) {
	var made bool
	err := db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", goose.DefaultTablename).Scan(&made)
	if err != nil {
		return false, fmt.Errorf("look for the version table: %w", err)
	}
	return made, nil
}

func versions(ctx context.Context, p *goose.Provider) (Versions, error) {
	current, err := p.GetDBVersion(ctx)
	if err != nil {
		return Versions{}, err
	}
	return Versions{Current: current, Target: target(p)}, nil
}

func target(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}
