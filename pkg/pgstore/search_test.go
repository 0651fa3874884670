package pgstore_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

const sub = messages.DefaultSubspace

// list is the names of a leg's list in its order.
func list(found pgstore.Found, place func(pgstore.Match) int) []string {
	out := make([]string, 0, len(found.Matches))
	ms := slices.Clone(found.Matches)
	slices.SortFunc(ms, func(a, b pgstore.Match) int { return place(a) - place(b) })
	for _, m := range ms {
		if place(m) > 0 {
			out = append(out, fmt.Sprintf("%s/%s#%d", m.Subspace, m.DocID, m.Ordinal))
		}
	}
	return out
}

func denseRank(m pgstore.Match) int { return m.DenseRank }
func textRank(m pgstore.Match) int  { return m.TextRank }

// sameRanking compares a leg with brute force: the score at each rank, and who stands above the last score.
func sameRanking(t *testing.T, what string, found pgstore.Found, place func(pgstore.Match) int, score func(pgstore.Match) float64, want []scored) {
	t.Helper()
	got := map[int]pgstore.Match{}
	for _, m := range found.Matches {
		if place(m) > 0 {
			got[place(m)] = m
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: got %d chunks, want %d", what, len(got), len(want))
	}
	above := map[int64]bool{}
	for _, m := range got {
		above[m.ChunkID] = true
	}
	for i, w := range want {
		m := got[i+1]
		if math.Abs(score(m)-w.score) > 1e-5 {
			t.Errorf("%s, rank %d: got %.7f, want %.7f", what, i+1, score(m), w.score)
		}
		if w.score > want[len(want)-1].score+1e-5 && !above[w.id] {
			t.Errorf("%s, rank %d: %s#%d is missing", what, i+1, w.docID, w.ordinal)
		}
	}
}

var vocabulary = strings.Fields("pump valve seal rotor housing torque bearing shaft flange gasket 水泵 阀门 密封 轴承 running runs ran M12x30 the of and")

func words(rng *rand.Rand) string {
	out := make([]string, 3+rng.IntN(20))
	for i := range out {
		out[i] = vocabulary[min(rng.IntN(len(vocabulary)), rng.IntN(len(vocabulary)))]
		if rng.IntN(6) == 0 {
			out[i] = fmt.Sprintf("item%d", rng.IntN(60))
		}
	}
	return strings.Join(out, " ")
}

func TestTextLegEqualsBruteForceAfterAThousandSteps(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[string]bool{}
	for step := 1; step <= 1000; step++ {
		doc := fmt.Sprintf("d%02d", rng.IntN(60))
		switch kind := rng.IntN(10); {
		case kind < 6 || !live[doc] && kind < 9:
			chunks := make([]string, 1+rng.IntN(4))
			for i := range chunks {
				chunks[i] = words(rng)
			}
			l.put(sub, doc, chunks, nil, rng)
			live[doc] = true
		case kind < 9:
			l.remove(sub, doc)
			delete(live, doc)
		default:
			if _, err := l.store.MergeSegments(t.Context(), l.kb.Generation.ID); err != nil {
				t.Fatal(err)
			}
		}
		if step%100 == 0 {
			l.compareText(rng, step)
		}
		if t.Failed() {
			return
		}
	}
}

// compareText runs queries on a warm and a cold cache against brute force.
func (l *lab) compareText(rng *rand.Rand, step int) {
	l.t.Helper()
	all := l.stored()
	cold := pgstore.NewSearcher(l.store, 0)
	for range 10 {
		query, limit := words(rng), 1+rng.IntN(40)
		q := l.an.Query(query)
		used := q.Terms
		if len(rank(all, limit, bm25(all, used))) < limit {
			used = slices.Concat(q.Terms, q.Second)
		}
		want := rank(all, limit, bm25(all, used))
		for _, s := range []*pgstore.Searcher{l.searcher, cold} {
			res, err := s.Search(l.t.Context(), pgstore.SearchPlan{KB: l.kb, Text: l.textPlan(query, limit), Keep: keepAll})
			if err != nil {
				l.t.Fatal(err)
			}
			sameRanking(l.t, fmt.Sprintf("step %d, query %q", step, query), res.Found, textRank, func(m pgstore.Match) float64 { return m.BM25 }, want)
		}
	}
}

func TestDenseLegEqualsBruteForceInEveryMetric(t *testing.T) {
	l := newLab(t)
	for _, metric := range []string{"cosine", "l2", "ip"} {
		rng := rand.New(rand.NewPCG(3, 4))
		l.newKB(metric, metric, false)
		for d := range 12 {
			chunks := make([]string, 10)
			for i := range chunks {
				chunks[i] = words(rng)
			}
			l.put(sub, fmt.Sprintf("d%02d", d), chunks, nil, rng)
		}
		all := l.stored()
		for range 10 {
			query := []float32{0.5, -0.25, float32(rng.IntN(8)) / 8, 1}
			limit := 1 + rng.IntN(30)
			text := words(rng)
			res := l.search(pgstore.SearchPlan{Dense: &pgstore.DensePlan{Vector: query, Limit: limit}, Text: l.textPlan(text, limit)})
			similar := func(s stored) (float64, bool) { return near(metric, query, s.vector), true }
			sameRanking(t, metric, res.Found, denseRank, func(m pgstore.Match) float64 { return m.Similarity }, rank(all, limit, similar))
			byID := map[int64]stored{}
			for _, s := range all {
				byID[s.id] = s
			}
			score := bm25(all, l.an.Query(text).Terms)
			for _, m := range res.Matches {
				if got, want := m.Similarity, near(metric, query, byID[m.ChunkID].vector); !m.HasSimilarity || math.Abs(got-want) > 1e-5 {
					t.Errorf("%s: similarity of %s#%d: got %f, want %f", metric, m.DocID, m.Ordinal, got, want)
				}
				if want, _ := score(byID[m.ChunkID]); math.Abs(m.BM25-want) > 1e-5 {
					t.Errorf("%s: BM25 of %s#%d: got %f, want %f", metric, m.DocID, m.Ordinal, m.BM25, want)
				}
			}
		}
	}
}

func TestTiesAreCutByIdentityInBothLegs(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(5, 6))
	equal := []float32{1, 1, 0, 0}
	// Documents come in an order that is not that of their ids; more tie than either leg reads at first.
	for _, d := range rng.Perm(40) {
		chunks, vectors := make([]string, 10), make([][]float32, 10)
		for i := range chunks {
			chunks[i], vectors[i] = "same words here", equal
		}
		l.put(sub, fmt.Sprintf("d%02d", d), chunks, vectors, rng)
	}
	l.put(sub, "z", []string{"same words words"}, [][]float32{{1, 1, 0.5, 0}}, rng)
	for _, limit := range []int{1, 5, 23, 399} {
		res := l.search(pgstore.SearchPlan{Dense: &pgstore.DensePlan{Vector: equal, Limit: limit}, Text: l.textPlan("words", limit)})
		var want []string
		for i := range limit {
			want = append(want, fmt.Sprintf("%s/d%02d#%d", sub, i/10, i%10))
		}
		if got := list(res.Found, denseRank); !slices.Equal(got, want) {
			t.Errorf("dense list of %d: got %v, want %v", limit, got, want)
		}
		want = append([]string{sub + "/z#0"}, want[:limit-1]...)
		if got := list(res.Found, textRank); !slices.Equal(got, want) {
			t.Errorf("full-text list of %d: got %v, want %v", limit, got, want)
		}
	}
}

func TestSubspacesAndInactiveChunksNeverLeak(t *testing.T) {
	l := newLab(t)
	l.newKB("rooms", "cosine", true)
	rng := rand.New(rand.NewPCG(7, 8))
	for d := range 30 {
		l.put([]string{"a", "b", "c"}[d%3], fmt.Sprintf("d%02d", d), []string{"pump " + words(rng), "pump"}, nil, rng)
	}
	find := func(subspaces []string, where pgstore.Predicate, limit int) pgstore.Found {
		return l.search(pgstore.SearchPlan{
			Subspaces: subspaces, Where: where,
			Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: limit}, Text: l.textPlan("pump", limit),
		}).Found
	}
	for _, c := range []struct {
		subspaces []string
		matching  int
	}{{[]string{"a"}, 20}, {[]string{"a", "c"}, 40}, {[]string{"nowhere"}, 0}, {[]string{}, 0}, {nil, 60}} {
		for _, limit := range []int{5, 100} {
			found := find(c.subspaces, nil, limit)
			if want := min(limit, c.matching); found.Dense.Candidates != want || found.Text.Candidates != want {
				t.Errorf("%v: got lists of %d and %d, want %d", c.subspaces, found.Dense.Candidates, found.Text.Candidates, want)
			}
			for _, m := range found.Matches {
				if c.subspaces != nil && !slices.Contains(c.subspaces, m.Subspace) {
					t.Errorf("%v: %s/%s leaked", c.subspaces, m.Subspace, m.DocID)
				}
			}
		}
	}
	if _, err := l.pool.Exec(t.Context(), `UPDATE chunks SET active = ordinal = 1 WHERE generation = $1`, l.kb.Generation.ID); err != nil {
		t.Fatal(err)
	}
	for _, found := range []pgstore.Found{find(nil, nil, 100), find([]string{"a", "b", "c"}, nil, 100)} {
		if found.Dense.Candidates != 30 || found.Text.Candidates != 30 {
			t.Errorf("with half the chunks inactive: got lists of %d and %d, want 30", found.Dense.Candidates, found.Text.Candidates)
		}
	}
	only := func(arg func(any) string) string {
		return "coalesce(d.live_metadata ->> 'of' = " + arg("d07") + ", false)"
	}
	if found := find(nil, only, 100); len(found.Matches) != 1 || found.Matches[0].DocID != "d07" {
		t.Errorf("with a predicate: got %+v, want the active chunk of d07", found.Matches)
	}
}

func TestSecondPassAddsSingleCharacters(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(9, 10))
	l.put(sub, "whole", []string{"密封圈"}, nil, rng)
	l.put(sub, "part", []string{"封"}, nil, rng)
	if got := list(l.search(pgstore.SearchPlan{Text: l.textPlan("密封", 1)}).Found, textRank); !slices.Equal(got, []string{sub + "/whole#0"}) {
		t.Errorf("enough found at first: got %v, want whole alone", got)
	}
	if got := list(l.search(pgstore.SearchPlan{Text: l.textPlan("密封", 5)}).Found, textRank); !slices.Equal(got, []string{sub + "/whole#0", sub + "/part#0"}) {
		t.Errorf("too few found at first: got %v, want whole, part", got)
	}
}

func TestSearchIsOneSnapshot(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(11, 12))
	l.put(sub, "doc", []string{"pump one"}, nil, rng)
	res := l.search(pgstore.SearchPlan{
		Text: l.textPlan("pump", 10), Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 10},
		Keep: func(f pgstore.Found) []int64 {
			l.put(sub, "doc", []string{"pump two"}, nil, rng) // replaces what was found, in another transaction
			return keepAll(f)
		},
	})
	if len(res.Kept) != 1 || res.Kept[0].Content != "pump one" {
		t.Fatalf("got %+v, want the version that was found", res.Kept)
	}
	k := res.Kept[0]
	if k.Title != "T doc" || k.OSSKey != "doc" || !slices.Equal(k.HeadingPath, []string{"h", "doc"}) || k.PageTo != 1 || string(k.Metadata) != `{"of": "doc"}` {
		t.Errorf("what is shown of a result: got %+v", k)
	}
	if again := l.search(pgstore.SearchPlan{Text: l.textPlan("pump", 10)}); len(again.Kept) != 1 || again.Kept[0].Content != "pump two" {
		t.Errorf("afterwards: got %+v, want the new version", again.Kept)
	}
}

func TestSearchSeesThatTheKnowledgeBaseChanged(t *testing.T) {
	l := newLab(t)
	l.put(sub, "doc", []string{"pump"}, nil, rand.New(rand.NewPCG(1, 1)))
	plans := []pgstore.SearchPlan{
		{KB: l.kb, Text: l.textPlan("pump", 10), Keep: keepAll},
		{KB: l.kb, Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 10}, Keep: keepAll},
	}
	text := "other"
	if _, err := l.store.UpdateKB(t.Context(), l.kb.Tenant, l.kb.Name, pgstore.KBUpdate{Description: &text}); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for i, plan := range plans {
			if _, err := l.searcher.Search(t.Context(), plan); !errors.Is(err, pgstore.ErrGenerationChanged) {
				t.Errorf("plan %d %s: got %v, want ErrGenerationChanged", i, when, err)
			}
		}
	}
	check("after an update")
	if _, err := l.pool.Exec(t.Context(), "ALTER TABLE chunks DETACH PARTITION "+partitionOf(l.kb)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.pool.Exec(t.Context(), "DROP TABLE "+partitionOf(l.kb)); err != nil {
		t.Fatal(err)
	}
	check("after its partition is gone")
	stat := l.pool.Stat()
	if stat.AcquiredConns() != 0 {
		t.Errorf("%d connections are still out", stat.AcquiredConns())
	}
}

func partitionOf(kb pgstore.KB) string {
	return pgx.Identifier{fmt.Sprintf("chunks_g%d", kb.Generation.ID)}.Sanitize()
}

func TestTheLargestVectorsFitARow(t *testing.T) {
	l := newLab(t)
	for _, n := range []int{3500, 4000} {
		kb, err := l.store.CreateKB(t.Context(), pgstore.NewKB{
			Tenant: "acme", Name: fmt.Sprintf("dims%d", n), IndexType: messages.IndexTypeHybrid, Schema: testSchema(),
			Generation: pgstore.Generation{Parser: "p1", Analyzer: "lex1", Space: &messages.Space{Model: "wide", Dims: n, Metric: "ip"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		l.kb = kb
		v := make([]float32, n)
		v[n-1] = 1
		l.put(sub, "doc", []string{"pump"}, [][]float32{v}, rand.New(rand.NewPCG(1, 1)))
		res := l.search(pgstore.SearchPlan{Dense: &pgstore.DensePlan{Vector: v, Limit: 1}})
		if len(res.Kept) != 1 || res.Kept[0].Similarity != 1 {
			t.Errorf("%d dimensions: got %+v, want the chunk", n, res.Kept)
		}
	}
}
