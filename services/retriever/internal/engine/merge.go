package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/config"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// merge joins what the knowledge bases found.
func (e *Engine) merge(ctx context.Context, s *several) (*Answer, error) {
	reply := &messages.RetrieveReply{Results: []messages.RetrievedChunk{}}
	var answered []int
	for i, p := range s.parts {
		if p.err != nil {
			reply.Failures = append(reply.Failures, p.failure())
			continue
		}
		answered = append(answered, i)
		s.diag.KnowledgeBases = append(s.diag.KnowledgeBases, p.report())
		s.addTimes(p)
	}
	if len(answered) == 0 {
		return nil, allFailed(reply.Failures)
	}
	cands, texts := s.candidates(answered)
	s.contents = s.kept(answered)
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
	reply.Results = append(reply.Results, s.results(s.cut(s.fold(fused)))...)
	reply.Diagnostics = s.diag
	return onePage(reply), nil
}

func allFailed(failures []messages.KBFailure) error {
	first := failures[0]
	return messages.Errorf(messages.CodeAllKBsFailed, "%d of %d knowledge bases failed, %s by %s: %s", len(failures), len(failures), first.KB, first.Code, first.Message)
}

func (s *several) addTimes(p *part) {
	t := &s.diag.Timing
	t.EmbedMillis = max(t.EmbedMillis, p.diag.Timing.EmbedMillis)
	t.SQLMillis += millis(p.found.SQL)
	t.ScoreMillis += millis(p.found.Score)
}

// candidates are those of all knowledge bases, with their texts.
func (s *several) candidates(answered []int) (cands []fusion.Candidate, texts []string) {
	for _, i := range answered {
		p := s.parts[i]
		for j, c := range p.pool {
			c.Key.KB, c.Metric = i, p.settings.Fusion.Metric
			cands, texts = append(cands, c.Candidate), append(texts, p.found.Kept[j].Content)
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
	s.diag.Notes = append(s.diag.Notes, fmt.Sprintf("the knowledge bases differ in %s: their lists are joined by rank", mixed))
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
type folded []fusion.Result

// fold gathers results of the same text, each text at the place of its best.
func (s *several) fold(fused []fusion.Result) []folded {
	at := map[string]int{}
	var out []folded
	for _, f := range fused {
		text := s.contents[f.Key].Content
		i, ok := at[text]
		if !ok {
			i = len(out)
			at[text] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// kept are the contents of all candidates.
func (s *several) kept(answered []int) map[fusion.Key]*pgstore.Content {
	out := map[fusion.Key]*pgstore.Content{}
	for _, i := range answered {
		p := s.parts[i]
		for j := range p.found.Kept {
			c := &p.found.Kept[j]
			out[fusion.Key{KB: i, Subspace: c.Subspace, DocID: c.DocID, ChunkID: c.Ordinal}] = c
		}
	}
	return out
}

// cut groups, when asked to, and leaves the first page.
func (s *several) cut(all []folded) []folded {
	if s.GroupBy != nil {
		all = groupedBy(all, max(s.GroupBy.ChunksPerGroup, 1), func(f folded) document { return documentOf(f[0]) })
	}
	docs := make([]document, len(all))
	for i, f := range all {
		docs[i] = documentOf(f[0])
	}
	return all[:pageOf(docs, s.Fusion.Limit, s.GroupBy != nil)]
}

func (s *several) results(page []folded) []messages.RetrievedChunk {
	out := make([]messages.RetrievedChunk, len(page))
	for i, f := range page {
		best := f[0]
		p := s.parts[best.Key.KB]
		p.setPage(s.diag.Fusion, best)
		entry := p.entry(best, 0)
		for _, other := range f[1:] { // each on its own (OJ-26)
			entry.Raw, entry.Scaled = max(entry.Raw, other.Raw), max(entry.Scaled, other.Scaled)
		}
		out[i] = s.result(p, s.contents[best.Key], entry, f)
	}
	return out
}

// result is a text with the chunks that hold it.
func (s *several) result(p *part, content *pgstore.Content, entry cursor.Entry, f folded) messages.RetrievedChunk {
	out := p.request.result(content, &entry)
	for _, source := range f {
		k, kb := source.Key, s.parts[source.Key.KB].name
		out.Sources = append(out.Sources, messages.ChunkSource{KB: kb, Subspace: k.Subspace, DocID: k.DocID, ChunkID: k.ChunkID, Score: source.Score})
		if !slices.Contains(out.KBIDs, kb) {
			out.KBIDs = append(out.KBIDs, kb)
		}
	}
	slices.Sort(out.KBIDs)
	return out
}
