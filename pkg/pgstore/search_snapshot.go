package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	endSnapshot   = "COMMIT"
	// genericPlans saves planning the same statements again and again: left to itself the planner does,
	// because it takes a limit that is an argument for a tenth of the table.
	genericPlans = "SET LOCAL plan_cache_mode = force_generic_plan"
	// discardPlans has the connection's statements planned anew, for what the tables hold now.
	discardPlans = "DISCARD PLANS"
	// plansKept is how long a connection's plans serve: one made for a few rows scans a table for each row it looks for.
	plansKept = 10 * time.Second
	// rollbackTimeout bounds the end of a snapshot whose caller is gone.
	rollbackTimeout = time.Second
)

// snapshot is a read-only transaction whose begin and end travel with the first and last batch.
type snapshot struct {
	conn    *pgxpool.Conn
	generic bool // the statements do not depend on how selective their arguments are
	begun   bool
	ended   bool
	spent   time.Duration // waiting for the database
}

// inSnapshot runs fn with a snapshot on a connection of its own. fn ends the snapshot itself; after an
// error it is rolled back here.
func (s *Store) inSnapshot(ctx context.Context, snap *snapshot, fn func() error) error {
	began := time.Now()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	snap.conn, snap.spent = conn, time.Since(began)
	defer conn.Release() // closes a connection that is still in a transaction
	err = fn()
	if snap.begun && !snap.ended && !conn.Conn().IsClosed() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		if _, rerr := conn.Exec(undo, "ROLLBACK"); err == nil && rerr != nil {
			err = rerr
		}
	}
	return err
}

// batch returns an empty batch, or one that begins the snapshot when that has not happened yet.
func (s *snapshot) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if !s.begun {
		b.Queue(beginSnapshot)
		if s.generic {
			b.Queue(genericPlans)
			s.replan(b)
		}
	}
	return b
}

// plansMade is where a connection notes when it began to keep plans.
const plansMade = "pgstore: plans made"

// replan queues the end of the connection's plans when they have served their time.
func (s *snapshot) replan(b *pgx.Batch) {
	noted := s.conn.Conn().PgConn().CustomData()
	made, _ := noted[plansMade].(time.Time)
	if time.Since(made) < plansKept {
		return
	}
	noted[plansMade] = time.Now()
	b.Queue(discardPlans)
}

// run sends a batch and reads all its results.
func (s *snapshot) run(ctx context.Context, b *pgx.Batch) error {
	s.begun = true
	began := time.Now()
	err := s.conn.SendBatch(ctx, b).Close()
	s.spent += time.Since(began)
	return err
}

// end is run for the last batch.
func (s *snapshot) end(ctx context.Context, b *pgx.Batch) error {
	b.Queue(endSnapshot)
	err := s.run(ctx, b)
	s.ended = err == nil
	return err
}
