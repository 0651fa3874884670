package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// deletedKB is a knowledge base whose data is still to be removed.
type deletedKB struct {
	id           int64
	tenant, name string
	generations  []int64
}

// OrphanedSubmit is a submit whose version will never end, since its knowledge base is deleted.
type OrphanedSubmit struct {
	Ref              messages.Ref
	SubmitID, Source string
}

// OrphanedSubmits returns up to limit submits that a deleted knowledge base left open and whose rows are
// still there, in order of document key and source, behind the one given (the zero value: from the first).
func (s *Store) OrphanedSubmits(ctx context.Context, after OrphanedSubmit, limit int) ([]OrphanedSubmit, error) {
	rows, err := s.pool.Query(ctx, query("deleted_open"), after.Ref.DocKey, after.Source, limit)
	if err != nil {
		return nil, fmt.Errorf("list submits of deleted knowledge bases: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (OrphanedSubmit, error) {
		var o OrphanedSubmit
		r := &o.Ref
		return o, row.Scan(&r.Tenant, &r.KB, &r.KBID, &r.Generation, &r.Subspace, &r.DocID, &r.DocKey, &r.Version, &r.Run, &o.SubmitID, &o.Source)
	})
	if err != nil {
		return nil, fmt.Errorf("list submits of deleted knowledge bases: %w", err)
	}
	return list, nil
}

// PurgeDeleted removes the data of knowledge bases deleted more than grace ago (longer than a query may
// run), in steps small enough to be interrupted anywhere: the next call goes on. It returns the names of
// those that are gone.
func (s *Store) PurgeDeleted(ctx context.Context, grace time.Duration) ([]string, error) {
	rows, err := s.pool.Query(ctx, query("kb_deleted"), grace.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list deleted knowledge bases: %w", err)
	}
	kbs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (deletedKB, error) {
		var k deletedKB
		return k, row.Scan(&k.id, &k.tenant, &k.name, &k.generations)
	})
	if err != nil {
		return nil, fmt.Errorf("list deleted knowledge bases: %w", err)
	}
	var gone []string
	for _, kb := range kbs {
		if err := s.purge(ctx, kb); err != nil {
			return gone, fmt.Errorf("purge knowledge base %s: %w", kb.name, err)
		}
		gone = append(gone, kb.tenant+"/"+kb.name)
	}
	return gone, nil
}

func (s *Store) purge(ctx context.Context, kb deletedKB) error {
	for _, g := range kb.generations {
		if err := s.dropIndexed(ctx, g); err != nil {
			return err
		}
	}
	if _, err := s.pool.Exec(ctx, query("purge_staged"), kb.id); err != nil {
		return err
	}
	for _, step := range []string{"purge_documents", "purge_blobs"} {
		if err := s.repeat(ctx, step, kb.id); err != nil {
			return err
		}
	}
	// The knowledge base's row goes in a later statement than what refers to it.
	for _, step := range []string{"purge_rest", "purge_kb"} {
		if _, err := s.pool.Exec(ctx, query(step), kb.id); err != nil {
			return err
		}
	}
	return nil
}

// repeat runs a statement that removes a batch until it removes nothing.
func (s *Store) repeat(ctx context.Context, name string, args ...any) error {
	for {
		tag, err := s.pool.Exec(ctx, query(name), args...)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
	}
}

// dropPartition detaches a partition without locking readers of the others out, then drops it. Each
// step is skipped when an earlier call did it; a detach that was interrupted is finished.
func (s *Store) dropPartition(ctx context.Context, generation int64) error {
	name := partition(generation)
	var exists, attached, pending bool
	if err := s.pool.QueryRow(ctx, query("partition_state"), name).Scan(&exists, &attached, &pending); err != nil {
		return err
	}
	how := " CONCURRENTLY"
	if pending {
		how = " FINALIZE"
	}
	if attached {
		if _, err := s.pool.Exec(ctx, "ALTER TABLE chunks DETACH PARTITION "+name+how); err != nil {
			return fmt.Errorf("detach %s: %w", name, err)
		}
	}
	if !exists {
		return nil
	}
	if _, err := s.pool.Exec(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
		return fmt.Errorf("drop %s: %w", name, err)
	}
	return nil
}
