package engine

import (
	"context"
	"errors"
	"math"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// Answer is a reply that can still be cut.
type Answer struct {
	Reply *messages.RetrieveReply
	seal  func(results int) string // the cursor for what follows the first results
	bound int
}

// CursorBytes is how long the cursor of the answer is at most, wherever it is cut.
func (a *Answer) CursorBytes() int { return a.bound }

// Cut leaves the first n results, 1 or more; the cursor leads to the others.
func (a *Answer) Cut(n int) {
	a.Reply.Results, a.Reply.Truncated = a.Reply.Results[:n], true
	a.Reply.NextCursor = a.seal(n)
}

// keep fuses the legs, brings the results into their final order and says whose content is wanted.
func (r *request) keep(found pgstore.Found) []int64 {
	ids := make(map[fusion.Key]int64, len(found.Matches))
	candidates := make([]fusion.Candidate, len(found.Matches))
	for i, m := range found.Matches {
		k := fusion.Key{Subspace: m.Subspace, DocID: m.DocID, ChunkID: m.Ordinal}
		ids[k] = m.ChunkID
		candidates[i] = fusion.Candidate{
			Key:   k,
			Dense: fusion.Standing{Raw: m.Similarity, Known: m.HasSimilarity, Rank: m.DenseRank},
			Text:  fusion.Standing{Raw: m.BM25, Known: r.plan.Text != nil || found.FellBack, Rank: m.TextRank},
		}
	}
	fused, err := fusion.Fuse(r.fusion(found), candidates)
	if r.fuseErr = err; err != nil {
		return nil
	}
	if !found.FellBack {
		fused = above(fused, r.settings.Threshold)
	}
	if r.GroupBy != nil {
		fused = grouped(fused, max(r.GroupBy.ChunksPerGroup, 1))
	}
	r.fill(fused, ids, found)
	docs := make([]document, len(fused))
	for i, f := range fused {
		docs[i] = document{f.Key.Subspace, f.Key.DocID}
	}
	kept := make([]int64, r.pageOf(docs))
	for i := range kept {
		kept[i] = r.page.Entries[i].ChunkID
	}
	return kept
}

// fusion is the configuration without the cut: what is not returned now is for the cursor.
func (r *request) fusion(found pgstore.Found) fusion.Config {
	c := r.settings.Fusion
	c.Limit = math.MaxInt
	if found.FellBack {
		c.Legs, c.DenseWeight, c.TextWeight = fusion.Legs{Text: true}, 1, 1
	}
	return c
}

// above keeps the results that reach a threshold.
func above(fused []fusion.Result, threshold float64) []fusion.Result {
	for i, f := range fused {
		if f.Score < threshold {
			return fused[:i] // they come by falling score
		}
	}
	return fused
}

// grouped keeps n chunks of each document, side by side, documents in the order of their best chunks.
func grouped(fused []fusion.Result, n int) []fusion.Result {
	at := map[document]int{}
	var groups [][]fusion.Result
	for _, f := range fused {
		d := document{f.Key.Subspace, f.Key.DocID}
		i, ok := at[d]
		if !ok {
			i = len(groups)
			at[d] = i
			groups = append(groups, nil)
		}
		if len(groups[i]) < n {
			groups[i] = append(groups[i], f)
		}
	}
	out := make([]fusion.Result, 0, len(fused))
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

type document struct{ subspace, id string }

// pageOf is how many of the results, given by their documents, make a page: as many as asked for, or with
// groups all of as many documents.
func (r *request) pageOf(docs []document) int {
	limit := r.settings.Fusion.Limit
	if r.GroupBy == nil {
		return min(limit, len(docs))
	}
	seen := 0
	for i, d := range docs {
		if i == 0 || d != docs[i-1] {
			if seen++; seen > limit {
				return i
			}
		}
	}
	return len(docs)
}

// fill puts the results down as a cursor holds them.
func (r *request) fill(fused []fusion.Result, ids map[fusion.Key]int64, found pgstore.Found) {
	p := cursor.Page{KBID: r.kb.ID, Generation: r.kb.Generation.ID, Fusion: r.fusionName(found), Fallback: found.FellBack}
	p.Entries = make([]cursor.Entry, len(fused))
	dense, text := r.plan.Dense != nil && !found.FellBack, r.plan.Text != nil || found.FellBack
	for i, f := range fused {
		e := cursor.Entry{ChunkID: ids[f.Key], Score: f.Score, Raw: f.Raw, Scaled: f.Scaled}
		if r.Explain && dense {
			p.DenseWeight, e.Dense = f.Dense.Weight, &cursor.Share{Rank: f.Dense.Rank, Raw: f.Dense.Raw, Part: f.Dense.Part}
		}
		if r.Explain && text {
			p.TextWeight, e.Text = f.Text.Weight, &cursor.Share{Rank: f.Text.Rank, Raw: f.Text.Raw, Part: f.Text.Part}
		}
		p.Entries[i] = e
	}
	r.page = p
}

// fusionName is the method, or the leg that answered alone.
func (r *request) fusionName(found pgstore.Found) string {
	switch {
	case r.plan.Dense == nil || found.FellBack:
		return string(messages.FullText)
	case r.plan.Text == nil:
		return string(messages.DenseVector)
	}
	return string(r.settings.Fusion.Method)
}

// first is the answer to a search.
func (e *Engine) first(r *request, found pgstore.SearchResult) *Answer {
	if found.PrefixesCut {
		r.note("a prefix stands for more words than were looked for")
	}
	places := make([]int, len(found.Kept))
	for i := range places {
		places[i] = i
	}
	return e.shape(r, found, places)
}

// next is the answer to a request with a cursor: the results behind those delivered, as far as they are
// still there.
func (e *Engine) next(ctx context.Context, r *request) (*Answer, error) {
	var err error
	if r.page, err = e.Cursors.Open(r.owner, r.Cursor); err != nil {
		return nil, err
	}
	if r.page.KBID != r.kb.ID || r.page.Generation != r.kb.Generation.ID {
		return nil, e.checked(ctx, r.kb, cursor.Expired())
	}
	ids, at := make([]int64, len(r.page.Entries)), make(map[int64]int, len(r.page.Entries))
	for i, entry := range r.page.Entries {
		ids[i], at[entry.ChunkID] = entry.ChunkID, i
	}
	end := len(ids) // of the entries that this page looks at
	found, err := e.Searcher.Read(ctx, pgstore.ReadPlan{
		KB: r.kb.KB, Subspaces: r.plan.Subspaces, Where: r.plan.Where, IDs: ids, Vectors: r.settings.Output.Vector,
		Keep: func(there []pgstore.Match) []int64 {
			kept := r.take(there)
			if len(kept) < len(there) {
				end = at[there[len(kept)].ChunkID]
			}
			return kept
		},
	})
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		e.kbs.forget(r.kb)
	}
	if err != nil {
		return nil, err
	}
	places := make([]int, len(found.Kept))
	for i := range places {
		places[i] = at[found.Kept[i].ChunkID]
	}
	r.diag.Skipped = end - len(places)
	if end == len(ids) && len(places) > 0 { // what is left is gone
		r.page.Entries = r.page.Entries[:places[len(places)-1]+1]
	}
	return e.shape(r, found, places), nil
}

// take is the page of those that are still there.
func (r *request) take(there []pgstore.Match) []int64 {
	docs := make([]document, len(there))
	for i, m := range there {
		docs[i] = document{m.Subspace, m.DocID}
	}
	kept := make([]int64, r.pageOf(docs))
	for i := range kept {
		kept[i] = there[i].ChunkID
	}
	return kept
}
