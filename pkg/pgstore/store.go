package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxvec "github.com/pgvector/pgvector-go/pgx"
)

// SchemaVersion is the newest migration this code needs.
const SchemaVersion = 7

//go:embed queries/*.sql
var queryFiles embed.FS

// query returns the text of queries/<name>.sql; a missing one is a programmer's error that the test
// over all files finds.
func query(name string) string {
	text, err := queryFiles.ReadFile("queries/" + name + ".sql")
	if err != nil {
		panic("pgstore: no query " + name)
	}
	return string(text)
}

// Store runs the statements on a pool made by Configure.
type Store struct {
	pool *pgxpool.Pool
}

// New returns a store over a pool whose connections know the vector types (see Configure).
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Configure prepares a pool's configuration: the vector types are registered on every connection, where
// the database has them (CheckSchema says so when it has not), and a statement is planned for its arguments and what the
// tables hold now each time, but where its transaction asks for a plan that is kept. One that Postgres keeps of its own
// accord is that of the moment it was made, such as a scan of a table that was empty, or locks the partitions of all generations.
func Configure(cfg *pgxpool.Config) {
	before := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		var exists bool
		if err := conn.QueryRow(ctx, query("vector_type")).Scan(&exists); err != nil || !exists {
			return err
		}
		if _, err := conn.Exec(ctx, "SET jit = off; SET plan_cache_mode = force_custom_plan"); err != nil {
			return err
		}
		return pgxvec.RegisterTypes(ctx, conn)
	}
}

// CheckSchema fails when the database was not migrated as far as this code needs.
func (s *Store) CheckSchema(ctx context.Context) error {
	var version int64
	err := s.pool.QueryRow(ctx, query("check_schema")).Scan(&version)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == undefinedTable {
		return errors.New("the database has no Weir schema: run `weir migrate`")
	}
	if err != nil {
		return fmt.Errorf("check schema: %w", err)
	}
	if version < SchemaVersion {
		return fmt.Errorf("the database schema is version %d, this program needs %d: run `weir migrate`", version, SchemaVersion)
	}
	return nil
}

const undefinedTable = "42P01"

// Retryable reports whether err is the database's absence rather than a fault of the statement: lost
// connections, start-up and shut-down, too many connections, disk full, read-only fail-over.
func Retryable(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code[:2] {
		case "08", "53", "57", "58", "25":
			return pgErr.Code != "57014" // query_canceled is the caller's own deadline
		}
		return false
	}
	var netErr net.Error
	var connectErr *pgconn.ConnectError
	return errors.As(err, &connectErr) || errors.As(err, &netErr) && !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// Conflict reports whether err is a lost race with another transaction: running the same thing again
// is right. So it is where a row finds no partition: a connection may know the partitions as they were before
// another attached or detached one.
func Conflict(err error) bool {
	const serialization, deadlock, check = "40001", "40P01", "23514"
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	return pgErr.Code == serialization || pgErr.Code == deadlock || pgErr.Code == check && pgErr.ConstraintName == ""
}

// pipelined runs fn on one connection. fn sends BEGIN as the first statement of its first batch and COMMIT as
// the last of its last, which saves a round trip each: what fn finds in the results of its last batch is committed, whatever
// it returns. After an error before that the transaction is rolled back, and a connection on which even that fails is closed.
func (s *Store) pipelined(ctx context.Context, fn func(*pgxpool.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := fn(conn); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		if _, rollback := conn.Exec(undo, "ROLLBACK"); rollback != nil {
			conn.Conn().Close(undo) //nolint:errcheck // broken already
		}
		return err
	}
	return nil
}

const undoTimeout = 5 * time.Second

// inTx runs fn in a READ COMMITTED transaction.
func (s *Store) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, fn)
}
