package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// OpenSplit is a document whose lines are waited for, or to be removed.
type OpenSplit struct {
	Ref         messages.Ref // of the version that was split
	Waiting     bool         // all lines were taken in, and the version ends when they do
	Lines       messages.Lines
	RemoveBelow int64 // lines of older versions are to be removed; 0: of none
	Version     int64 // newest of the document
	Status      messages.DocumentStatus
	Order       Order // of the newest version
	KBDeleted   bool
}

// OpenSplits returns up to limit of them in order of document key, from the one after.
func (s *Store) OpenSplits(ctx context.Context, after int64, limit int) ([]OpenSplit, error) {
	rows, err := s.pool.Query(ctx, query("splits_open"), after, limit)
	if err != nil {
		return nil, fmt.Errorf("list split documents: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (OpenSplit, error) {
		var o OpenSplit
		var ns, seq int64
		r := &o.Ref
		err := row.Scan(&r.DocKey, &r.Version, &o.Waiting, &o.Lines, &o.RemoveBelow, &o.Version, &o.Status, &ns, &seq,
			&r.Subspace, &r.DocID, &r.KBID, &r.Tenant, &r.KB, &o.KBDeleted)
		o.Order = orderOf(ns, seq)
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("list split documents: %w", err)
	}
	return list, nil
}

// OldLine is a document that is a line of an older version of another.
type OldLine struct {
	Key             int64
	Subspace, DocID string
}

// OldLines returns up to limit lines of versions of a document older than below, in order of their keys, from the one after.
func (s *Store) OldLines(ctx context.Context, parent, below, after int64, limit int) ([]OldLine, error) {
	rows, err := s.pool.Query(ctx, query("split_older"), parent, below, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list old lines: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[OldLine])
	if err != nil {
		return nil, fmt.Errorf("list old lines: %w", err)
	}
	return list, nil
}

// OldLinesGone says that no line is left of versions older than below.
func (s *Store) OldLinesGone(ctx context.Context, parent, below int64) error {
	if _, err := s.pool.Exec(ctx, query("split_removed"), parent, below); err != nil {
		return fmt.Errorf("note that old lines are gone: %w", err)
	}
	return nil
}

// ForgetLines has deleted documents be lines no more.
func (s *Store) ForgetLines(ctx context.Context, parent int64, keys []int64) error {
	if _, err := s.pool.Exec(ctx, query("split_forget"), keys, parent); err != nil {
		return fmt.Errorf("forget old lines: %w", err)
	}
	return nil
}

// EndDelete ends the delete of a document whose lines are gone. Doing it again changes nothing.
func (s *Store) EndDelete(ctx context.Context, key, version int64) error {
	if _, err := s.pool.Exec(ctx, query("split_deleted"), key, version); err != nil {
		return fmt.Errorf("end a delete: %w", err)
	}
	return nil
}

// OpenLine returns the first line of a version with a key from the one given that has not ended; 0 when all have.
func (s *Store) OpenLine(ctx context.Context, ref messages.Ref, from int64) (int64, error) {
	key, err := openLine(ctx, s.pool, ref, from)
	if err != nil {
		return 0, fmt.Errorf("look for open lines of %s: %w", ref.DocID, err)
	}
	return key, nil
}

func openLine(ctx context.Context, q querier, ref messages.Ref, from int64) (key int64, err error) {
	err = q.QueryRow(ctx, query("split_open_line"), ref.DocKey, ref.Version, from).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return key, err
}

// EndSplit ends a version whose lines have all ended: Ready, or Failed when every one failed. What the document
// held itself before goes. ErrStale when there is nothing to end, or not yet.
func (s *Store) EndSplit(ctx context.Context, o OpenSplit) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if shared, err := shareKB(ctx, tx, o.Ref.KBID); err != nil || !shared {
			return errors.Join(err, ErrStale)
		}
		var live *int64
		err := tx.QueryRow(ctx, query("split_lock"), o.Ref.DocKey, o.Ref.Version).Scan(&live)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrStale
		}
		if err != nil {
			return err
		}
		if open, err := openLine(ctx, tx, o.Ref, 0); err != nil || open != 0 {
			return errors.Join(err, ErrStale)
		}
		if live != nil {
			if err := dropLive(ctx, tx, o.Ref); err != nil {
				return err
			}
		}
		lines := o.Lines
		if err := addFailed(ctx, tx, o.Ref, &lines); err != nil {
			return err
		}
		status, failure := messages.StatusReady, noneLeft(lines)
		if failure != nil {
			status = messages.StatusFailed
		}
		_, err = tx.Exec(ctx, query("split_end"), o.Ref.DocKey, o.Ref.Version, status, failure, lines)
		return err
	})
	if err != nil {
		return fmt.Errorf("end %s: %w", o.Ref.DocID, err)
	}
	return nil
}

// dropLive removes what a document held before it was split.
func dropLive(ctx context.Context, tx pgx.Tx, ref messages.Ref) error {
	generations, err := collectColumn[int64](ctx, tx, "kb_generations", ref.KBID)
	if err != nil {
		return err
	}
	for _, g := range generations {
		if _, err := tx.Exec(ctx, query("live_drop"), g, []int64{ref.DocKey}); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, query("build_skip"), []int64{ref.DocKey}, []int64{ref.Version}); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, query("swap_drop_versions"), []int64{ref.DocKey}, []int64{ref.Version})
	return err
}

// addFailed counts the lines that were taken in and then failed.
func addFailed(ctx context.Context, tx pgx.Tx, ref messages.Ref, lines *messages.Lines) error {
	rows, err := tx.Query(ctx, query("split_failed"), ref.DocKey, ref.Version, messages.MaxLineErrors)
	if err != nil {
		return err
	}
	var e messages.LineError
	total := 0
	var found []messages.LineError
	_, err = pgx.ForEachRow(rows, []any{&e.Line, &e.DocID, &e.Error, &total}, func() error {
		found = append(found, e)
		e = messages.LineError{}
		return nil
	})
	if err != nil {
		return err
	}
	lines.Late(found, total)
	return nil
}

// noneLeft is the failure of a document whose lines all failed.
func noneLeft(lines messages.Lines) *messages.Error {
	if lines.Failed < lines.Total {
		return nil
	}
	return lines.Failure()
}

// SplitEnd is an end whose events are to be published: of a version that was split, or of the delete of one.
type SplitEnd struct {
	Ref    messages.Ref
	Status messages.DocumentStatus
	Lines  *messages.Lines
	Error  *messages.Error
}

// SplitEnds returns up to limit of them, in order of document and version, from the one behind after;
// the zero Ref comes before all.
func (s *Store) SplitEnds(ctx context.Context, after messages.Ref, limit int) ([]SplitEnd, error) {
	rows, err := s.pool.Query(ctx, query("split_ends"), after.DocKey, after.Version, limit)
	if err != nil {
		return nil, fmt.Errorf("list ends of split documents: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (SplitEnd, error) {
		var e SplitEnd
		r := &e.Ref
		return e, row.Scan(&r.DocKey, &r.Version, &e.Status, &e.Lines, &e.Error, &r.Subspace, &r.DocID, &r.KBID, &r.Tenant, &r.KB)
	})
	if err != nil {
		return nil, fmt.Errorf("list ends of split documents: %w", err)
	}
	return list, nil
}

// SplitTold says that the events of an end are published.
func (s *Store) SplitTold(ctx context.Context, ref messages.Ref) error {
	if _, err := s.pool.Exec(ctx, query("split_told"), ref.DocKey, ref.Version); err != nil {
		return fmt.Errorf("note that the end of %s is told: %w", ref.DocID, err)
	}
	return nil
}
