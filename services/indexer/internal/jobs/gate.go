package jobs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/postings"
)

// GateStore is what measuring needs of the database.
type GateStore interface {
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
	LoadGeneration(ctx context.Context, id int64) (pgstore.Generation, error)
	SampleChunks(ctx context.Context, generation, seed int64, n int) ([]string, error)
}

// Searcher finds chunks.
type Searcher interface {
	Search(ctx context.Context, plan pgstore.SearchPlan) (pgstore.SearchResult, error)
}

// Embedder computes query vectors, in the order of the texts.
type Embedder func(ctx context.Context, space messages.Space, texts []string) ([][]float32, error)

// Measure asks both generations the same queries, each with its own model and analyzer, fused by rank as queries
// are by default.
type Measure struct {
	store  GateStore
	search Searcher
	embed  Embedder
	now    func() time.Time
}

// NewMeasure returns a gate.
func NewMeasure(store GateStore, search Searcher, embed Embedder) *Measure {
	return &Measure{store: store, search: search, embed: embed, now: time.Now}
}

// Measure compares the target of a job with the live generation.
func (m *Measure) Measure(ctx context.Context, j pgstore.Job) (messages.JobGateResult, error) {
	gate := j.Gate.WithDefaults()
	kb, err := m.store.LoadKB(ctx, j.Tenant, j.KnowledgeBaseName)
	if err != nil {
		return messages.JobGateResult{}, err
	}
	judged := gate.Judged
	if len(judged) == 0 {
		if judged, err = m.sample(ctx, kb, j, gate.Sample); err != nil {
			return messages.JobGateResult{}, err
		}
	}
	target := kb
	if target.Generation, err = m.store.LoadGeneration(ctx, j.Target); err != nil {
		return messages.JobGateResult{}, err
	}
	live, err := m.answers(ctx, kb, false, judged, gate.K)
	if err != nil {
		return messages.JobGateResult{}, err
	}
	built, err := m.answers(ctx, target, true, judged, gate.K)
	if err != nil {
		return messages.JobGateResult{}, err
	}
	return verdict(gate, judged, live, built, m.now()), nil
}

// queryWords is how much of a chunk makes a query.
const queryWords = 12

func (m *Measure) sample(ctx context.Context, kb pgstore.KB, j pgstore.Job, n int) ([]messages.JudgedQuery, error) {
	texts, err := m.store.SampleChunks(ctx, kb.Generation.ID, j.ID, n)
	out := make([]messages.JudgedQuery, 0, len(texts))
	for _, text := range texts {
		words := strings.Fields(text)
		if len(words) > 0 {
			out = append(out, messages.JudgedQuery{Query: strings.Join(words[:min(len(words), queryWords)], " ")})
		}
	}
	return out, err
}

// verdict compares what both found, lists of document ids.
func verdict(gate messages.JobGate, judged []messages.JudgedQuery, live, built [][]string, at time.Time) messages.JobGateResult {
	r := messages.JobGateResult{Queries: len(judged), K: gate.K, At: at.UTC()}
	if len(judged) == 0 {
		r.Passed = true // there is nothing to find
		return r
	}
	var overlap, before, after float64
	for i, q := range judged {
		overlap += overlapOf(live[i], built[i])
		before += NDCG(q.Relevant, live[i], gate.K)
		after += NDCG(q.Relevant, built[i], gate.K)
	}
	n := float64(len(judged))
	overlap, before, after = overlap/n, before/n, after/n
	r.Overlap = &overlap
	r.Passed = overlap >= gate.MinOverlap
	if len(gate.Judged) > 0 {
		r.Live, r.Target = &before, &after
		r.Passed = after >= before-gate.MaxLoss
	}
	return r
}

// overlapOf is the part of what the live generation found that the other found too; 1 where it found nothing.
func overlapOf(live, built []string) float64 {
	if len(live) == 0 {
		return 1
	}
	n := 0
	for _, doc := range live {
		if slices.Contains(built, doc) {
			n++
		}
	}
	return float64(n) / float64(len(live))
}

// NDCG is the normalised discounted cumulative gain of a list of document ids, of its first k; 0 when nothing is
// relevant.
func NDCG(relevant map[string]int, found []string, k int) float64 {
	grades := make([]int, 0, len(relevant))
	for _, g := range relevant {
		grades = append(grades, g)
	}
	slices.SortFunc(grades, func(a, b int) int { return b - a })
	ideal := gain(grades[:min(len(grades), k)])
	if ideal == 0 {
		return 0
	}
	got := make([]int, min(len(found), k))
	for i := range got {
		got[i] = relevant[found[i]]
	}
	return gain(got) / ideal
}

func gain(grades []int) float64 {
	sum := 0.0
	for i, g := range grades {
		sum += (math.Exp2(float64(g)) - 1) / math.Log2(float64(i+2))
	}
	return sum
}

// legLimit is how deep each leg looks.
const legLimit = 100

// answers is the first k documents of a generation for each query.
func (m *Measure) answers(ctx context.Context, kb pgstore.KB, beside bool, queries []messages.JudgedQuery, k int) ([][]string, error) {
	texts := make([]string, len(queries))
	for i, q := range queries {
		texts[i] = q.Query
	}
	vectors := make([][]float32, len(queries))
	if space := kb.Generation.Space; space != nil && len(texts) > 0 {
		var err error
		if vectors, err = m.embed(ctx, *space, texts); err != nil {
			return nil, err
		}
	}
	analyzer, err := lexical.Lookup(kb.Generation.Analyzer)
	if err != nil {
		return nil, err
	}
	out := make([][]string, len(queries))
	for i, text := range texts {
		plan := pgstore.SearchPlan{KB: kb, Beside: beside, Keep: func(pgstore.Found) []int64 { return nil }}
		if vectors[i] != nil {
			plan.Dense = &pgstore.DensePlan{Vector: vectors[i], Limit: legLimit}
		}
		if kb.IndexType != messages.IndexTypeVector {
			plan.Text = textPlan(analyzer, text)
		}
		found, err := m.search.Search(ctx, plan)
		if err != nil {
			return nil, fmt.Errorf("ask generation %d: %w", kb.Generation.ID, err)
		}
		if out[i], err = documents(found.Matches, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// BM25 as by default.
const (
	k1 = 1.2
	b  = 0.75
)

func textPlan(analyzer *lexical.Analyzer, text string) *pgstore.TextPlan {
	q := analyzer.Query(text)
	return &pgstore.TextPlan{Terms: termsOf(q.Terms), More: termsOf(q.Second), K1: k1, B: b, Limit: legLimit}
}

func termsOf(list []lexical.QueryTerm) []postings.Term {
	out := make([]postings.Term, len(list))
	for i, t := range list {
		out[i] = postings.Term{Hash: postings.TermHash(t.Term), Weight: float64(t.Weight)}
	}
	return out
}

// documents fuses the legs by rank and returns the first k distinct documents.
func documents(matches []pgstore.Match, k int) ([]string, error) {
	leg := func(rank func(pgstore.Match) int) []pgstore.Match {
		var list []pgstore.Match
		for _, m := range matches {
			if rank(m) > 0 {
				list = append(list, m)
			}
		}
		slices.SortFunc(list, func(a, b pgstore.Match) int { return rank(a) - rank(b) })
		return list
	}
	lists := [][]pgstore.Match{
		leg(func(m pgstore.Match) int { return m.DenseRank }), leg(func(m pgstore.Match) int { return m.TextRank }),
	}
	const rrf = 60
	fused, err := fusion.FuseRRF(lists, nil, rrf, func(m pgstore.Match) int64 { return m.ChunkID })
	if err != nil {
		return nil, fmt.Errorf("fuse: %w", err)
	}
	var out []string
	for _, f := range fused {
		if !slices.Contains(out, f.Item.DocID) {
			out = append(out, f.Item.DocID)
		}
		if len(out) == k {
			break
		}
	}
	return out, nil
}
