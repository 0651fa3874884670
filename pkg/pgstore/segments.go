package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// GenerationsToMerge lists the generations whose segments may want merging.
func (s *Store) GenerationsToMerge(ctx context.Context) ([]int64, error) {
	ids, err := collectColumn[int64](ctx, s.pool, "merge_due")
	if err != nil {
		return nil, fmt.Errorf("list generations to merge: %w", err)
	}
	return ids, nil
}

// MergeSegments runs one merge of a generation, if the policy asks for one, nobody else is merging
// it and it is not dead. It drops the tombstones it applied and no others: a delete that races it is found by the next.
// merged says whether anything changed.
func (s *Store) MergeSegments(ctx context.Context, generation int64) (merged bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		var got bool
		if err := tx.QueryRow(ctx, query("merge_lock"), generation).Scan(&got); err != nil || !got {
			return err
		}
		merged, err = merge(ctx, tx, generation)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("merge segments of generation %d: %w", generation, err)
	}
	return merged, nil
}

func merge(ctx context.Context, tx pgx.Tx, generation int64) (bool, error) {
	tombstones, err := collectColumn[int64](ctx, tx, "tombstones", generation)
	if err != nil {
		return false, err
	}
	sizes, err := segmentSizes(ctx, tx, generation, tombstones)
	if err != nil {
		return false, err
	}
	pick := postings.PickMerge(sizes)
	if len(pick) == 0 {
		return false, nil
	}
	parts, applied, err := loadParts(ctx, tx, generation, pick, tombstones)
	if err != nil {
		return false, err
	}
	seg, rows, err := postings.Merge(parts)
	if err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, query("segments_drop"), generation, pick); err != nil {
		return false, err
	}
	if len(applied) > 0 {
		if _, err := tx.Exec(ctx, query("tombstones_drop"), generation, applied); err != nil {
			return false, err
		}
	}
	if seg.N == 0 {
		return true, nil
	}
	return true, writeSegment(ctx, tx, generation, seg, rows)
}

func segmentSizes(ctx context.Context, tx pgx.Tx, generation int64, tombstones []int64) ([]postings.SegmentSize, error) {
	rows, err := tx.Query(ctx, query("segment_sizes"), generation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (postings.SegmentSize, error) {
		var size postings.SegmentSize
		var ids []byte
		if err := row.Scan(&size.ID, &size.N, &ids); err != nil {
			return size, err
		}
		if len(tombstones) > 0 {
			seg := postings.Segment{N: size.N, ChunkIDs: decodeIDs(ids)}
			_, dead := seg.MarkDead(tombstones)
			size.Dead = len(dead)
		}
		return size, nil
	})
}

// loadParts reads the picked segments whole, and which tombstones fall into them.
func loadParts(ctx context.Context, tx pgx.Tx, generation int64, pick, tombstones []int64) ([]postings.Part, []int64, error) {
	segments, err := loadSegments(ctx, tx, generation, pick)
	if err != nil {
		return nil, nil, err
	}
	var applied []int64
	parts := make([]postings.Part, len(segments))
	for i, seg := range segments {
		rows, err := tx.Query(ctx, query("segment_postings"), generation, seg.ID)
		if err != nil {
			return nil, nil, err
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (postings.Posting, error) {
			p := postings.Posting{Seg: seg.ID}
			return p, row.Scan(&p.Term, &p.N, &p.Data)
		})
		if err != nil {
			return nil, nil, err
		}
		dead, found := seg.MarkDead(tombstones)
		applied = append(applied, found...)
		parts[i] = postings.Part{Segment: seg, Postings: list, Dead: dead}
	}
	return parts, applied, nil
}

func loadSegments(ctx context.Context, tx querier, generation int64, ids []int64) ([]*postings.Segment, error) {
	rows, err := tx.Query(ctx, query("segments_get"), generation, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*postings.Segment, error) {
		seg := new(postings.Segment)
		var chunkIDs []byte
		if err := row.Scan(&seg.ID, &seg.N, &seg.SumLen, &chunkIDs, &seg.Lens); err != nil {
			return nil, err
		}
		seg.ChunkIDs = decodeIDs(chunkIDs)
		return seg, seg.Check()
	})
}
