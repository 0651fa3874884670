package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// expiring is a job whose source generation is not kept any longer.
type expiring struct{ job, kbID, generation int64 }

// ExpireGenerations marks generations dead that were retained for as long as their jobs asked for, and returns how
// many.
func (s *Store) ExpireGenerations(ctx context.Context) (int, error) {
	rows, err := s.pool.Query(ctx, query("retained_over"))
	if err != nil {
		return 0, fmt.Errorf("list retained generations: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (expiring, error) {
		var e expiring
		return e, row.Scan(&e.job, &e.kbID, &e.generation)
	})
	if err != nil {
		return 0, fmt.Errorf("list retained generations: %w", err)
	}
	for i, e := range list {
		if err := s.expire(ctx, e); err != nil {
			return i, fmt.Errorf("retire generation %d: %w", e.generation, err)
		}
	}
	return len(list), nil
}

// expire looks at the job under the lock again: it may be on its way back.
func (s *Store) expire(ctx context.Context, e expiring) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := lockKB(ctx, tx, e.kbID); err != nil && !errors.Is(err, ErrKBChanged) {
			return err
		}
		tag, err := tx.Exec(ctx, query("retained_clear"), e.job)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return exec(ctx, tx, "generation_expire", e.generation)
	})
}

// DropGenerations removes what is left of generations that have been dead for the grace time, longer than a
// query may run, in steps small enough to be interrupted anywhere. It returns those that are gone.
func (s *Store) DropGenerations(ctx context.Context, grace time.Duration) ([]int64, error) {
	rows, err := s.pool.Query(ctx, query("generations_dead"), grace.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list dead generations: %w", err)
	}
	type dead struct{ id, kbID int64 }
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (dead, error) {
		var d dead
		return d, row.Scan(&d.id, &d.kbID)
	})
	if err != nil {
		return nil, fmt.Errorf("list dead generations: %w", err)
	}
	var gone []int64
	for _, d := range list {
		if err := s.dropGeneration(ctx, d.id, d.kbID); err != nil {
			return gone, fmt.Errorf("drop generation %d: %w", d.id, err)
		}
		gone = append(gone, d.id)
	}
	return gone, nil
}

func (s *Store) dropGeneration(ctx context.Context, id, kbID int64) error {
	if _, err := s.pool.Exec(ctx, query("generation_leave"), id, kbID); err != nil {
		return err
	}
	if err := s.dropIndexed(ctx, id); err != nil {
		return err
	}
	if err := s.repeat(ctx, "purge_builds", id); err != nil {
		return err
	}
	for _, step := range []string{"purge_staged_generation", "purge_generation"} {
		if _, err := s.pool.Exec(ctx, query(step), id); err != nil {
			return err
		}
	}
	return nil
}

// dropIndexed drops the chunks and the full-text index of a generation that is dead. A merge from before would bring
// postings back behind whoever removes them.
func (s *Store) dropIndexed(ctx context.Context, generation int64) error {
	if err := s.dropPartition(ctx, generation); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, query("merge_wait"), generation); err != nil {
		return err
	}
	if err := s.repeat(ctx, "purge_postings", generation); err != nil {
		return err
	}
	_, err := s.pool.Exec(ctx, query("purge_segments"), generation)
	return err
}
