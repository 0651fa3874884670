package retriever_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/retriever"
)

func batchOf(queries ...string) string { return `{"queries":[` + strings.Join(queries, ",") + `]}` }

func TestBatch(t *testing.T) { // CT-79 over the wire
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.fill(kb, 9)
	l.embed.Store(func(text string) ([]float32, error) {
		return vectorOf(text, 8), nil
	})
	var queries []string
	var want [][]string
	for i := range 20 {
		queries = append(queries, ask(fmt.Sprintf("pump number%d", i%5), `{"rerankingConfiguration":{"numberOfResults":3}}`))
	}
	before := l.embeds.Load()
	var out messages.BatchReply
	if err := l.call("docs", messages.OpBatch, batchOf(queries...), &out); err != nil {
		t.Fatal(err)
	}
	if n := l.embeds.Load() - before; n != 1 {
		t.Errorf("the embedder was called %d times, want once for all", n)
	}
	for _, q := range queries {
		want = append(want, ids(l.retrieve("docs", q)))
	}
	if len(out.Results) != 20 {
		t.Fatalf("got %d results, want 20", len(out.Results))
	}
	for i := range out.Results {
		if got := ids(out.Results[i]); !slices.Equal(got, want[i]) {
			t.Errorf("query %d: got %v, want %v", i, got, want[i])
		}
	}
	if err := l.call("docs", messages.OpBatch, `{"queries":[]}`, &out); err != nil || out.Results == nil || len(out.Results) != 0 {
		t.Errorf("an empty batch: got %v (%v), want empty", out.Results, err)
	}
}

func TestABatchFailsFast(t *testing.T) { // CT-79, D-24
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.kb("vectors", func(n *pgstore.NewKB) { n.IndexType = messages.IndexTypeVector })
	l.fill(kb, 3)
	good := ask("pump", "")
	for _, c := range []struct {
		scope, body string
		code        messages.Code
		field       string
	}{
		{"docs", `{}`, messages.CodeValidation, "queries"},
		{"docs", `{"queries":null}`, messages.CodeValidation, "queries"},
		{"docs", batchOf(slices.Repeat([]string{good}, 101)...), messages.CodeValidation, "queries"},
		{"docs", batchOf(good, `{"a":1}`), messages.CodeValidation, "queries[1].a"},
		{"docs", batchOf(good, good, ask("", "")), messages.CodeValidation, "queries[2].retrievalQuery.text"},
		{"docs", batchOf(good, ask("x", `{"scoreThreshold":0.5}`)), messages.CodeScoreThreshold, "queries[1].retrievalConfiguration.scoreThreshold"},
		{"docs", batchOf(`{"knowledgeBaseName":"vectors","retrievalQuery":{"type":"TEXT","text":"x"}}`), messages.CodeValidation, "queries[0].knowledgeBaseName"},
		{"_", batchOf(good), messages.CodeValidation, "queries[0].knowledgeBaseName"},
		{"_", batchOf(`{"knowledgeBaseName":"nowhere","retrievalQuery":{"type":"TEXT","text":"x"}}`), messages.CodeKBNotFound, "queries[0].knowledgeBaseName"},
		{"_all", batchOf(good), messages.CodeNotSupported, ""},
	} {
		refused(t, c.body[:min(len(c.body), 200)], l.call(c.scope, messages.OpBatch, c.body, nil), c.code, c.field)
	}
	var out messages.BatchReply
	named := `{"knowledgeBaseName":"%s","retrievalQuery":{"type":"TEXT","text":"pump"}}`
	if err := l.call("_", messages.OpBatch, batchOf(fmt.Sprintf(named, "docs"), fmt.Sprintf(named, "vectors")), &out); err != nil ||
		len(out.Results) != 2 || len(out.Results[0].Results) != 3 || len(out.Results[1].Results) != 0 {
		t.Errorf("two knowledge bases: got %+v (%v)", out, err)
	}
	l.embed.Store(func(text string) ([]float32, error) {
		if text == "bad" {
			return nil, messages.Errorf(messages.CodeEmbeddingRejected, "no")
		}
		return vectorOf(text, 8), nil
	})
	refused(t, "one text that cannot be embedded", l.call("docs", messages.OpBatch, batchOf(ask("new", ""), ask("bad", ""), ask("newer", "")), nil),
		messages.CodeEmbeddingRejected, "queries[1]")
	if err := l.call("docs", messages.OpBatch, batchOf(ask("newest", ""), `{"allowPartial":true,"retrievalQuery":{"type":"TEXT","text":"bad"}}`), &out); err != nil ||
		!slices.Equal(out.Results[1].Diagnostics.Degraded, []string{"DENSE_VECTOR: EMBEDDING_REJECTED"}) {
		t.Errorf("one text that cannot be embedded, partial: got %+v (%v), want that one degraded", out, err)
	}
}

func TestABatchHasOneDeadline(t *testing.T) {
	l := newLab(t, setup{cfg: retriever.Config{DefaultDeadline: 2 * testkit.Patience}}) // who has that is not answered within the test
	l.fill(l.kb("docs", nil), 3)
	release := make(chan struct{})
	defer close(release)
	l.embed.Store(func(string) ([]float32, error) { <-release; return nil, errors.New("late") })
	w := &wire{l: l, header: bus.Header{messages.HeaderDeadline: "300"}, op: messages.OpBatch}
	err := w.call(context.Background(), "docs", batchOf(slices.Repeat([]string{ask("pump", "")}, 50)...), nil)
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeDeadlineExceeded {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
}

func TestAnswersOfABatchShareTheReply(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	chunk := "pump " + strings.Repeat("<&>\u0001 ", 2000)
	for i := range 20 {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%02d", i), chunk)
	}
	l.put(kb, messages.DefaultSubspace, "small", "gasket")
	var out messages.BatchReply
	large, small := ask("pump", ""), ask("gasket", `{"searchType":["FULL_TEXT"]}`)
	if err := l.call("docs", messages.OpBatch, batchOf(large, small, large), &out); err != nil {
		t.Fatal(err)
	}
	if r := out.Results[1]; len(r.Results) != 1 || r.Truncated {
		t.Errorf("the small one: got %d results, truncated %v; want it whole", len(r.Results), r.Truncated)
	}
	for _, i := range []int{0, 2} {
		if r := out.Results[i]; !r.Truncated || len(r.Results) < 4 || len(r.Results) >= 20 || r.NextCursor == "" {
			t.Errorf("large one %d: got %d results, truncated %v; want some and a cursor", i, len(r.Results), r.Truncated)
		}
	}
}

func TestSearchIsRetrieveInAStoresForm(t *testing.T) { // OJ-03 to OJ-08, C-11
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.put(kb, messages.DefaultSubspace, "a#b", "valve", "pump seal")
	body := ask("pump", `{"outputConfiguration":{"vector":true}}`)
	var out messages.SearchReply
	if err := l.call("docs", messages.OpSearch, body, &out); err != nil {
		t.Fatal(err)
	}
	want := l.retrieve("docs", body)
	if len(out.Results) != 2 || len(want.Results) != 2 {
		t.Fatalf("got %d and %d results, want 2", len(out.Results), len(want.Results))
	}
	for i, s := range out.Results {
		r := want.Results[i]
		if s.ID != fmt.Sprintf("%s#%d", r.DocID, r.ChunkID) || s.Text != r.Content || s.Score != r.Score || string(s.Metadata) != string(r.Metadata) ||
			s.DocID != r.DocID || s.ChunkID != r.ChunkID || *s.RawScore != *r.RawScore || *s.RawScoreScaled != *r.RawScoreScaled || len(s.Vector) != 8 {
			t.Errorf("result %d: got %+v, want that of %+v", i, s, r)
		}
	}
	var raw struct {
		SearchResults []map[string]json.RawMessage `json:"searchResults"`
	}
	if err := l.call("docs", messages.OpSearch, ask("pump", `{"rerankingConfiguration":{"numberOfResults":1}}`), &raw); err != nil || len(raw.SearchResults) != 1 {
		t.Fatalf("got %v (%v), want one result", raw, err)
	}
	for _, key := range []string{"id", "text", "score", "metadata"} {
		if raw.SearchResults[0][key] == nil {
			t.Errorf("a result has no %s", key)
		}
	}
	refused(t, "search", l.call("docs", messages.OpSearch, ask("", ""), nil), messages.CodeValidation, "retrievalQuery.text")
}
