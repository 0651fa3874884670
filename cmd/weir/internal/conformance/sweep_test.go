package conformance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
)

// TestSweepRanksAsTheService compares the rankings that `weir eval --sweep` makes of one answer a query with
// those that the service gives for each variant.
func TestSweepRanksAsTheService(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(4, 4)) //nolint:gosec // a fixed seed
	word := func() string { return fmt.Sprintf("term%d", rng.IntN(20)*rng.IntN(3)) }
	text := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = word()
		}
		return strings.Join(words, " ")
	}
	f := fixture{KnowledgeBases: []fixtureKB{{Create: []byte(`{"knowledgeBaseName":"judged","chunkingConfiguration":{"strategy":"whole"}}`)}}}
	for i := range 60 {
		f.KnowledgeBases[0].Documents = append(f.KnowledgeBases[0].Documents, fmt.Appendf(nil, `{"docId":"d%02d","text":%q}`, i, text(2+rng.IntN(6))))
	}
	w.build(t, "sweep", f)
	set := &eval.Set{Qrels: eval.Qrels{}}
	for i := range 10 {
		id := fmt.Sprint("q", i)
		set.Queries = append(set.Queries, eval.Query{ID: id, Text: text(3)})
		set.Qrels[id] = map[string]int{"d00": 1}
	}
	ask := func(ctx context.Context, in messages.RetrieveRequest) (out messages.RetrieveReply, err error) {
		return out, w.request(ctx, "sweep", "judged", messages.OpRetrieve, nil, in, &out)
	}
	pools, err := eval.Collect(t.Context(), set, fusion.Cosine, 40, 2, ask)
	if err != nil {
		t.Fatal(err)
	}
	variants := eval.Grid{Counts: []eval.Counts{{N1: 20, N2: 20}, {N1: 40, N2: 5}}, Shares: []float64{0.7, 0.5, 0}, Ks: []int{60}}.Variants()
	for _, v := range append(variants[3:], variants[0], eval.Variant{Legs: eval.Vector, N1: 40}, eval.Variant{Legs: eval.Sparse, N2: 40}) {
		run, err := pools.Rank(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range set.Queries {
			c, all := v.Configuration(), 100
			if c.Reranking == nil {
				c.Reranking = &messages.RerankingConfig{}
			}
			c.Reranking.NumberOfResults = &all
			reply, err := ask(t.Context(), messages.RetrieveRequest{Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: q.Text}, Configuration: c})
			if err != nil {
				t.Fatal(err)
			}
			want := eval.Fold(reply.Results)
			if len(want) < 5 || !slices.Equal(run[q.ID], want) {
				t.Errorf("%s, %s %s %s: got %v, the service gives %v", q.Text, v.Name(), v.Lists(), v.Weights(), run[q.ID], want)
			}
		}
	}
}
