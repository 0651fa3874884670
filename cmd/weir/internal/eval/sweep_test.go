package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
)

// shelf is a small world: similarity and BM25 of every document for every query.
type shelf struct{ dense, text map[string][]float64 }

func newShelf(rng *rand.Rand, queries, docs int) *shelf {
	s := &shelf{dense: map[string][]float64{}, text: map[string][]float64{}}
	for q := range queries {
		for range docs {
			s.dense[fmt.Sprint("q", q)] = append(s.dense[fmt.Sprint("q", q)], math.Round(rng.Float64()*50)/50+0.01) // with ties
			s.text[fmt.Sprint("q", q)] = append(s.text[fmt.Sprint("q", q)], math.Max(0, math.Round(rng.Float64()*12-6)))
		}
	}
	return s
}

func doc(i int) string { return fmt.Sprintf("d%02d", i) }

// list is the first n of a leg, ties in order of their ids.
func list(scores []float64, n int, positive bool) []fusion.Listed {
	var out []fusion.Listed
	for i, s := range scores {
		if s > 0 || !positive {
			out = append(out, fusion.Listed{Key: fusion.Key{DocID: doc(i)}, Raw: s})
		}
	}
	slices.SortStableFunc(out, func(a, b fusion.Listed) int {
		if a.Raw != b.Raw {
			return int(math.Copysign(1, b.Raw-a.Raw))
		}
		return a.Key.Compare(b.Key)
	})
	return out[:min(n, len(out))]
}

// rank does what the retriever does, from scratch.
func (s *shelf) rank(t *testing.T, q string, v eval.Variant) []fusion.Result {
	t.Helper()
	var dense, text []fusion.Listed
	c := fusion.Config{Method: v.Method, DenseWeight: v.DenseWeight, TextWeight: v.TextWeight, K: v.K, Metric: fusion.Cosine, Limit: 1000}
	if v.Legs != eval.Hybrid {
		c.Method, c.DenseWeight, c.TextWeight = fusion.Weight, 1, 1
	}
	if v.Legs != eval.Sparse {
		dense, c.Legs.Dense = list(s.dense[q], v.N1, false), true
	}
	if v.Legs != eval.Vector {
		text, c.Legs.Text = list(s.text[q], v.N2, true), true
	}
	cands := fusion.Union(dense, text)
	for i := range cands {
		var n int
		if _, err := fmt.Sscanf(cands[i].Key.DocID, "d%d", &n); err != nil {
			t.Fatal(err)
		}
		cands[i].Dense.Raw, cands[i].Dense.Known = s.dense[q][n], true
		cands[i].Text.Raw, cands[i].Text.Known = s.text[q][n], true
	}
	got, err := fusion.Fuse(c, cands)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// retrieve answers as the service does, in pages.
func (s *shelf) retrieve(t *testing.T, page int) eval.Retrieve {
	return func(_ context.Context, in messages.RetrieveRequest) (messages.RetrieveReply, error) {
		c := in.Configuration
		if !in.Explain || len(c.SearchType) != 2 {
			t.Errorf("got %+v, want an explained hybrid request", in)
		}
		all := s.rank(t, in.Query.Text, eval.Variant{
			Legs: eval.Hybrid, Method: fusion.Weight, N1: *c.Dense.NumberOfResults, N2: *c.FullText.NumberOfResults, DenseWeight: 0.7, TextWeight: 0.3,
		})
		from := 0
		if in.Cursor != "" {
			if err := json.Unmarshal([]byte(in.Cursor), &from); err != nil {
				t.Fatal(err)
			}
		}
		to := min(from+page, len(all))
		out := messages.RetrieveReply{Diagnostics: messages.Diagnostics{Dense: &messages.LegDiagnostics{Exact: true}, FullText: &messages.LegDiagnostics{Exact: true}}}
		if to < len(all) {
			out.NextCursor = fmt.Sprint(to)
		}
		for _, r := range all[from:to] {
			out.Results = append(out.Results, messages.RetrievedChunk{
				DocID: r.Key.DocID, Score: r.Score, Explain: &messages.Explain{
					Dense:    &messages.LegDetail{Rank: r.Dense.Rank, Raw: r.Dense.Raw},
					FullText: &messages.LegDetail{Rank: r.Text.Rank, Raw: r.Text.Raw},
				},
			})
		}
		return out, nil
	}
}

func judged(queries int) *eval.Set {
	s := &eval.Set{Name: "tiny", Qrels: eval.Qrels{}}
	for q := range queries {
		id := fmt.Sprint("q", q)
		s.Queries = append(s.Queries, eval.Query{ID: id, Text: id})
		s.Qrels[id] = map[string]int{doc(q % 40): 2, doc((q * 7) % 40): 1}
	}
	return s
}

// TestOneAnswerGivesEveryVariant compares the rankings made from one pool with those made from scratch.
func TestOneAnswerGivesEveryVariant(t *testing.T) {
	t.Parallel()
	world, set := newShelf(rand.New(rand.NewPCG(1, 1)), 30, 40), judged(30)
	pools, err := eval.Collect(t.Context(), set, fusion.Cosine, 30, 3, world.retrieve(t, 7))
	if err != nil {
		t.Fatal(err)
	}
	variants := append(eval.Grid{
		Counts: []eval.Counts{{1, 1}, {5, 5}, {20, 20}, {30, 10}, {3, 30}}, Shares: []float64{1, 0.7, 0.5, 0}, Ks: []int{1, 60},
	}.Variants(), eval.Variant{Legs: eval.Vector, N1: 7}, eval.Variant{Legs: eval.Sparse, N2: 7})
	tried := 0
	for _, v := range variants {
		if max(v.N1, v.N2) > pools.N {
			continue
		}
		run, err := pools.Rank(v)
		if err != nil {
			t.Fatal(err)
		}
		for q := range set.Qrels {
			tried++
			want := world.rank(t, q, v)
			same := slices.EqualFunc(run[q], want, func(h eval.Hit, r fusion.Result) bool { return h.Doc == r.Key.DocID && h.Score == r.Score })
			if !same {
				t.Fatalf("%s %+v: got %v, want %v", q, v, run[q], want)
			}
		}
	}
	if tried < 500 {
		t.Errorf("compared %d rankings only", tried)
	}
	if _, err := pools.Rank(eval.Variant{Legs: eval.Vector, N1: 31}); err == nil {
		t.Error("a list longer than the pool: got no error")
	}
}

func TestSweepComparesQueryByQuery(t *testing.T) {
	t.Parallel()
	world, set := newShelf(rand.New(rand.NewPCG(2, 2)), 60, 40), judged(60)
	pools, err := eval.Collect(t.Context(), set, fusion.Cosine, 100, 3, world.retrieve(t, 1000))
	if err != nil {
		t.Fatal(err)
	}
	variants := eval.DefaultGrid().Variants()
	sets := []eval.Judged{{Set: set, KB: "kb", Pools: pools}}
	r, err := eval.Sweep(sets, variants, 0)
	if err != nil {
		t.Fatal(err)
	}
	if base := r.Rows[0]; base.Difference != (eval.Difference{}) || base.Method != "WEIGHT" || base.Weights != "0.7/0.3" || base.N1 != 20 {
		t.Errorf("the baseline: got %+v, want the default with no difference", base)
	}
	for i, row := range r.Rows {
		run, err := pools.Rank(variants[i])
		if err != nil {
			t.Fatal(err)
		}
		s, err := eval.Score(set.Qrels, run)
		if err != nil {
			t.Fatal(err)
		}
		d := row.Difference
		if math.Abs(s.NDCG10-row.Mean) > 1e-12 || math.Abs(d.Mean-(row.Mean-r.Rows[0].Mean)) > 1e-12 || d.Low > d.Mean || d.High < d.Mean || d.Better+d.Worse > 60 {
			t.Errorf("%s: got %+v, want nDCG %v and an interval around the difference", row.Method, row, s.NDCG10)
		}
	}
	again, err := eval.Sweep(sets, variants, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(r)
	b, errB := json.Marshal(again)
	if errors.Join(errA, errB) != nil || string(a) != string(b) {
		t.Error("the same sweep twice gave different reports")
	}
	// The mean of one set given twice is that set's.
	two, err := eval.Sweep(append(sets, sets...), variants, 0)
	if err != nil || math.Abs(two.Rows[3].Mean-r.Rows[3].Mean) > 1e-12 || math.Abs(two.Rows[3].Difference.Mean-r.Rows[3].Difference.Mean) > 1e-12 {
		t.Errorf("twice the set: got %+v (%v), want %+v", two.Rows[3], err, r.Rows[3])
	}
}

// TestIntervalsHoldTheTruth draws judgments where the true difference is known.
func TestIntervalsHoldTheTruth(t *testing.T) {
	t.Parallel()
	pool := func(found bool) []fusion.Candidate {
		rank := 0 // of the full-text leg: lists "rel" or leaves it out
		if found {
			rank = 1
		}
		other := fusion.Candidate{Key: fusion.Key{DocID: "other"}, Dense: fusion.Standing{Raw: 0.9, Known: true, Rank: 1}, Text: fusion.Standing{Known: true}}
		rel := fusion.Candidate{Key: fusion.Key{DocID: "rel"}, Dense: fusion.Standing{Raw: 0.8, Known: true, Rank: 2}, Text: fusion.Standing{Raw: float64(rank), Known: true, Rank: rank}}
		return []fusion.Candidate{other, rel}
	}
	sweep := func(share float64, seed uint64) eval.Difference {
		rng := rand.New(rand.NewPCG(seed, seed))
		set, pools := judged(0), eval.Pools{N: 100, Metric: fusion.Cosine, Queries: map[string][]fusion.Candidate{}}
		for q := range 80 {
			id := fmt.Sprint("q", q)
			set.Qrels[id], pools.Queries[id] = map[string]int{"rel": 1}, pool(rng.Float64() < share)
		}
		r, err := eval.Sweep([]eval.Judged{{Set: set, Pools: pools}}, []eval.Variant{
			{Legs: eval.Vector, N1: 100}, {Legs: eval.Hybrid, Method: fusion.Weight, N1: 20, N2: 20, DenseWeight: 0.3, TextWeight: 0.7},
		}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r.Rows[1].Difference
	}
	// A query found by its words rises from the second place to the first: from 1/log2(3) to 1.
	gain, inside := 1-1/math.Log2(3), 0
	for seed := range uint64(12) {
		if d := sweep(0.5, seed); d.Low <= gain/2 && gain/2 <= d.High && d.Clear() && d.Worse == 0 {
			inside++
		}
	}
	if inside < 10 {
		t.Errorf("%d of 12 intervals hold the truth, want about 11", inside)
	}
	if d := sweep(0, 1); d.Clear() || d.Mean != 0 || d.Low != 0 || d.High != 0 {
		t.Errorf("no difference: got %+v", d)
	}
}

func TestSweepTable(t *testing.T) {
	t.Parallel()
	world, set := newShelf(rand.New(rand.NewPCG(3, 3)), 20, 40), judged(20)
	pools, err := eval.Collect(t.Context(), set, fusion.Cosine, 100, 1, world.retrieve(t, 1000))
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.Sweep([]eval.Judged{{Set: set, Pools: pools}}, eval.Grid{Counts: []eval.Counts{{20, 100}}, Shares: []float64{0.5}, Ks: []int{60}}.Variants(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := eval.SweepTable(&out, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 8 || !strings.Contains(lines[0], "95 % interval") || !strings.Contains(lines[2], "baseline") || strings.Count(out.String(), "**") != 2 ||
		!strings.Contains(out.String(), "| 20/100 | 0.5/0.5") || !strings.Contains(out.String(), "RRF k 60") || !strings.Contains(out.String(), "dense alone") {
		t.Errorf("got\n%s", out.String())
	}
	for _, line := range lines[1:7] {
		if len(line) != len(lines[0]) {
			t.Errorf("the columns do not line up:\n%s", out.String())
			break
		}
	}
}

func TestVariantsAsConfigurations(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]eval.Variant{
		`{"searchType":["DENSE_VECTOR"],"denseVectorSearchConfiguration":{"numberOfResults":100}}`: {Legs: eval.Vector, N1: 100},
		`{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":100}}`:       {Legs: eval.Sparse, N2: 100},
		`{"searchType":["DENSE_VECTOR","FULL_TEXT"],"denseVectorSearchConfiguration":{"numberOfResults":20},"fullTextSearchConfiguration":{"numberOfResults":50},` +
			`"rerankingConfiguration":{"type":"WEIGHT","weightConfiguration":{"denseVectorSearchWeight":0.5,"fullTextSearchWeight":0.5}}}`: {Legs: eval.Hybrid, Method: fusion.Weight, N1: 20, N2: 50, DenseWeight: 0.5, TextWeight: 0.5},
		`{"searchType":["DENSE_VECTOR","FULL_TEXT"],"denseVectorSearchConfiguration":{"numberOfResults":20},"fullTextSearchConfiguration":{"numberOfResults":20},` +
			`"rerankingConfiguration":{"type":"RRF","rrfConfiguration":{"denseVectorSearchWeight":1,"fullTextSearchWeight":1,"k":60}}}`: {Legs: eval.Hybrid, Method: fusion.RRF, N1: 20, N2: 20, DenseWeight: 1, TextWeight: 1, K: 60},
	} {
		got, err := json.Marshal(v.Configuration())
		if err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
		if err := messages.CheckStoredRetrieval(got, messages.IndexTypeHybrid, nil); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}

func TestASweepNeedsBothLegs(t *testing.T) {
	t.Parallel()
	_, err := eval.Collect(t.Context(), judged(1), fusion.Cosine, 10, 1, func(context.Context, messages.RetrieveRequest) (messages.RetrieveReply, error) {
		return messages.RetrieveReply{Results: []messages.RetrievedChunk{{DocID: "a", Explain: &messages.Explain{FullText: &messages.LegDetail{Rank: 1}}}}}, nil
	})
	if !errors.Is(err, eval.ErrNotHybrid) {
		t.Errorf("got %v, want ErrNotHybrid", err)
	}
}
