package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

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

// candidate is a chunk that a leg listed.
type candidate struct {
	fusion.Candidate
	id int64
}

// keep says whose content is wanted: that of the first page, or of all candidates when their order needs it.
func (r *request) keep(found pgstore.Found) []int64 {
	r.gather(found)
	if !r.whole {
		return r.order()
	}
	likely := slices.Clone(r.pool) // first what is likely to be shown: not all may be read
	slices.SortStableFunc(likely, func(a, b candidate) int { return cmp.Compare(a.bestRank(), b.bestRank()) })
	ids := make([]int64, len(likely))
	for i, c := range likely {
		ids[i] = c.id
	}
	return ids
}

func (c *candidate) bestRank() int {
	if c.Dense.Rank == 0 || c.Text.Rank == 0 {
		return max(c.Dense.Rank, c.Text.Rank)
	}
	return min(c.Dense.Rank, c.Text.Rank)
}

// gather makes the candidates. Where there is a threshold the dense leg alone was run, and what lies below it is
// none; what the full-text leg gave in its place is not compared with it.
func (r *request) gather(found pgstore.Found) {
	r.fellBack = found.FellBack
	r.pool = make([]candidate, 0, len(found.Matches))
	metric := r.settings.Fusion.Metric
	for _, m := range found.Matches {
		if !found.FellBack && r.settings.Threshold > 0 && metric.Scale(m.Similarity) < r.settings.Threshold {
			continue
		}
		r.pool = append(r.pool, candidate{id: m.ChunkID, Candidate: fusion.Candidate{
			Key:   fusion.Key{Subspace: m.Subspace, DocID: m.DocID, ChunkID: m.Ordinal},
			Dense: fusion.Standing{Raw: m.Similarity, Known: m.HasSimilarity, Rank: m.DenseRank},
			Text:  fusion.Standing{Raw: m.BM25, Known: r.plan.Text != nil || found.FellBack, Rank: m.TextRank},
		}})
	}
}

// order fuses the candidates, puts the results down in their final order and returns the chunks of the first page.
func (r *request) order() []int64 {
	ids := make(map[fusion.Key]int64, len(r.pool))
	candidates := make([]fusion.Candidate, len(r.pool))
	for i, c := range r.pool {
		ids[c.Key], candidates[i] = c.id, c.Candidate
	}
	fused, err := fusion.Fuse(r.fusion(), candidates)
	if r.fuseErr = err; err != nil {
		return nil
	}
	if r.GroupBy != nil {
		fused = grouped(fused, max(r.GroupBy.ChunksPerGroup, 1))
	}
	r.fill(fused, ids)
	docs := make([]document, len(fused))
	for i, f := range fused {
		docs[i] = documentOf(f)
	}
	kept := make([]int64, r.pageOf(docs))
	for i := range kept {
		kept[i] = r.page.Entries[i].ChunkID
	}
	return kept
}

// fusion is the configuration without the cut: what is not returned now is for the cursor.
func (r *request) fusion() fusion.Config {
	c := r.settings.Fusion
	c.Limit = math.MaxInt
	if r.fellBack {
		c.Legs, c.DenseWeight, c.TextWeight = fusion.Legs{Text: true}, 1, 1
	}
	return c
}

// grouped keeps n chunks of each document, side by side, documents in the order of their best chunks.
func grouped(fused []fusion.Result, n int) []fusion.Result { return groupedBy(fused, n, documentOf) }

func groupedBy[T any](fused []T, n int, of func(T) document) []T {
	at := map[document]int{}
	var groups [][]T
	for _, f := range fused {
		d := of(f)
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
	out := make([]T, 0, len(fused))
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

// document identifies one among the knowledge bases of a request.
type document struct {
	kb           int
	subspace, id string
}

func documentOf(f fusion.Result) document { return document{f.Key.KB, f.Key.Subspace, f.Key.DocID} }

// pageOf is how many of the results, given by their documents, make a page: as many as asked for, or with
// groups all of as many documents.
func (r *request) pageOf(docs []document) int {
	return pageOf(docs, r.settings.Fusion.Limit, r.GroupBy != nil)
}

func pageOf(docs []document, limit int, groups bool) int {
	if !groups {
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
func (r *request) fill(fused []fusion.Result, ids map[fusion.Key]int64) {
	p := cursor.Page{KBID: r.kb.ID, Generation: r.kb.Generation.ID, Fusion: r.fusionName(), Fallback: r.fellBack}
	p.Entries = make([]cursor.Entry, len(fused))
	for i, f := range fused {
		p.Entries[i] = r.entry(f, ids[f.Key])
		p.DenseWeight, p.TextWeight = f.Dense.Weight, f.Text.Weight
	}
	r.page = p
}

// entry is a result as a cursor holds it.
func (r *request) entry(f fusion.Result, id int64) cursor.Entry {
	e := cursor.Entry{ChunkID: id, Score: f.Score, Raw: f.Raw, Scaled: f.Scaled, Omitted: f.Omitted}
	if r.Explain && r.plan.Dense != nil && !r.fellBack {
		e.Dense = &cursor.Share{Rank: f.Dense.Rank, Raw: f.Dense.Raw, Part: f.Dense.Part}
	}
	if r.Explain && (r.plan.Text != nil || r.fellBack) {
		e.Text = &cursor.Share{Rank: f.Text.Rank, Raw: f.Text.Raw, Part: f.Text.Part}
	}
	return e
}

// fusionName is the method, or the leg that answered alone where the method leaves its scores as they are.
func (r *request) fusionName() string {
	switch {
	case r.settings.Fusion.Method == fusion.Model:
	case r.plan.Dense == nil || r.fellBack:
		return string(messages.FullText)
	case r.plan.Text == nil:
		return string(messages.DenseVector)
	}
	return string(r.settings.Fusion.Method)
}

// first is the answer to a search.
func (e *Engine) first(r *request, found pgstore.SearchResult) *Answer {
	r.remark(found)
	places := make([]int, len(found.Kept))
	for i := range places {
		places[i] = i
	}
	return e.shape(r, found, places)
}

// remark notes what was left out of the search.
func (r *request) remark(found pgstore.SearchResult) {
	if found.PrefixesCut {
		r.note("a prefix stands for more words than were looked for")
	}
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
	return e.read(ctx, r)
}

// read makes the answer of the first page of what is left, as far as it is still there.
func (e *Engine) read(ctx context.Context, r *request) (*Answer, error) {
	ids, at := make([]int64, len(r.page.Entries)), make(map[int64]int, len(r.page.Entries))
	for i, entry := range r.page.Entries {
		ids[i], at[entry.ChunkID] = entry.ChunkID, i
	}
	end := len(ids) // of the entries that this page looks at
	found, err := e.Searcher.Read(ctx, pgstore.ReadPlan{
		KB: r.kb.KB, Subspaces: r.plan.Subspaces, Where: r.plan.Where, IDs: ids, Vectors: r.settings.Output.Vector, Reading: e.pageReading(r),
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
		docs[i] = document{subspace: m.Subspace, id: m.DocID}
	}
	kept := make([]int64, r.pageOf(docs))
	for i := range kept {
		kept[i] = there[i].ChunkID
	}
	return kept
}
