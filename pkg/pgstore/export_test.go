package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// Query gives tests the text of a fixed statement.
func Query(name string) string { return query(name) }

// ReuseFrom gives tests the statement that takes known vectors from a generation.
func ReuseFrom(generation int64) string { return reuseFrom(generation) }

// AgePlans has searches on a connection find its plans too old.
func AgePlans(conn *pgx.Conn) { delete(conn.PgConn().CustomData(), plansMade) }

// SQL is a statement with its arguments.
type SQL struct {
	Text string
	Args []any
}

// HybridSQL gives tests the hybrid statement of a plan.
func HybridSQL(plan SearchPlan, ids []int64) (SQL, error) {
	r := &searchRun{plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	var hits []postings.Hit
	for _, id := range ids {
		hits = append(hits, postings.Hit{ChunkID: id})
	}
	st, err := r.hybridStatement(hits, tieMargin)
	if err != nil {
		return SQL{}, err
	}
	return SQL{st.text.String(), st.args}, nil
}

// HiddenSQL gives tests the statement that lists the chunks nothing may find.
func HiddenSQL(generation int64) SQL {
	st := hiddenStatement(generation)
	return SQL{st.text.String(), st.args}
}

// LookSQL and AllowedSQL give tests the statements that ask which chunks a plan allows: some, or all.
func LookSQL(plan SearchPlan, ids []int64) SQL {
	r := &searchRun{plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	st := r.lookStatement(ids)
	return SQL{st.text.String(), st.args}
}

// AllowedSQL see LookSQL.
func AllowedSQL(plan SearchPlan) SQL {
	r := &searchRun{plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	st := r.allowedStatement()
	return SQL{st.text.String(), st.args}
}

// ContentSQL and CutSQL give tests the statements over chunk ids.
func ContentSQL(generation int64, ids []int64) SQL {
	st := contentStatement(generation, ids, false, Reading{})
	return SQL{st.text.String(), st.args}
}

// CutSQL see ContentSQL.
func CutSQL(generation int64, ids []int64, limit int) SQL {
	st := cutStatement(generation, ids, limit)
	return SQL{st.text.String(), st.args}
}

// ListSQL gives tests the statement of a listing.
func ListSQL(plan ListPlan, subspace *string) SQL {
	st := plan.statement(subspace, plan.rows()+1)
	return SQL{st.text.String(), st.args}
}

// ChunkTerms is how often each term occurs in a chunk, and its length.
type ChunkTerms struct {
	Len   int
	Terms map[int64]int
}

// FullText gives tests the chunks of a generation in one snapshot, by id: as its posting segments have them, less the
// tombstones, and as the chunks do. A tombstone of no chunk in a segment is an error.
func (s *Store) FullText(ctx context.Context, generation int64) (indexed, stored map[int64]ChunkTerms, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if indexed, err = indexedTerms(ctx, tx, generation); err != nil {
			return err
		}
		stored, err = storedTerms(ctx, tx, generation)
		return err
	})
	return indexed, stored, err
}

func indexedTerms(ctx context.Context, tx pgx.Tx, generation int64) (map[int64]ChunkTerms, error) {
	tombstones, err := collectColumn[int64](ctx, tx, "tombstones", generation)
	if err != nil {
		return nil, err
	}
	sizes, err := segmentSizes(ctx, tx, generation, nil)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, size := range sizes {
		ids = append(ids, size.ID)
	}
	parts, applied, err := loadParts(ctx, tx, generation, ids, tombstones)
	if err != nil {
		return nil, err
	}
	if len(applied) != len(tombstones) {
		return nil, fmt.Errorf("%d of %d tombstones are of chunks in a segment", len(applied), len(tombstones))
	}
	out := map[int64]ChunkTerms{}
	for _, p := range parts {
		for ord, id := range p.Segment.ChunkIDs {
			if !p.Dead.Has(ord) {
				out[id] = ChunkTerms{p.Segment.Len(ord), map[int64]int{}}
			}
		}
		for _, row := range p.Postings {
			entries, err := postings.AppendEntries(nil, row, p.Segment.N)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if !p.Dead.Has(int(e.Ord)) {
					out[p.Segment.ChunkIDs[e.Ord]].Terms[row.Term] = int(e.TF)
				}
			}
		}
	}
	return out, nil
}

func storedTerms(ctx context.Context, tx pgx.Tx, generation int64) (map[int64]ChunkTerms, error) {
	rows, err := tx.Query(ctx, `SELECT chunk_id, lex_len, lex FROM chunks WHERE generation = $1`, pgx.QueryResultFormats{pgx.BinaryFormatCode}, generation)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int64]ChunkTerms{}
	var reader termReader
	for rows.Next() {
		raw := rows.RawValues()
		terms, err := reader.read(raw[2])
		if err != nil {
			return nil, err
		}
		c := ChunkTerms{bigEndian32(raw[1]), map[int64]int{}}
		for _, t := range terms {
			c.Terms[t.Term] += t.TF
		}
		out[bigEndian64(raw[0])] = c
	}
	return out, rows.Err()
}
