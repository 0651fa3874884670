package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ReadPlan reads chunks that an earlier search of the same generation found.
type ReadPlan struct {
	KB        KB // as resolved; ErrGenerationChanged when it is not so any more
	Subspaces []string
	Where     Predicate
	IDs       []int64 // in the order wanted
	Vectors   bool
	Reading   Reading
	// Keep chooses, of the chunks that may still be found, those whose content is wanted. It gets them
	// in the order of IDs; only identities are set.
	Keep func(there []Match) []int64
}

// Read returns chunks in the order of Keep. What is gone meanwhile (a new version, a delete), inactive, or
// outside subspaces and predicate, is left out: the rules are those of Search.
func (s *Searcher) Read(ctx context.Context, plan ReadPlan) (SearchResult, error) {
	run := s.newRun(SearchPlan{KB: plan.KB, Subspaces: plan.Subspaces, Where: plan.Where, Vectors: plan.Vectors, Reading: plan.Reading})
	err := run.inSnapshot(ctx, func() error {
		b := run.snap.batch()
		run.check(b)
		there, err := run.stillThere(ctx, b, plan.IDs)
		if err != nil {
			return err
		}
		run.res.Matches = there
		return run.contents(ctx, plan.Keep(there))
	})
	if err != nil {
		return SearchResult{}, fmt.Errorf("read chunks of %s: %w", plan.KB.Name, err)
	}
	return run.res, nil
}

func (r *searchRun) stillThere(ctx context.Context, b *pgx.Batch, ids []int64) ([]Match, error) {
	byID := make(map[int64]Match, len(ids))
	st := r.thereStatement(ids)
	b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
		var m Match
		_, err := pgx.ForEachRow(rows, []any{&m.ChunkID, &m.Ordinal, &m.Subspace, &m.DocID}, func() error {
			byID[m.ChunkID] = m
			return nil
		})
		return err
	})
	if err := r.snap.run(ctx, b); err != nil {
		return nil, err
	}
	there := make([]Match, 0, len(byID))
	for _, id := range ids {
		if m, ok := byID[id]; ok {
			there = append(there, m)
			delete(byID, id) // an id given twice counts once
		}
	}
	return there, nil
}

func (r *searchRun) thereStatement(ids []int64) *statement {
	s := &statement{}
	s.add("SELECT c.chunk_id, c.ordinal, d.subspace, d.doc_id")
	s.fromIDs(r.plan.KB.Generation.ID, ids)
	s.add(" WHERE ", r.visible(s))
	return s
}
