package engine

import (
	"context"
	"errors"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// listing reports whether the query ranks nothing.
func (r *request) listing() bool { return r.Query.Type == messages.QueryFilter }

// checkListing checks what a FILTER query needs, and what it cannot use.
func (r *request) checkListing() error {
	if !r.filtered {
		return messages.Invalid("retrievalConfiguration.filter", "is missing, and a FILTER query needs it")
	}
	if r.Query.Text != "" || r.Query.Vector != nil {
		r.note("text and vector play no part in a FILTER query")
	}
	return nil
}

// list answers a FILTER query: chunks in order of subspace, document id and chunk id, from the start or from
// where the cursor says.
func (e *Engine) list(ctx context.Context, r *request) (*Answer, error) {
	plan := e.listPlan(r)
	if r.GroupBy != nil {
		plan.PerDocument = max(r.GroupBy.ChunksPerGroup, 1)
	}
	if r.Cursor != "" {
		at, err := e.Cursors.OpenPlace(r.owner, r.Cursor)
		if err != nil {
			return nil, err
		}
		if at.KBID != r.kb.ID || at.Generation != r.kb.Generation.ID {
			return nil, e.checked(ctx, r.kb, cursor.Expired())
		}
		plan.After = &pgstore.Place{Subspace: at.Subspace, DocID: at.DocID, Ordinal: at.Ordinal}
	}
	found, more, err := e.Searcher.List(ctx, plan)
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		e.kbs.forget(r.kb)
	}
	if err != nil {
		return nil, err
	}
	return e.shapeListing(r, found, more), nil
}

func (e *Engine) listPlan(r *request) pgstore.ListPlan {
	return pgstore.ListPlan{
		KB: r.kb.KB, Subspaces: r.plan.Subspaces, Where: r.plan.Where, Limit: r.settings.Fusion.Limit, Vectors: r.settings.Output.Vector,
		Reading: e.pageReading(r),
	}
}

func (e *Engine) shapeListing(r *request, found pgstore.SearchResult, more bool) *Answer {
	kept, cut := whole(found.Kept)
	reply := &messages.RetrieveReply{Results: make([]messages.RetrievedChunk, len(kept)), Truncated: cut, Diagnostics: r.diag}
	reply.Diagnostics.Fusion = messages.PathFilter
	reply.Diagnostics.Timing.SQLMillis = millis(found.SQL)
	for i := range kept {
		reply.Results[i] = r.listed(&kept[i])
	}
	a := &Answer{Reply: reply, bound: cursor.PlaceBound()}
	a.seal = func(results int) string { return e.Cursors.SealPlace(r.owner, r.placeOf(&kept[results-1])) }
	if n := len(kept); more || cut {
		reply.NextCursor = a.seal(n)
	}
	return a
}

// placeOf is the place behind a result.
func (r *request) placeOf(last *pgstore.Content) cursor.Place {
	return cursor.Place{KBID: r.kb.ID, Generation: r.kb.Generation.ID, Subspace: last.Subspace, DocID: last.DocID, Ordinal: last.Ordinal}
}

// listed is a result without anything that comes of ranking.
func (r *request) listed(c *pgstore.Content) messages.RetrievedChunk {
	out := r.result(c, &cursor.Entry{})
	out.RawScore, out.RawScoreScaled, out.RetrievalPath, out.Explain = nil, nil, messages.PathFilter, nil
	return out
}
