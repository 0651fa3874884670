package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/config"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// merge joins what the knowledge bases found and delivers the first page.
func (e *Engine) merge(ctx context.Context, s *several) (*Answer, error) {
	answered := s.answered()
	if len(answered) == 0 {
		return nil, allFailed(s.failures)
	}
	cands, texts := s.candidates(answered)
	settings := config.Settings{Fusion: s.joint(answered), Model: s.Model}
	if settings.Fusion.Method == fusion.Model {
		question := s.parts[answered[0]].question
		if err := e.score(ctx, &settings, question, cands, texts, &s.diag); err != nil {
			return nil, err
		}
		if settings.Fusion.Method == fusion.RRF && len(s.diag.Dropped) > 0 {
			settings.Fusion.ByRank = true
		}
	}
	fused, err := fusion.Fuse(settings.Fusion, cands)
	if err != nil {
		return nil, err
	}
	s.diag.Fusion = nameOf(settings.Fusion)
	s.fill(answered, s.grouped(s.fold(fused)))
	return e.deliver(ctx, s)
}

// answered are the knowledge bases that gave a list; the others are among the failures.
func (s *several) answered() []int {
	var out []int
	for i, p := range s.parts {
		if p.err != nil {
			s.failures = append(s.failures, p.failure())
			continue
		}
		out = append(out, i)
		s.diag.KnowledgeBases = append(s.diag.KnowledgeBases, p.report())
		t := &s.diag.Timing
		t.EmbedMillis = max(t.EmbedMillis, p.diag.Timing.EmbedMillis)
		t.SQLMillis += millis(p.found.SQL)
		t.ScoreMillis += millis(p.found.Score)
	}
	return out
}

func allFailed(failures []messages.KBFailure) error {
	first := failures[0]
	return messages.Errorf(messages.CodeAllKBsFailed, "%d of %d knowledge bases failed, %s by %s: %s", len(failures), len(failures), first.KB, first.Code, first.Message)
}

// candidates are those of all knowledge bases, with their texts as far as they were read.
func (s *several) candidates(answered []int) (cands []fusion.Candidate, texts []string) {
	for _, i := range answered {
		p := s.parts[i]
		for j := range p.found.Kept {
			c := &p.found.Kept[j]
			s.contents[chunk{i, c.ChunkID}] = c
			s.there[chunk{i, c.ChunkID}] = c.Match
		}
		for _, c := range p.pool {
			c.Key.KB, c.Metric = i, p.settings.Fusion.Metric
			cands, texts = append(cands, c.Candidate), append(texts, s.contents[chunk{i, c.id}].Content)
		}
	}
	return cands, texts
}

// joint is the fusion over all lists. Where scores of different knowledge bases cannot be compared, because of
// embedding spaces, analysers or legs that differ, it goes by the ranks within each.
func (s *several) joint(answered []int) fusion.Config {
	c := s.Fusion
	c.Limit = math.MaxInt
	first, mixed := -1, ""
	for _, i := range answered {
		p := s.parts[i]
		if len(p.pool) == 0 {
			continue
		}
		legs := p.legs()
		if c.Legs.Dense, c.Legs.Text = c.Legs.Dense || legs.Dense, c.Legs.Text || legs.Text; legs.Dense && c.Metric == "" {
			c.Metric = p.settings.Fusion.Metric
		}
		if first < 0 {
			first = i
		} else if mixed == "" {
			mixed = differ(s.parts[first], p)
		}
	}
	if mixed == "" || c.Method == fusion.Model {
		return alone(c)
	}
	s.note(fmt.Sprintf("the knowledge bases differ in %s: their lists are joined by rank", mixed))
	r := config.Ranks(s.Configuration)
	r.Limit, r.Legs, r.Metric, r.ByRank = c.Limit, c.Legs, c.Metric, true
	return r
}

// alone leaves a leg that runs alone unweighed.
func alone(c fusion.Config) fusion.Config {
	if c.Method != fusion.Model && (!c.Legs.Dense || !c.Legs.Text) {
		c.DenseWeight, c.TextWeight = 1, 1
	}
	return c
}

// differ says why the scores of two knowledge bases cannot be compared, "" when they can.
func differ(a, b *part) string {
	legs := a.legs()
	switch {
	case legs != b.legs():
		return "the searches that were run"
	case legs.Dense && *a.kb.Generation.Space != *b.kb.Generation.Space:
		return "their embedding spaces"
	case legs.Text && a.kb.Generation.Analyzer != b.kb.Generation.Analyzer:
		return "their analysers"
	}
	return ""
}

// nameOf is the method, or the leg that answered alone where the method leaves its scores as they are.
func nameOf(c fusion.Config) string {
	switch {
	case c.Method == fusion.Model, c.ByRank, c.Legs.Dense && c.Legs.Text:
		return string(c.Method)
	case c.Legs.Dense:
		return string(messages.DenseVector)
	case c.Legs.Text:
		return string(messages.FullText)
	}
	return string(c.Method) // nothing was found
}

// folded is the chunks of one text, the best first.
type folded []ranked

// ranked is a chunk in its place.
type ranked struct {
	fusion.Result
	id int64
}

// fold gathers results of the same text, each text at the place of its best.
func (s *several) fold(fused []fusion.Result) []folded {
	ids := map[fusion.Key]chunk{}
	for c, m := range s.there {
		ids[fusion.Key{KB: c.kb, Subspace: m.Subspace, DocID: m.DocID, ChunkID: m.Ordinal}] = c
	}
	at := map[string]int{} // by hash
	var out []folded
	for _, f := range fused {
		c := ids[f.Key]
		text := string(s.contents[c].Hash)
		i, ok := at[text]
		if !ok {
			i = len(out)
			at[text] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], ranked{f, c.id})
	}
	return out
}

// grouped gathers texts by the document of their best, where the request wants it.
func (s *several) grouped(all []folded) []folded {
	if s.GroupBy == nil {
		return all
	}
	return groupedBy(all, max(s.GroupBy.ChunksPerGroup, 1), func(f folded) document { return documentOf(f[0].Result) })
}

// fill puts all results down as a cursor holds them.
func (s *several) fill(answered []int, all []folded) {
	s.joined = cursor.Joined{KBs: make([]cursor.Origin, len(s.parts)), Fusion: s.diag.Fusion, Texts: make([]cursor.Text, len(all))}
	for _, i := range answered {
		p := s.parts[i]
		s.joined.KBs[i] = cursor.Origin{KBID: p.kb.ID, Generation: p.kb.Generation.ID, Fallback: p.fellBack}
	}
	for i, f := range all {
		best := f[0]
		t := cursor.Text{Entry: s.parts[best.Key.KB].entry(best.Result, best.id)}
		for _, r := range f {
			t.Holders = append(t.Holders, cursor.Holder{KB: r.Key.KB, ChunkID: r.id, Score: r.Score})
			t.Raw, t.Scaled = max(t.Raw, r.Raw), max(t.Scaled, r.Scaled) // each on its own (OJ-26)
		}
		s.joined.Texts[i] = t
		s.joined.DenseWeight, s.joined.TextWeight = best.Dense.Weight, best.Text.Weight
	}
}
