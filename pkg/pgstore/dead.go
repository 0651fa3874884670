package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// NewDeadLetter is a message that could not be processed, as taken from the dead-letter stream.
type NewDeadLetter struct {
	Source     string // identity of the message: recorded once
	Tenant, KB string
	Ref        *messages.Ref // the version it was for; nil when it fits none
	Subspace   string
	DocID      string
	Stage      string
	Error      messages.Error
	Attempts   int
	Subject    string
	Headers    map[string]string
	Body       []byte
}

// RecordDeadLetter writes a dead letter and, when it is for a version that is still being worked on,
// marks that one Failed, in one transaction. failed says whether the version is Failed, now or from an
// earlier delivery of the same letter, even if a newer version has come since. A build of a job fails alone, and its job tells.
func (s *Store) RecordDeadLetter(ctx context.Context, d NewDeadLetter) (failed bool, err error) {
	if d.Ref != nil && d.Ref.Build {
		return false, s.failBuild(ctx, d)
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		var kbID, version *int64
		if d.Ref != nil {
			kbID, version = &d.Ref.KBID, &d.Ref.Version
		}
		var id int64
		err := tx.QueryRow(ctx, query("dead_insert"), d.Source, d.Tenant, d.KB, kbID, d.Subspace, d.DocID, version, d.Stage,
			d.Error, d.Attempts, d.Subject, d.Headers, d.Body).Scan(&id)
		fresh := !errors.Is(err, pgx.ErrNoRows)
		if err != nil && fresh {
			return err
		}
		if d.Ref == nil {
			return nil
		}
		if shared, err := shareKB(ctx, tx, d.Ref.KBID); err != nil {
			return err
		} else if fresh && shared { // else the upkeep tells of the end
			if _, err := tx.Exec(ctx, query("dead_fail"), d.Ref.DocKey, d.Ref.Version, d.Ref.KBID, d.Error, d.Attempts, id); err != nil {
				return err
			}
		}
		err = tx.QueryRow(ctx, query("dead_failed"), d.Ref.DocKey, d.Ref.Version, d.Ref.KBID, d.Source).Scan(&failed)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record dead letter of %s: %w", d.Stage, err)
	}
	return failed, nil
}

// ListDeadLetters returns up to limit dead letters of a tenant, newest first, with ids below before (0:
// from the newest). Empty kb and stage mean all.
func (s *Store) ListDeadLetters(ctx context.Context, tenant, kb, stage, state string, before int64, limit int) ([]messages.DeadLetter, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.pool.Query(ctx, query("dead_list"), tenant, kb, stage, state, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.DeadLetter, error) {
		var d messages.DeadLetter
		return d, row.Scan(deadTargets(&d)...)
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

func deadTargets(d *messages.DeadLetter) []any {
	return []any{&d.ID, &d.KB, &d.Subspace, &d.DocID, &d.Version, &d.Stage, &d.Error, &d.Attempts, &d.Subject, &d.SizeBytes, &d.State, &d.At}
}

// GetDeadLetter returns a dead letter with headers and body; an unknown one is NOT_FOUND.
func (s *Store) GetDeadLetter(ctx context.Context, tenant string, id int64) (messages.DeadLetterDetail, error) {
	var d messages.DeadLetterDetail
	var headers json.RawMessage
	err := s.pool.QueryRow(ctx, query("dead_get"), tenant, id).Scan(append(deadTargets(&d.DeadLetter), &headers, &d.Body)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, deadNotFound(id)
	}
	if err == nil {
		err = json.Unmarshal(headers, &d.Headers)
	}
	if err != nil {
		return d, fmt.Errorf("get dead letter %d: %w", id, err)
	}
	return d, nil
}

func deadNotFound(id int64) error {
	return &messages.Error{Code: messages.CodeNotFound, Field: "id", Message: fmt.Sprintf("there is no open dead letter %d", id)}
}

// MarkDeadLetter records what was done with an open dead letter: replayed or discarded. Doing the same
// again is no error; one that ended otherwise is NOT_FOUND.
func (s *Store) MarkDeadLetter(ctx context.Context, tenant string, id int64, state string) error {
	tag, err := s.pool.Exec(ctx, query("dead_mark"), tenant, id, state)
	if err != nil {
		return fmt.Errorf("mark dead letter %d: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return deadNotFound(id)
	}
	return nil
}

// ReopenVersion takes a Failed newest version up again from the start: Pending, with a raised run. ok is
// false when that version is not the newest or did not fail.
func (s *Store) ReopenVersion(ctx context.Context, tenant, kb, subspace, docID string, version int64) (ref messages.Ref, ok bool, err error) {
	ref = messages.Ref{Tenant: tenant, KB: kb, Subspace: subspace, DocID: docID, Version: version}
	err = s.pool.QueryRow(ctx, query("replay_version"), tenant, kb, subspace, docID, version).Scan(&ref.DocKey, &ref.KBID, &ref.Generation, &ref.Run)
	if errors.Is(err, pgx.ErrNoRows) {
		return ref, false, nil
	}
	if err != nil {
		return ref, false, fmt.Errorf("take up %s again: %w", docID, err)
	}
	return ref, true, nil
}
