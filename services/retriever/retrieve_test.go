package retriever_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever"
)

func TestMinimalRequestRunsBothLegs(t *testing.T) { // CT-01, CT-17
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.fill(kb, 30)
	var env messages.Envelope
	msg, err := l.nc.Request(messages.RPCSubject("acme", "docs", messages.OpRetrieve), []byte(`{"retrievalQuery":{"type":"TEXT","text":"pump seal1"}}`), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(msg.Data, &env); err != nil || env.Code != messages.CodeSuccess || env.Message != "succeed" || env.RequestID == "" {
		t.Fatalf("envelope: got %s, want SUCCESS, succeed and a request id (%v)", msg.Data, err)
	}
	var out messages.RetrieveReply
	if err := messages.DecodeStrict(env.Data, &out); err != nil {
		t.Fatal(err)
	}
	d := out.Diagnostics
	if d.Dense == nil || d.FullText == nil || d.Dense.Candidates != 20 || d.FullText.Candidates != 20 || !d.Dense.Exact || d.Fusion != "WEIGHT" {
		t.Errorf("diagnostics: got %+v, want both legs with 20 candidates, WEIGHT", d)
	}
	if len(out.Results) != 20 {
		t.Fatalf("got %d results, want 20", len(out.Results))
	}
	for i, r := range out.Results {
		if i > 0 && r.Score > out.Results[i-1].Score {
			t.Errorf("result %d scores %v, above the one before", i, r.Score)
		}
	}
	r := out.Results[0]
	if r.DocID == "" || r.OSSKey != "oss/"+r.DocID || r.Title != "Title of "+r.DocID || !strings.HasPrefix(r.Content, "pump number") ||
		r.Subspace != messages.DefaultSubspace || r.PageFrom != 1 || r.PageTo != 2 || !slices.Equal(r.HeadingPath, []string{"Part", r.DocID}) {
		t.Errorf("result: got %+v", r)
	}
	if string(r.Metadata) != `{"of":"`+r.DocID+`"}` {
		t.Errorf("metadata: got %s, want the public field alone", r.Metadata)
	}
}

func TestConfigurationPrecedence(t *testing.T) { // CT-02, CT-04, CT-06 end
	l := newLab(t, setup{})
	kb := l.kb("docs", func(n *pgstore.NewKB) {
		n.Retrieval = json.RawMessage(`{"searchType":["FULL_TEXT","DENSE_VECTOR"],"rerankingConfiguration":{"type":"RRF","numberOfResults":5,"rrfConfiguration":{"k":20}}}`)
	})
	l.fill(kb, 12)
	r := l.retrieve("docs", ask("pump seal1", `{"rerankingConfiguration":{"numberOfResults":3}}`))
	if len(r.Results) != 3 || r.Diagnostics.Fusion != "RRF" {
		t.Errorf("got %d results by %s, want 3 by RRF", len(r.Results), r.Diagnostics.Fusion)
	}
	if e := r.Results[0].Explain; e.Dense.Rank > 0 && e.Dense.Scaled != 1/(20+float64(e.Dense.Rank)) {
		t.Errorf("explanation: got %+v, want k 20 of the knowledge base", e.Dense)
	}
	if r := l.retrieve("docs", ask("pump seal1", "")); len(r.Results) != 5 {
		t.Errorf("the next request: got %d results, want the knowledge base's 5", len(r.Results))
	}
	if r := l.retrieve("docs", ask("pump", `{"searchType":["DENSE_VECTOR"]}`)); r.Diagnostics.FullText != nil || r.Diagnostics.Fusion != "DENSE_VECTOR" {
		t.Errorf("search types replace: got %+v, want the dense leg alone", r.Diagnostics)
	}
	both := ids(l.retrieve("docs", ask("pump seal1", "")))
	if got := ids(l.retrieve("docs", ask("pump seal1", `{"searchType":["FULL_TEXT","DENSE_VECTOR","FULL_TEXT"]}`))); !slices.Equal(got, both) {
		t.Errorf("repeated search types: got %v, want %v", got, both)
	}
}

func TestRequestsAreRefused(t *testing.T) { // CT-06, 07, 09, 10, 11, 13, 14, 16
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.kb("vectors", func(n *pgstore.NewKB) { n.IndexType = messages.IndexTypeVector })
	l.kb("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	l.fill(kb, 2)
	const c = "retrievalConfiguration."
	rerank := func(s string) string { return `{"rerankingConfiguration":` + s + `}` }
	for _, tc := range []struct {
		kb, body string
		code     messages.Code
		field    string
	}{
		{"docs", `{`, messages.CodeValidation, "body"},
		{"docs", `{"retrievalQuery":{"type":"TEXT","text":"x"},"fulltextSearchConfiguration":{}}`, messages.CodeValidation, "fulltextSearchConfiguration"},
		{"docs", ask("x", `{"denseVectorSearchConfiguration":{"numberOfResult":1}}`), messages.CodeValidation, c + "denseVectorSearchConfiguration.numberOfResult"},
		{"docs", `{}`, messages.CodeValidation, "retrievalQuery"},
		{"docs", `{"retrievalQuery":{"text":"x"}}`, messages.CodeValidation, "retrievalQuery.type"},
		{"docs", `{"retrievalQuery":{"type":"IMAGE","text":"x"}}`, messages.CodeValidation, "retrievalQuery.type"},
		{"docs", ask("", ""), messages.CodeValidation, "retrievalQuery.text"},
		{"docs", ask(" \t\n　", ""), messages.CodeValidation, "retrievalQuery.text"},
		{"docs", ask("a\u0000b", ""), messages.CodeValidation, "retrievalQuery.text"},
		{"docs", ask(strings.Repeat("水", 4097), ""), messages.CodeValidation, "retrievalQuery.text"},
		{"docs", `{"knowledgeBaseName":"words","retrievalQuery":{"type":"TEXT","text":"x"}}`, messages.CodeValidation, "knowledgeBaseName"},
		{"_", `{"retrievalQuery":{"type":"TEXT","text":"x"}}`, messages.CodeValidation, "knowledgeBaseName"},
		{"_all", ask("x", ""), messages.CodeValidation, "knowledgeBaseNames"},
		{"nowhere", ask("x", ""), messages.CodeKBNotFound, "knowledgeBaseName"},
		{"docs", ask("x", `{"searchType":[]}`), messages.CodeValidation, c + "searchType"},
		{"docs", ask("x", `{"searchType":["dense_vector"]}`), messages.CodeValidation, c + "searchType[0]"},
		{"vectors", ask("x", `{"searchType":["FULL_TEXT"]}`), messages.CodeRetrieverModeInvalid, c + "searchType"},
		{"words", ask("x", `{"searchType":["FULL_TEXT","DENSE_VECTOR"]}`), messages.CodeRetrieverModeInvalid, c + "searchType"},
		{"docs", ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":1001}}`), messages.CodeValidation, c + "denseVectorSearchConfiguration.numberOfResults"},
		{"docs", ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":1.5}}`), messages.CodeValidation, c + "denseVectorSearchConfiguration.numberOfResults"},
		{"docs", ask("x", `{"fullTextSearchConfiguration":{"numberOfResults":-1}}`), messages.CodeValidation, c + "fullTextSearchConfiguration.numberOfResults"},
		{"docs", ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":0},"fullTextSearchConfiguration":{"numberOfResults":0}}`), messages.CodeValidation, "retrievalConfiguration"},
		{"docs", ask("x", `{"fullTextSearchConfiguration":{"k1":-1}}`), messages.CodeValidation, c + "fullTextSearchConfiguration.k1"},
		{"docs", ask("x", `{"fullTextSearchConfiguration":{"b":1.1}}`), messages.CodeValidation, c + "fullTextSearchConfiguration.b"},
		{"docs", ask("x", rerank(`{"numberOfResults":0}`)), messages.CodeValidation, c + "rerankingConfiguration.numberOfResults"},
		{"docs", ask("x", rerank(`{"numberOfResults":1001}`)), messages.CodeValidation, c + "rerankingConfiguration.numberOfResults"},
		{"docs", ask("x", rerank(`{"type":"SUM"}`)), messages.CodeValidation, c + "rerankingConfiguration.type"},
		{"docs", ask("x", rerank(`{"type":"MODEL"}`)), messages.CodeValidation, c + "rerankingConfiguration.modelConfiguration.provider"},
		{"docs", ask("x", rerank(`{"type":"RRF","rrfConfiguration":{"k":0}}`)), messages.CodeValidation, c + "rerankingConfiguration.rrfConfiguration.k"},
		{"docs", ask("x", rerank(`{"type":"RRF","rrfConfiguration":{"k":-1}}`)), messages.CodeValidation, c + "rerankingConfiguration.rrfConfiguration.k"},
		{"docs", ask("x", rerank(`{"rrfConfiguration":{"k":1.5}}`)), messages.CodeValidation, c + "rerankingConfiguration.rrfConfiguration.k"},
		{"docs", ask("x", rerank(`{"weightConfiguration":{"denseVectorSearchWeight":-0.1}}`)), messages.CodeValidation, c + "rerankingConfiguration.weightConfiguration.denseVectorSearchWeight"},
		{"docs", ask("x", rerank(`{"weightConfiguration":{"denseVectorSearchWeight":0,"fullTextSearchWeight":0}}`)), messages.CodeValidation, c + "rerankingConfiguration.weightConfiguration"},
		{"docs", ask("x", rerank(`{"weightConfiguration":{"denseVectorSearchWeight":1e999}}`)), messages.CodeValidation, c + "rerankingConfiguration.weightConfiguration.denseVectorSearchWeight"},
		{"docs", `{"subspace":["default"],"retrievalQuery":{"type":"TEXT","text":"x"}}`, messages.CodeValidation, "subspace"},
	} {
		refused(t, tc.kb+" "+tc.body[:min(len(tc.body), 200)], l.call(tc.kb, messages.OpRetrieve, tc.body, nil), tc.code, tc.field)
	}
	for _, body := range []string{
		ask(strings.Repeat("水", 4096), ""),
		ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":1000},"fullTextSearchConfiguration":{"numberOfResults":1000}}`),
		ask("x", rerank(`{"type":"RRF","numberOfResults":1000,"rrfConfiguration":{"k":1}}`)),
		ask("x", rerank(`{"type":"RRF","rrfConfiguration":{"k":60.0,"denseVectorSearchWeight":2,"fullTextSearchWeight":3}}`)),
		`{"subspace":["_default"],"retrievalQuery":{"type":"TEXT","text":"x"}}`,
		`{"knowledgeBaseName":"docs","retrievalQuery":{"type":"TEXT","text":"x"}}`,
	} {
		l.retrieve("docs", body)
	}
	l.retrieve("_", `{"knowledgeBaseName":"docs","retrievalQuery":{"type":"TEXT","text":"x"}}`)
	if r := l.retrieve("words", ask("x", "")); r.Diagnostics.Dense != nil || r.Diagnostics.FullText == nil {
		t.Errorf("a bm25 knowledge base by default: got %+v, want full text alone", r.Diagnostics)
	}
	if r := l.retrieve("docs", ask("pump", `{"denseVectorSearchConfiguration":{"numberOfResults":0}}`)); r.Diagnostics.Dense != nil || len(r.Results) != 2 {
		t.Errorf("N1 0: got %+v, want full text alone", r.Diagnostics)
	}
	if strings.Contains(l.log.String(), "水") {
		t.Error("a query text was logged")
	}
}

func TestLimitsOfThePreset(t *testing.T) {
	l := newLab(t, setup{cfg: retriever.Config{Limits: "tablestore"}})
	l.fill(l.kb("docs", nil), 1)
	l.retrieve("docs", ask(strings.Repeat("水", 128), `{"denseVectorSearchConfiguration":{"numberOfResults":100}}`))
	refused(t, "129 characters", l.call("docs", messages.OpRetrieve, ask(strings.Repeat("水", 129), ""), nil), messages.CodeValidation, "retrievalQuery.text")
	refused(t, "N1 101", l.call("docs", messages.OpRetrieve, ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":101}}`), nil),
		messages.CodeValidation, "retrievalConfiguration.denseVectorSearchConfiguration.numberOfResults")
}

func TestSubspaces(t *testing.T) { // CT-15
	l := newLab(t, setup{})
	kb := l.kb("rooms", func(n *pgstore.NewKB) { n.Subspaces = true })
	for _, s := range []string{"a", "b", "c"} {
		for i := range 4 {
			l.put(kb, s, fmt.Sprintf("%s%d", s, i), "pump seal")
		}
	}
	in := func(names string) string {
		return `{"subspace":` + names + `,"retrievalQuery":{"type":"TEXT","text":"pump"}}`
	}
	many := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(`"s%d"`, i)
		}
		return "[" + strings.Join(names, ",") + "]"
	}
	for _, body := range []string{ask("pump", ""), in("[]"), in(many(33))} {
		refused(t, body, l.call("rooms", messages.OpRetrieve, body, nil), messages.CodeValidation, "subspace")
	}
	l.retrieve("rooms", in(many(32)))
	if got := ids(l.retrieve("rooms", in(`["nowhere"]`))); len(got) != 0 {
		t.Errorf("an unknown subspace: got %v, want nothing", got)
	}
	want := []string{"a/a0#0", "a/a1#0", "a/a2#0", "a/a3#0", "c/c0#0", "c/c1#0", "c/c2#0", "c/c3#0"}
	if got := ids(l.retrieve("rooms", in(`["c","a","c"]`))); !slices.Equal(got, want) {
		t.Errorf("two subspaces: got %v, want %v", got, want)
	}
}

func TestSingleLegReportsItsOwnScores(t *testing.T) { // CT-27
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.put(kb, messages.DefaultSubspace, "same", "pump seal")
	l.put(kb, messages.DefaultSubspace, "other", "valve gasket")
	l.put(kb, messages.DefaultSubspace, "third", "rotor shaft")
	r := l.retrieve("docs", ask("pump seal", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"type":"WEIGHT","numberOfResults":5}}`))
	if len(r.Results) != 3 || r.Results[0].DocID != "same" || r.Results[0].Score != 1 {
		t.Errorf("dense alone: got %+v, want 3 results, the same text with score 1", r.Results)
	}
	r = l.retrieve("docs", ask("pump", `{"searchType":["FULL_TEXT"]}`))
	if len(r.Results) != 1 || r.Results[0].Score != r.Results[0].Explain.FullText.Raw || r.Results[0].Score <= 0 || r.Results[0].Explain.Dense != nil {
		t.Errorf("full text alone: got %+v, want one result with its BM25 score", r.Results)
	}
	if r := l.retrieve("docs", ask("zzz", `{"searchType":["FULL_TEXT"]}`)); r.Results == nil || len(r.Results) != 0 {
		t.Errorf("no match: got %v, want an empty list", r.Results)
	}
}

func TestTiesAreOrderedByIdentityEveryTime(t *testing.T) { // CT-23
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	for _, d := range []string{"b", "a", "Z", "é"} {
		l.put(kb, messages.DefaultSubspace, d, "pump", "pump")
	}
	want := []string{"_default/Z#0", "_default/Z#1", "_default/a#0", "_default/a#1", "_default/b#0", "_default/b#1", "_default/é#0"}
	for i := range 100 {
		r := l.retrieve("docs", ask("pump", `{"rerankingConfiguration":{"numberOfResults":7}}`))
		if got := ids(r); !slices.Equal(got, want) {
			t.Fatalf("repeat %d: got %v, want %v", i, got, want)
		}
	}
	if n := l.embeds.Load(); n != 1 {
		t.Errorf("the same query was embedded %d times, want once", n)
	}
}

func TestExplanationAddsUp(t *testing.T) {
	l := newLab(t, setup{})
	l.fill(l.kb("docs", nil), 9)
	for _, method := range []string{"WEIGHT", "RRF"} {
		r := l.retrieve("docs", ask("pump seal1 number4", `{"rerankingConfiguration":{"type":"`+method+`"}}`))
		for _, c := range r.Results {
			e := c.Explain
			sum := e.Dense.Weight*e.Dense.Scaled + e.FullText.Weight*e.FullText.Scaled
			if e.Fusion != method || sum-c.Score > 1e-9 || c.Score-sum > 1e-9 || c.RawScoreScaled == nil || *c.RawScoreScaled < 0 || *c.RawScoreScaled > 1 {
				t.Errorf("%s: %s has score %v, explained as %+v %+v", method, c.DocID, c.Score, e.Dense, e.FullText)
			}
		}
	}
}

func TestAChangedKnowledgeBaseRestartsTheRequestOnce(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.fill(kb, 3)
	if r := l.retrieve("docs", ask("pump", "")); r.Diagnostics.Restarted {
		t.Error("the first request restarted")
	}
	set := func(conf string) {
		t.Helper()
		if _, err := l.store.UpdateKB(t.Context(), "acme", "docs", pgstore.KBUpdate{Retrieval: json.RawMessage(conf), SetRetrieval: true}); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"rerankingConfiguration":{"numberOfResults":1}}`)
	if r := l.retrieve("docs", ask("pump", "")); !r.Diagnostics.Restarted || len(r.Results) != 1 {
		t.Errorf("after an update: got %d results, restarted %v; want 1, true", len(r.Results), r.Diagnostics.Restarted)
	}
	if r := l.retrieve("docs", ask("pump", "")); r.Diagnostics.Restarted {
		t.Error("the request after that restarted again")
	}
	if err := l.store.DeleteKB(t.Context(), "acme", "docs"); err != nil {
		t.Fatal(err)
	}
	refused(t, "deleted", l.call("docs", messages.OpRetrieve, ask("pump", ""), nil), messages.CodeKBNotFound, "knowledgeBaseName")
	again := l.kb("docs", nil)
	l.put(again, messages.DefaultSubspace, "new", "pump")
	if got := ids(l.retrieve("docs", ask("pump", ""))); !slices.Equal(got, []string{"_default/new#0"}) {
		t.Errorf("a new knowledge base of the name: got %v, want its own document", got)
	}
}

// What is cached of a knowledge base must not refuse what it allows by now.
func TestARefusalIsOfTheKnowledgeBaseAsItIs(t *testing.T) {
	l := newLab(t, setup{})
	l.kb("docs", func(n *pgstore.NewKB) { n.IndexType = messages.IndexTypeVector })
	refused(t, "vector", l.call("docs", messages.OpRetrieve, ask("x", `{"searchType":["FULL_TEXT"]}`), nil), messages.CodeRetrieverModeInvalid, "retrievalConfiguration.searchType")
	if err := l.store.DeleteKB(t.Context(), "acme", "docs"); err != nil {
		t.Fatal(err)
	}
	refused(t, "deleted", l.call("docs", messages.OpRetrieve, ask("x", `{"searchType":["FULL_TEXT"]}`), nil), messages.CodeKBNotFound, "knowledgeBaseName")
	l.kb("docs", nil)
	l.retrieve("docs", ask("x", `{"searchType":["FULL_TEXT"]}`))
}

func TestFailingEmbedder(t *testing.T) {
	l := newLab(t, setup{})
	l.fill(l.kb("docs", nil), 3)
	partial := `{"allowPartial":true,"retrievalQuery":{"type":"TEXT","text":"pump"}}`
	release := make(chan struct{})
	defer close(release)
	for _, tc := range []struct {
		name  string
		embed func(string) ([]float32, error)
		code  messages.Code
	}{
		{"an outage", func(string) ([]float32, error) {
			return nil, messages.Errorf(messages.CodeEmbeddingUnavailable, "down")
		}, messages.CodeEmbeddingUnavailable},
		{"a fault", func(string) ([]float32, error) { return nil, errors.New("fault") }, messages.CodeEmbeddingUnavailable},
		{"no such model", func(string) ([]float32, error) { return nil, messages.Errorf(messages.CodeEmbedModelNotFound, "none") }, messages.CodeEmbedModelNotFound},
		{"another dimension", func(string) ([]float32, error) { return []float32{1, 2}, nil }, messages.CodeDimensionMismatch},
		{"no direction", func(string) ([]float32, error) { return make([]float32, 8), nil }, messages.CodeEmbeddingRejected},
		{"no answer", func(string) ([]float32, error) { <-release; return nil, errors.New("late") }, messages.CodeDeadlineExceeded},
	} {
		l.embed.Store(tc.embed)
		header := bus.Header{}
		ctx, cancel := t.Context(), func() {}
		if tc.name == "no answer" {
			header[messages.HeaderDeadline] = "300"
		}
		call := func(body string, out any) error {
			client := &wire{l: l, header: header}
			return client.call(ctx, "docs", body, out)
		}
		refused(t, tc.name, call(ask("pump", ""), nil), tc.code, "")
		r := l.inTime("docs", partial, func(messages.RetrieveReply) bool { return true })
		if len(r.Results) != 3 || !slices.Equal(r.Diagnostics.Degraded, []string{"DENSE_VECTOR: " + string(tc.code)}) || r.Diagnostics.Fusion != "FULL_TEXT" {
			t.Errorf("%s, partial: got %d results, %+v; want the full-text leg and the cause", tc.name, len(r.Results), r.Diagnostics)
		}
		dense := `{"allowPartial":true,"retrievalQuery":{"type":"TEXT","text":"pump"},"retrievalConfiguration":{"searchType":["DENSE_VECTOR"]}}`
		refused(t, tc.name+", dense alone", call(dense, nil), tc.code, "")
		cancel()
	}
	if log := l.log.String(); strings.Contains(log, "pump") {
		t.Errorf("a query text was logged:\n%s", log)
	}
}

func TestNoEmbedderListens(t *testing.T) {
	l := newLab(t, setup{noEmbedder: true, cfg: retriever.Config{EmbedWait: time.Millisecond}})
	l.fill(l.kb("docs", nil), 3)
	refused(t, "no embedder", l.call("docs", messages.OpRetrieve, ask("pump", ""), nil), messages.CodeEmbeddingUnavailable, "")
	if r := l.retrieve("docs", ask("pump", `{"searchType":["FULL_TEXT"]}`)); len(r.Results) != 3 {
		t.Errorf("full text needs no embedder: got %d results, want 3", len(r.Results))
	}
}

func TestDatabaseGone(t *testing.T) {
	var gate *gate
	l := newLab(t, setup{address: func(url string) string { gate = newGate(t, url); return gate.url }})
	l.fill(l.kb("docs", nil), 3)
	l.retrieve("docs", ask("pump", ""))
	gate.close()
	refused(t, "no database", l.call("docs", messages.OpRetrieve, ask("pump", ""), nil), messages.CodeUnavailable, "")
	gate.open()
	if r := l.retrieve("docs", ask("pump", "")); len(r.Results) != 3 {
		t.Errorf("afterwards: got %d results, want 3", len(r.Results))
	}
}

func TestALargeReplyIsCutBetweenResults(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	chunk := "pump " + strings.Repeat("<&>\u0001 ", 4000) // grows sixfold in JSON
	for i := range 20 {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%02d", i), chunk)
	}
	r := l.retrieve("docs", ask("pump", ""))
	if !r.Truncated || len(r.Results) == 0 || len(r.Results) >= 20 {
		t.Errorf("got %d results, truncated %v; want some, true", len(r.Results), r.Truncated)
	}
	if again := l.retrieve("docs", ask("pump", `{"rerankingConfiguration":{"numberOfResults":2}}`)); again.Truncated || len(again.Results) != 2 {
		t.Errorf("two results: got %d, truncated %v; want 2, false", len(again.Results), again.Truncated)
	}
}
