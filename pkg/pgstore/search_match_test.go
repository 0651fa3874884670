package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore"
)

func TestConditionsAreWrittenAsTsquery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clauses []pgstore.Clause
		want    string
	}{
		{nil, ""},
		{[]pgstore.Clause{{Steps: []pgstore.Step{{Lexeme: "pump"}}}}, "('pump')"},
		{[]pgstore.Clause{{Steps: []pgstore.Step{{Lexeme: `o'b\c`, Prefix: true}}, Exclude: true}}, `!('o''b\\c':*)`},
		{
			[]pgstore.Clause{{Steps: []pgstore.Step{{Lexeme: "a"}, {Lexeme: "b", After: 1}, {Lexeme: "c", After: 2}}}, {Steps: []pgstore.Step{{Lexeme: "d"}}}},
			"('a' <1> 'b' <2> 'c') & ('d')",
		},
	} {
		if got := pgstore.Condition(c.clauses); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.clauses, got, c.want)
		}
	}
}

// holds is a clause looked up in a chunk's words, one position each.
func holds(chunk []string, c pgstore.Clause) bool {
	found := false
	for at := range chunk {
		ok := true
		pos := at
		for i, s := range c.Steps {
			if i > 0 {
				pos += s.After
			}
			ok = ok && pos < len(chunk) && (chunk[pos] == s.Lexeme || s.Prefix && strings.HasPrefix(chunk[pos], s.Lexeme))
		}
		found = found || ok
	}
	return found != c.Exclude
}

// Both legs return the best chunks that match and no others, however few those are.
func TestConditionsHoldBeforeTheCut(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(3, 4))
	vocabulary := []string{"pump", "seal", "rotor", "valv", "flang", "m12", "m120", "x'y"}
	var chunks [][]string
	for d := range 60 {
		var texts []string
		for range 20 {
			var w []string
			for range 2 + rng.IntN(5) {
				w = append(w, vocabulary[min(rng.IntN(7), rng.IntN(7))])
			}
			chunks = append(chunks, w)
			texts = append(texts, strings.Join(w, " "))
		}
		l.put(sub, fmt.Sprintf("d%02d", d), texts, nil, rng)
	}
	all := l.stored() // by document and ordinal, as chunks is
	for trial := range 60 {
		var clauses []pgstore.Clause
		for range 1 + rng.IntN(2) {
			c := pgstore.Clause{Exclude: rng.IntN(3) == 0}
			for range 1 + rng.IntN(3) {
				c.Steps = append(c.Steps, pgstore.Step{Lexeme: vocabulary[rng.IntN(8)], After: 1 + rng.IntN(2), Prefix: rng.IntN(4) == 0})
			}
			clauses = append(clauses, c)
		}
		matching := map[int64]bool{}
		for i, c := range chunks {
			ok := true
			for _, clause := range clauses {
				ok = ok && holds(c, clause)
			}
			matching[all[i].id] = ok
		}
		query := vocabulary[rng.IntN(7)] + " " + vocabulary[rng.IntN(7)]
		limit := 1 + rng.IntN(30)
		p := l.textPlan(query, limit)
		match := pgstore.Condition(clauses)
		vector := []float32{float32(rng.IntN(256)-128) / 256, float32(rng.IntN(256)-128) / 256, float32(rng.IntN(256)-128) / 256, 0.125} // exact in half precision
		res := l.search(pgstore.SearchPlan{Match: match, Text: p, Dense: &pgstore.DensePlan{Vector: vector, Limit: limit}})
		kept := slices.DeleteFunc(slices.Clone(all), func(s stored) bool { return !matching[s.id] })
		score := bm25(all, l.an.Query(query).Terms)
		what := fmt.Sprintf("trial %d, %q with %s", trial, query, match)
		sameRanking(t, what, res.Found, textRank, func(m pgstore.Match) float64 { return m.BM25 }, rank(kept, limit, score))
		sameRanking(t, what+", dense", res.Found, denseRank, func(m pgstore.Match) float64 { return m.Similarity },
			rank(kept, limit, func(s stored) (float64, bool) { return near("cosine", s.vector, vector), true }))
		if t.Failed() {
			return
		}
	}
}

func TestPrefixesStandForStoredLexemes(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(5, 6))
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("zz%d", i)
	}
	l.put(sub, "a", []string{"m12", "m120 pump", "m13"}, nil, rng)
	l.put(sub, "b", []string{strings.Join(many, " ")}, nil, rng)
	p := l.textPlan("pump", 10)
	p.Prefixes = []pgstore.Prefix{{Lexeme: "m12", Weight: 1}}
	res := l.search(pgstore.SearchPlan{Text: p})
	if got := list(res.Found, textRank); !slices.Equal(got, []string{sub + "/a#1", sub + "/a#0"}) || res.PrefixesCut || res.Text.Terms != 3 {
		t.Errorf("m12*: got %v, %d terms, cut %v; want the chunk with both, then the other", got, res.Text.Terms, res.PrefixesCut)
	}
	p = &pgstore.TextPlan{K1: 1.2, B: .75, Limit: 10, Prefixes: []pgstore.Prefix{{Lexeme: "zz", Weight: 1}}}
	if res := l.search(pgstore.SearchPlan{Text: p}); !res.PrefixesCut || res.Text.Terms != 64 || len(res.Matches) != 1 {
		t.Errorf("zz*: got %d terms, cut %v, %d chunks; want 64, true, 1", res.Text.Terms, res.PrefixesCut, len(res.Matches))
	}
	p.Prefixes[0].Lexeme = "nothing"
	if res := l.search(pgstore.SearchPlan{Text: p}); len(res.Matches) != 0 {
		t.Errorf("a prefix of nothing: got %v, want none", res.Matches)
	}
}

func TestFallbackOfAnEmptyDenseLeg(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(7, 8))
	none := [][]float32{{0, 0, 0, 0}}
	l.put(sub, "a", []string{"pump seal"}, none, rng)
	plan := pgstore.SearchPlan{Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 5}, Fallback: l.textPlan("pump", 5)}
	res := l.search(plan)
	if got := list(res.Found, textRank); !res.FellBack || !slices.Equal(got, []string{sub + "/a#0"}) || res.Dense.Candidates != 0 {
		t.Errorf("nothing near: got %v, fell back %v; want the full-text leg", got, res.FellBack)
	}
	plan.Subspaces = []string{"elsewhere"}
	if res := l.search(plan); len(res.Matches) != 0 || !res.FellBack {
		t.Errorf("another subspace: got %v, want nothing: the fallback is restricted too", res.Matches)
	}
	plan.Subspaces = nil
	l.put(sub, "b", []string{"other"}, [][]float32{{0, 1, 0, 0}}, rng)
	if res := l.search(plan); res.FellBack || len(res.Matches) != 1 || res.Matches[0].DocID != "b" {
		t.Errorf("something near: got %+v, want the dense leg", res.Found)
	}
}

func TestReadSkipsWhatIsGone(t *testing.T) {
	l := newLab(t)
	rng := rand.New(rand.NewPCG(9, 10))
	for _, d := range []string{"a", "b", "c", "d"} {
		l.put(sub, d, []string{"pump", "seal"}, nil, rng)
	}
	var ids []int64
	for _, s := range l.stored() {
		ids = append(ids, s.id)
	}
	slices.Reverse(ids)
	read := func(plan pgstore.ReadPlan) []string {
		t.Helper()
		plan.KB, plan.IDs, plan.Vectors = l.kb, append(ids, ids[0], 1<<40), true
		plan.Keep = func(there []pgstore.Match) []int64 { return keepAll(pgstore.Found{Matches: there}) }
		res, err := l.searcher.Read(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, c := range res.Kept {
			if c.Content == "" || c.Title == "" || len(c.Vector) != dims {
				t.Errorf("%s#%d: got %+v, want content, title and vector", c.DocID, c.Ordinal, c)
			}
			out = append(out, fmt.Sprintf("%s#%d", c.DocID, c.Ordinal))
		}
		return out
	}
	if got := read(pgstore.ReadPlan{}); !slices.Equal(got, strings.Fields("d#1 d#0 c#1 c#0 b#1 b#0 a#1 a#0")) {
		t.Errorf("nothing changed: got %v, want all in the order asked for, each once", got)
	}
	l.put(sub, "b", []string{"pump", "seal", "more"}, nil, rng)
	l.remove(sub, "d")
	if _, err := l.pool.Exec(t.Context(), "UPDATE chunks SET active = false WHERE chunk_id = $1", ids[2]); err != nil {
		t.Fatal(err)
	}
	if got := read(pgstore.ReadPlan{}); !slices.Equal(got, strings.Fields("c#0 a#1 a#0")) {
		t.Errorf("after a swap, a delete and a chunk set inactive: got %v, want c#0 a#1 a#0", got)
	}
	if got := read(pgstore.ReadPlan{Subspaces: []string{"x"}}); len(got) != 0 {
		t.Errorf("another subspace: got %v, want nothing", got)
	}
	where := func(arg func(any) string) string { return "d.doc_id = " + arg("a") }
	if got := read(pgstore.ReadPlan{Where: where}); !slices.Equal(got, strings.Fields("a#1 a#0")) {
		t.Errorf("with a predicate: got %v, want a#1 a#0", got)
	}
}

// The condition must be asked of few chunks by their key, never of all.
func TestPlansOfConditions(t *testing.T) {
	l := planned(t)
	const match = "('pump')"
	st, err := pgstore.HybridSQL(pgstore.SearchPlan{KB: l.kb, Match: match, Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 20}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if plan := l.explain(st); strings.Count(plan, "Seq Scan") != 1 || !strings.Contains(plan, "SubPlan") {
		t.Errorf("want one sequential scan and the condition in a subplan\n%s", plan)
	}
	var ids []int64
	for _, s := range l.stored()[:40] {
		ids = append(ids, s.id)
	}
	if plan := l.explain(pgstore.LookSQL(pgstore.SearchPlan{KB: l.kb, Match: match}, ids)); strings.Contains(plan, "Seq Scan") {
		t.Errorf("want no sequential scan\n%s", plan)
	}
}
