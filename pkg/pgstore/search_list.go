package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// ListPlan reads the chunks that may be found, by the rules of Search, in order of subspace, document id and
// ordinal. Nothing is ranked.
type ListPlan struct {
	KB        KB        // as resolved; ErrGenerationChanged when it is not so any more
	Subspaces []string  // nil: all; empty: none
	Where     Predicate // over d only; nil: no restriction
	After     *Place    // where the page before ended; nil: from the start
	Limit     int       // of chunks, or with PerDocument of documents; 1 or more
	// PerDocument takes that many chunks of each document, the first ones; 0: all of them. A page then ends
	// before Limit when it holds MaxListed chunks.
	PerDocument int
	Vectors     bool
	Reading     Reading
}

// MaxListed is how many chunks a page of PerDocument has at most, unless Limit is larger.
const MaxListed = 1000

// Place is the identity of a chunk in the order of a listing.
type Place struct {
	Subspace, DocID string
	Ordinal         int
}

// List returns a page, and whether there is more behind it.
func (s *Searcher) List(ctx context.Context, plan ListPlan) (SearchResult, bool, error) {
	run := s.newRun(SearchPlan{KB: plan.KB, Subspaces: plan.Subspaces, Where: plan.Where, Vectors: plan.Vectors, Reading: plan.Reading})
	more := false
	err := run.inSnapshot(ctx, func() error {
		found, err := run.listed(ctx, plan)
		if err != nil {
			return err
		}
		n := plan.fitting(found)
		run.res.Matches, more = found[:n], n < len(found)
		ids := make([]int64, n)
		for i := range ids {
			ids[i] = found[i].ChunkID
		}
		return run.contents(ctx, ids)
	})
	if err != nil {
		return SearchResult{}, false, fmt.Errorf("list chunks of %s: %w", plan.KB.Name, err)
	}
	return run.res, more, nil
}

// rows is how many chunks a page may have.
func (p *ListPlan) rows() int {
	if p.PerDocument == 0 {
		return p.Limit
	}
	return min(p.Limit*p.PerDocument, max(p.Limit, MaxListed))
}

// fitting is how many of the chunks make the page.
func (p *ListPlan) fitting(found []Match) int {
	n := min(len(found), p.rows())
	if p.PerDocument == 0 {
		return n
	}
	documents := 0
	for i := range found[:n] {
		if i == 0 || found[i].Subspace != found[i-1].Subspace || found[i].DocID != found[i-1].DocID {
			if documents++; documents > p.Limit {
				return i
			}
		}
	}
	return n
}

// listed is the page and, where there is one, the chunk behind it. Each subspace is a statement of its own: a
// scan of several would not come in order.
func (r *searchRun) listed(ctx context.Context, plan ListPlan) ([]Match, error) {
	b := r.snap.batch()
	r.check(b)
	if plan.Subspaces == nil {
		return r.listPart(ctx, b, &plan, nil, plan.rows()+1)
	}
	var out []Match
	for _, name := range slices.Compact(slices.Sorted(slices.Values(plan.Subspaces))) {
		if plan.After != nil && name < plan.After.Subspace {
			continue
		}
		found, err := r.listPart(ctx, b, &plan, &name, plan.rows()+1-len(out))
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) > plan.rows() {
			return out, nil
		}
		b = r.snap.batch()
	}
	if r.snap.begun {
		return out, nil
	}
	return out, r.snap.run(ctx, b) // only the check
}

func (r *searchRun) listPart(ctx context.Context, b *pgx.Batch, plan *ListPlan, subspace *string, limit int) ([]Match, error) {
	var out []Match
	st := plan.statement(subspace, limit)
	b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
		var m Match
		_, err := pgx.ForEachRow(rows, []any{&m.ChunkID, &m.Ordinal, &m.Subspace, &m.DocID}, func() error {
			out = append(out, m)
			return nil
		})
		return err
	})
	return out, r.snap.run(ctx, b)
}

// statement walks the documents by their unique index and stops when there are enough chunks. OFFSET 0 keeps
// the chunks of a document a probe of their index, whatever the statistics say.
func (p *ListPlan) statement(subspace *string, limit int) *statement {
	s := &statement{}
	generation := p.KB.Generation.ID
	s.add("SELECT c.chunk_id, c.ordinal, d.subspace, d.doc_id FROM documents d CROSS JOIN LATERAL (SELECT x.chunk_id, x.ordinal FROM ",
		partition(generation), " x WHERE x.generation = ", s.arg(generation), " AND x.document_key = d.key AND x.version = d.live_version AND x.active")
	if p.PerDocument > 0 {
		s.add(" ORDER BY x.ordinal LIMIT ", s.arg(p.PerDocument))
	}
	s.add(" OFFSET 0) c WHERE d.kb_id = ", s.arg(p.KB.ID), " AND d.live_version IS NOT NULL")
	if subspace != nil {
		s.add(" AND d.subspace = ", s.arg(*subspace))
	}
	if a := p.After; a != nil {
		sub, doc := s.arg(a.Subspace), s.arg(a.DocID)
		s.add(" AND (d.subspace, d.doc_id) >= (", sub, ", ", doc, ") AND (d.subspace, d.doc_id, c.ordinal) > (", sub, ", ", doc, ", ", s.arg(a.Ordinal), ")")
	}
	if p.Where != nil {
		s.add(" AND (", p.Where(s.arg), ")")
	}
	s.add(" ORDER BY d.subspace, d.doc_id, c.ordinal LIMIT ", s.arg(limit))
	return s
}
