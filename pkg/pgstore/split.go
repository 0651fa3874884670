package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// Line places a document in the one that it is a line of. The zero value: it is no line.
type Line struct {
	Parent  int64 // key of that document
	Version int64 // newest of its versions that has the line
	Number  int   // in the file, from 1
}

// olderIs reports whether l, if it is set, has an older version of the document that cur is a line of.
func (l Line) olderIs(cur Line) bool {
	return l == Line{} || l.Parent == cur.Parent && cur.Version < l.Version
}

// Split is what splitting needs of a version besides its content.
type Split struct {
	Order    Order           // that its lines share
	Metadata json.RawMessage // that its lines inherit
}

// BeginSplit returns how a version is to be split. ErrStale when there is nothing left to do.
func (s *Store) BeginSplit(ctx context.Context, ref messages.Ref) (Split, error) {
	var sp Split
	var ns, seq int64
	err := s.pool.QueryRow(ctx, query("split_load"), ref.DocKey, ref.Version, ref.KBID).Scan(&ns, &seq, &sp.Metadata)
	if errors.Is(err, pgx.ErrNoRows) {
		return sp, ErrStale
	}
	if err != nil {
		return sp, fmt.Errorf("begin to split %s: %w", ref.DocID, err)
	}
	sp.Order = orderOf(ns, seq)
	return sp, nil
}

func orderOf(ns, seq int64) Order { return Order{At: time.Unix(0, ns), Seq: uint64(seq)} } //nolint:gosec // stored from one

// AcceptLines is AcceptSubmits for lines of a version: ErrStale when that is not being worked on any more. A newer
// version, or a delete, comes before or after the transaction, so that no line is left behind by it.
func (s *Store) AcceptLines(ctx context.Context, parent messages.Ref, subs []Submission) ([]Acceptance, error) {
	return s.acceptAll(ctx, subs, func(b *pgx.Batch) {
		b.Queue(query("split_fence"), parent.DocKey, parent.Version).Query(func(rows pgx.Rows) error {
			_, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
			if errors.Is(err, pgx.ErrNoRows) {
				return ErrStale
			}
			return err
		})
	})
}

// KeepLines has documents stay that are lines of an older version and could not be read in this one.
func (s *Store) KeepLines(ctx context.Context, parent messages.Ref, subspaces, docIDs []string) error {
	if _, err := s.pool.Exec(ctx, query("split_keep"), parent.DocKey, parent.Version, parent.KBID, subspaces, docIDs); err != nil {
		return fmt.Errorf("keep lines of %s: %w", parent.DocID, err)
	}
	return nil
}

// CountLines writes down how far the splitting of a version came. ErrStale when it is not being split any more.
func (s *Store) CountLines(ctx context.Context, ref messages.Ref, lines messages.Lines) error {
	return s.countLines(ctx, "split_lines", ref, ref.DocKey, ref.Version, lines)
}

// LinesTaken says that all lines of a version were taken in: it ends when they do. With removeOthers, what was a
// line of an older version and is none of this one is removed.
func (s *Store) LinesTaken(ctx context.Context, ref messages.Ref, lines messages.Lines, removeOthers bool) error {
	return s.countLines(ctx, "split_done", ref, ref.DocKey, ref.Version, lines, removeOthers)
}

func (s *Store) countLines(ctx context.Context, name string, ref messages.Ref, args ...any) error {
	tag, err := s.pool.Exec(ctx, query(name), args...)
	if err != nil {
		return fmt.Errorf("count lines of %s: %w", ref.DocID, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrStale
	}
	return nil
}
