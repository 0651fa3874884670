package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// listed is a chunk of a FILTER query of several knowledge bases.
type listed struct {
	kb      int
	content *pgstore.Content
}

// listSeveral answers a FILTER query: the chunks of one knowledge base after those of another, in the order of the
// request. One that cannot be read is an error: what it holds would be passed over.
func (e *Engine) listSeveral(ctx context.Context, s *several) (*Answer, error) {
	from, err := e.placeOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []listed
	more, cut := false, false
	for i := from.KB; i < len(s.parts) && !more; i++ {
		p := s.parts[i]
		plan := e.listPlan(p.request)
		if i == from.KB && s.Cursor != "" {
			plan.After = &pgstore.Place{Subspace: from.Subspace, DocID: from.DocID, Ordinal: from.Ordinal}
		}
		room := s.room(all)
		if plan.Limit = max(room, 1); s.GroupBy != nil { // full: only to see whether there is more
			plan.PerDocument = max(s.GroupBy.ChunksPerGroup, 1)
		}
		found, behind, err := e.Searcher.List(ctx, plan)
		if errors.Is(err, pgstore.ErrGenerationChanged) {
			e.kbs.forget(p.kb)
		}
		if err != nil {
			return nil, err
		}
		s.diag.Timing.SQLMillis += millis(found.SQL)
		if room == 0 {
			more = len(found.Kept) > 0
			continue
		}
		kept, beyond := whole(found.Kept)
		for j := range kept {
			all = append(all, listed{i, &kept[j]})
		}
		more, cut = behind || beyond, beyond
	}
	return e.shapeSeveral(s, all, more, cut), nil
}

// placeOf is where the page begins.
func (e *Engine) placeOf(ctx context.Context, s *several) (cursor.JoinedPlace, error) {
	if s.Cursor == "" {
		return cursor.JoinedPlace{}, nil
	}
	at, err := e.Cursors.OpenJoinedPlace(s.owner, s.Cursor)
	if err != nil {
		return at, err
	}
	p := s.parts[at.KB]
	if at.KBID != p.kb.ID || at.Generation != p.kb.Generation.ID {
		return at, e.checked(ctx, p.kb, inKB(at.KB, p.name, cursor.Expired()))
	}
	return at, nil
}

// room is how many more chunks, or with groups documents, the page has place for.
func (s *several) room(all []listed) int {
	if s.GroupBy == nil {
		return s.Fusion.Limit - len(all)
	}
	if len(all) >= max(s.Fusion.Limit, pgstore.MaxListed) {
		return 0
	}
	return s.Fusion.Limit - len(slices.CompactFunc(slices.Clone(all), func(a, b listed) bool {
		return a.kb == b.kb && a.content.Subspace == b.content.Subspace && a.content.DocID == b.content.DocID
	}))
}

func (e *Engine) shapeSeveral(s *several, all []listed, more, cut bool) *Answer {
	s.diag.Fusion = messages.PathFilter
	s.diag.Notes = s.parts[0].diag.Notes
	reply := &messages.RetrieveReply{Results: make([]messages.RetrievedChunk, len(all)), Truncated: cut, Diagnostics: s.diag}
	for i, l := range all {
		reply.Results[i] = s.parts[l.kb].listed(l.content)
		reply.Results[i].KBIDs = []string{s.parts[l.kb].name}
	}
	a := &Answer{Reply: reply, bound: cursor.PlaceBound()}
	a.seal = func(results int) string {
		last := all[results-1]
		return e.Cursors.SealJoinedPlace(s.owner, cursor.JoinedPlace{KB: last.kb, Place: s.parts[last.kb].placeOf(last.content)})
	}
	if more {
		reply.NextCursor = a.seal(len(all))
	}
	return a
}
