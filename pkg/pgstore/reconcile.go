package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
)

// OpenVersion is a version that is Pending or Indexing, and how far it came.
type OpenVersion struct {
	Ref        messages.Ref
	Status     messages.DocumentStatus
	Expected   *int // chunks; nil before staging
	Staged     int  // chunks staged
	Vectors    int  // vectors staged
	HasVectors bool // whether its generation has any
	UpdatedAt  time.Time
}

// Complete reports whether everything the version needs is staged.
func (v OpenVersion) Complete() bool {
	return v.Expected != nil && v.Staged >= *v.Expected && (!v.HasVectors || v.Vectors >= *v.Expected)
}

// Lost reports whether chunks that were staged are gone, so that the version must be parsed again.
func (v OpenVersion) Lost() bool { return v.Expected != nil && v.Staged < *v.Expected }

// OpenVersions returns up to limit open versions that were last touched more than age ago, in order of
// document key, from the one after.
func (s *Store) OpenVersions(ctx context.Context, after int64, age time.Duration, limit int) ([]OpenVersion, error) {
	rows, err := s.pool.Query(ctx, query("open_versions"), after, age.Seconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("list open versions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (OpenVersion, error) {
		var v OpenVersion
		r := &v.Ref
		return v, row.Scan(&r.Tenant, &r.KB, &r.KBID, &r.Generation, &r.Subspace, &r.DocID, &r.DocKey, &r.Version, &r.Run,
			&v.Status, &v.Expected, &v.UpdatedAt, &v.Staged, &v.Vectors, &v.HasVectors)
	})
	if err != nil {
		return nil, fmt.Errorf("list open versions: %w", err)
	}
	return list, nil
}

// RaiseRun gives a version's work new message ids, so that publishing it again is not taken for a
// duplicate. ErrStale when somebody else did already.
func (s *Store) RaiseRun(ctx context.Context, ref messages.Ref) (int, error) {
	if ref.Build {
		return s.nextRun(ctx, "build_raise_run", ref, ref.DocKey, ref.Version, ref.Generation, ref.Run)
	}
	return s.nextRun(ctx, "raise_run", ref, ref.DocKey, ref.Version, ref.Run)
}

// ResetStaging forgets what is left of a version's staged chunks when some of them are lost, so that it is parsed again,
// and raises its run. ErrStale when nothing is lost any more, or the version is no longer being worked on.
func (s *Store) ResetStaging(ctx context.Context, ref messages.Ref) (run int, err error) {
	name, args := "reset_staging", []any{ref.DocKey, ref.Version, stagedLayout}
	if ref.Build {
		name, args = "build_reset", append(args, ref.Generation)
	}
	err = s.pipelined(ctx, func(conn *pgxpool.Conn) error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(query("swap_lock_rows"), []int64{ref.DocKey})
		b.Queue(query(name), args...).QueryRow(scanRun(&run))
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	return runOf(ref, run, err)
}

func (s *Store) nextRun(ctx context.Context, name string, ref messages.Ref, args ...any) (run int, err error) {
	err = scanRun(&run)(s.pool.QueryRow(ctx, query(name), args...))
	return runOf(ref, run, err)
}

// scanRun reads the run that a statement has raised, the first being 1; without a row it stays 0.
func scanRun(run *int) func(pgx.Row) error {
	return func(row pgx.Row) error {
		if err := row.Scan(run); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	}
}

func runOf(ref messages.Ref, run int, err error) (int, error) {
	if err != nil {
		return 0, fmt.Errorf("raise run of %s: %w", ref.DocID, err)
	}
	if run == 0 {
		return 0, ErrStale
	}
	return run, nil
}

// ReceiptsOf returns the submits that a version answers: each gets the version's terminal event.
func (s *Store) ReceiptsOf(ctx context.Context, key, version int64) ([]Receipt, error) {
	list, err := receiptsOf(ctx, s.pool, key, version)
	if err != nil {
		return nil, fmt.Errorf("list submits of a version: %w", err)
	}
	return list, nil
}

// SweepAges says how long what is no longer needed is kept.
type SweepAges struct {
	Blobs      time.Duration // contents that nothing refers to
	Receipts   time.Duration // longer than a submit can be delivered again
	Tombstones time.Duration // of deleted documents, longer than late work can live
	Records    time.Duration // jobs that are over, dead letters that were replayed or discarded
}

// Sweep removes what is no longer needed: staged rows of versions that ended, old receipts, tombstones
// and records, contents without a version. It returns the number of rows.
func (s *Store) Sweep(ctx context.Context, ages SweepAges) (int, error) {
	total := 0
	for _, step := range []struct {
		name  string
		args  []any
		batch int64 // rows of one statement; 0: all
	}{
		{"sweep_staged_chunks", nil, 0},
		{"sweep_staged_vectors", nil, 0},
		{"sweep_receipts", []any{ages.Receipts.Seconds()}, 10_000},
		{"sweep_tombstones", []any{ages.Tombstones.Seconds()}, 10_000},
		{"sweep_jobs", []any{ages.Records.Seconds()}, 1000},
		{"sweep_dead_letters", []any{ages.Records.Seconds()}, 1000},
	} {
		n, err := s.sweep(ctx, step.name, step.args, step.batch)
		if total += n; err != nil {
			return total, fmt.Errorf("sweep (%s): %w", step.name, err)
		}
	}
	n, err := s.CollectBlobs(ctx, ages.Blobs)
	return total + n, err
}

// sweep runs a statement until it finds less than a whole batch: what is left each time would grow for ever.
func (s *Store) sweep(ctx context.Context, name string, args []any, batch int64) (total int, err error) {
	if batch > 0 {
		args = append(args, batch)
	}
	for {
		tag, err := s.pool.Exec(ctx, query(name), args...)
		if err != nil {
			return total, err
		}
		if total += int(tag.RowsAffected()); batch == 0 || tag.RowsAffected() < batch {
			return total, nil
		}
	}
}
