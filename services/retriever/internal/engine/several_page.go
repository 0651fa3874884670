package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// nextOfSeveral is the page behind a cursor: the results behind those delivered, as far as their chunks are still
// there. A knowledge base that cannot be read now is an error: what it holds would be passed over.
func (e *Engine) nextOfSeveral(ctx context.Context, s *several) (*Answer, error) {
	var err error
	if s.joined, err = e.Cursors.OpenJoined(s.owner, s.Cursor); err != nil {
		return nil, err
	}
	ids := make([][]int64, len(s.parts))
	for i := range s.joined.Texts {
		for _, h := range s.joined.Texts[i].Holders {
			ids[h.KB] = append(ids[h.KB], h.ChunkID)
		}
	}
	for i, p := range s.parts {
		origin := s.joined.KBs[i]
		if origin.KBID != 0 && (origin.KBID != p.kb.ID || origin.Generation != p.kb.Generation.ID) {
			return nil, e.checked(ctx, p.kb, inKB(i, p.name, cursor.Expired()))
		}
	}
	if err := e.readParts(ctx, s, ids, false); err != nil {
		return nil, err
	}
	s.diag.Fusion, s.diag.Notes = s.joined.Fusion, nil
	return e.deliver(ctx, s)
}

// readParts looks which chunks may still be found, and with contents reads them.
func (e *Engine) readParts(ctx context.Context, s *several, ids [][]int64, contents bool) error {
	found := make([]pgstore.SearchResult, len(s.parts))
	err := s.each(func(i int, p *part) error {
		if len(ids[i]) == 0 {
			return nil
		}
		var err error
		found[i], err = e.Searcher.Read(ctx, pgstore.ReadPlan{
			KB: p.kb.KB, Subspaces: p.plan.Subspaces, Where: p.plan.Where, IDs: ids[i], Vectors: p.settings.Output.Vector, Reading: e.pageReading(p.request),
			Keep: func(there []pgstore.Match) []int64 {
				if !contents {
					return nil
				}
				return idsOf(there)
			},
		})
		if errors.Is(err, pgstore.ErrGenerationChanged) {
			e.kbs.forget(p.kb)
		}
		return err
	})
	for i := range found {
		for _, id := range ids[i] {
			delete(s.there, chunk{i, id})
		}
		for _, m := range found[i].Matches {
			s.there[chunk{i, m.ChunkID}] = m
		}
		for j := range found[i].Kept {
			s.contents[chunk{i, found[i].Kept[j].ChunkID}] = &found[i].Kept[j]
		}
		s.diag.Timing.SQLMillis += millis(found[i].SQL)
	}
	return err
}

func idsOf(matches []pgstore.Match) []int64 {
	out := make([]int64, len(matches))
	for i, m := range matches {
		out[i] = m.ChunkID
	}
	return out
}

// shown is a result on a page.
type shown struct {
	at      int // in the texts of the request
	holders []cursor.Holder
}

// live are the results whose chunks are there, with those.
func (s *several) live() []shown {
	var out []shown
	for i := range s.joined.Texts {
		var left []cursor.Holder
		for _, h := range s.joined.Texts[i].Holders {
			if _, ok := s.there[chunk{h.KB, h.ChunkID}]; ok {
				left = append(left, h)
			}
		}
		if len(left) > 0 {
			out = append(out, shown{i, left})
		}
	}
	return out
}

// deliver makes the answer of the first page of what is left.
func (e *Engine) deliver(ctx context.Context, s *several) (*Answer, error) {
	live := s.live()
	docs := make([]document, len(live))
	for i, l := range live {
		m := s.there[chunk{l.holders[0].KB, l.holders[0].ChunkID}]
		docs[i] = document{l.holders[0].KB, m.Subspace, m.DocID}
	}
	n := pageOf(docs, s.Fusion.Limit, s.GroupBy != nil)
	end := len(s.joined.Texts) // of the results that this page looks at
	if n < len(live) {
		end = live[n].at
	}
	page, err := e.complete(ctx, s, live[:n])
	if err != nil {
		return nil, err
	}
	kept := slices.IndexFunc(page, func(l shown) bool { return s.content(l).Beyond })
	reply := &messages.RetrieveReply{Failures: s.failures}
	if kept >= 0 {
		reply.Truncated, end, page = true, page[kept].at, page[:kept]
	}
	reply.Results = make([]messages.RetrievedChunk, len(page))
	for i, l := range page {
		reply.Results[i] = s.result(l)
	}
	if s.Cursor != "" {
		s.diag.Skipped = end - len(page)
	}
	reply.Diagnostics = s.diag
	return e.sealed(s, reply, page, end, n < len(live) || kept >= 0), nil
}

// sealed is the answer with what leads to the results from end on, if there are more.
func (e *Engine) sealed(s *several, reply *messages.RetrieveReply, page []shown, end int, more bool) *Answer {
	from := func(at int) string {
		rest := s.joined
		rest.Texts = rest.Texts[at:]
		return e.Cursors.SealJoined(s.owner, rest)
	}
	if more {
		reply.NextCursor = from(end)
	}
	holders := 0
	for i := range s.joined.Texts {
		holders += len(s.joined.Texts[i].Holders)
	}
	return &Answer{
		Reply: reply, bound: cursor.JoinedBound(len(s.parts), len(s.joined.Texts), holders, s.Explain),
		seal: func(results int) string { return from(page[results-1].at + 1) },
	}
}

func (s *several) content(l shown) *pgstore.Content {
	return s.contents[chunk{l.holders[0].KB, l.holders[0].ChunkID}]
}

// complete reads the contents of a page that are not there yet. What has gone in this moment is left out.
func (e *Engine) complete(ctx context.Context, s *several, page []shown) ([]shown, error) {
	ids, missing := make([][]int64, len(s.parts)), false
	for _, l := range page {
		if c := s.content(l); c == nil || c.Beyond {
			best := l.holders[0]
			ids[best.KB], missing = append(ids[best.KB], best.ChunkID), true
		}
	}
	if !missing {
		return page, nil
	}
	if err := e.readParts(ctx, s, ids, true); err != nil {
		return nil, fmt.Errorf("read the contents of a page: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(page), func(l shown) bool {
		_, ok := s.there[chunk{l.holders[0].KB, l.holders[0].ChunkID}]
		return !ok
	}), nil
}

// result is a text with the chunks that hold it: place, ids and metadata are those of the best that is there.
func (s *several) result(l shown) messages.RetrievedChunk {
	text, p := &s.joined.Texts[l.at], s.parts[l.holders[0].KB]
	p.page = cursor.Page{
		Fusion: s.joined.Fusion, Fallback: s.joined.KBs[l.holders[0].KB].Fallback, DenseWeight: s.joined.DenseWeight, TextWeight: s.joined.TextWeight,
	}
	out := p.request.result(s.content(l), &text.Entry)
	for _, h := range l.holders {
		m, kb := s.there[chunk{h.KB, h.ChunkID}], s.parts[h.KB].name
		out.Sources = append(out.Sources, messages.ChunkSource{KB: kb, Subspace: m.Subspace, DocID: m.DocID, ChunkID: m.Ordinal, Score: h.Score})
		if !slices.Contains(out.KBIDs, kb) {
			out.KBIDs = append(out.KBIDs, kb)
		}
	}
	slices.Sort(out.KBIDs)
	return out
}
