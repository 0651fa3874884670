package retriever_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever"
)

// axes makes documents d0, d1 … whose cosine with the first axis is as given.
func (l *lab) axes(kb pgstore.KB, cosines ...float64) {
	l.tb.Helper()
	l.vectors = map[string][]float32{}
	for i, c := range cosines {
		text := fmt.Sprintf("pump number%d", i)
		v := make([]float32, l.dims)
		v[0], v[1] = float32(c), float32(math.Sqrt(1-c*c))
		l.vectors[text] = v
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%d", i), text)
	}
}

// first is the query whose vector is the first axis.
func first(dims int) string {
	v := make([]float32, dims)
	v[0] = 1
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// vectorAsk is a request for a query vector.
func vectorAsk(vector, text, configuration string) string {
	return fmt.Sprintf(`{"retrievalQuery":{"type":"TEXT","vector":%s,"text":%q},"retrievalConfiguration":%s}`, vector, text, configuration)
}

func TestScoreThreshold(t *testing.T) { // CT-50 and CT-73 over the wire
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.axes(kb, 0.9, 0.3, 0.2996, 0, -1) // scaled 0.95, 0.65, 0.6498, 0.5, 0
	dense := func(threshold string) []string {
		t.Helper()
		return ids(l.retrieve("docs", vectorAsk(first(8), "", `{"searchType":["DENSE_VECTOR"],"scoreThreshold":`+threshold+`}`)))
	}
	for threshold, want := range map[string]int{"0.65": 2, "0.6499": 2, "0.6498": 3, "0": 5, "0.96": 0, "1": 0, "null": 5} {
		if got := dense(threshold); len(got) != want {
			t.Errorf("threshold %s: got %v, want %d results", threshold, got, want)
		}
	}
	const field = "retrievalConfiguration.scoreThreshold"
	for _, bad := range []string{"-0.1", "1.1", `"0.5"`, "true", "[]", "1e999"} {
		err := l.call("docs", messages.OpRetrieve, ask("pump", `{"searchType":["DENSE_VECTOR"],"scoreThreshold":`+bad+`}`), nil)
		refused(t, bad, err, messages.CodeValidation, field)
	}
	for _, c := range []string{
		`{"scoreThreshold":0.5}`, `{"scoreThreshold":0}`, `{"searchType":["FULL_TEXT"],"scoreThreshold":0.5}`,
		`{"searchType":["DENSE_VECTOR","FULL_TEXT"],"scoreThreshold":0.5}`, `{"denseVectorSearchConfiguration":{"numberOfResults":0},"scoreThreshold":0.5}`,
		`{"rerankingConfiguration":{"weightConfiguration":{"denseVectorSearchWeight":0}},"scoreThreshold":0.5}`,
	} {
		refused(t, c, l.call("docs", messages.OpRetrieve, ask("pump", c), nil), messages.CodeScoreThreshold, field)
	}
	for _, c := range []string{ // the dense leg alone is left
		`{"fullTextSearchConfiguration":{"numberOfResults":0},"scoreThreshold":0.65}`,
		`{"rerankingConfiguration":{"weightConfiguration":{"fullTextSearchWeight":0}},"scoreThreshold":0.65}`,
		`{"rerankingConfiguration":{"type":"RRF","rrfConfiguration":{"fullTextSearchWeight":0}},"scoreThreshold":0.65}`,
	} {
		r := l.retrieve("docs", vectorAsk(first(8), "pump", c))
		if len(r.Results) != 2 || r.Results[1].Score != 0.65 {
			t.Errorf("%s: got %v, want the two at or above 0.65", c, ids(r))
		}
	}
}

func TestAThresholdOfTheKnowledgeBaseIsClearedByNull(t *testing.T) { // D-02
	l := newLab(t, setup{})
	kb := l.kb("docs", func(n *pgstore.NewKB) {
		n.Retrieval = json.RawMessage(`{"searchType":["DENSE_VECTOR"],"scoreThreshold":0.9}`)
	})
	l.axes(kb, 0.9, 0.3, 0)
	for c, want := range map[string]int{`{}`: 1, `null`: 1, `{"scoreThreshold":null}`: 3, `{"scoreThreshold":0.6}`: 2} {
		if got := ids(l.retrieve("docs", vectorAsk(first(8), "", c))); len(got) != want {
			t.Errorf("%s: got %v, want %d", c, got, want)
		}
	}
	both := `{"searchType":["DENSE_VECTOR","FULL_TEXT"]}`
	refused(t, "hybrid over the knowledge base's threshold", l.call("docs", messages.OpRetrieve, ask("pump", both), nil),
		messages.CodeScoreThreshold, "retrievalConfiguration.scoreThreshold")
	l.retrieve("docs", ask("pump", `{"searchType":["DENSE_VECTOR","FULL_TEXT"],"scoreThreshold":null}`))
}

func TestFallbackToFullText(t *testing.T) { // CT-74, C-14, C-15
	l := newLab(t, setup{})
	for _, name := range []string{"docs", "vectors"} {
		kb := l.kb(name, func(n *pgstore.NewKB) {
			if name == "vectors" {
				n.IndexType = messages.IndexTypeVector
			}
		})
		l.vectors = map[string][]float32{"pump seal": make([]float32, 8), "rotor": make([]float32, 8)} // without direction
		l.put(kb, messages.DefaultSubspace, "a", "pump seal")
		l.put(kb, messages.DefaultSubspace, "b", "rotor")
		const dense = `{"searchType":["DENSE_VECTOR"],"scoreThreshold":1`
		r := l.retrieve(name, ask("pump", dense+`}`))
		if len(r.Results) != 1 || r.Results[0].DocID != "a" || r.Results[0].RetrievalPath != messages.PathFallback ||
			r.Results[0].Score <= 0 || r.Results[0].Explain.FullText == nil || r.Results[0].Score != r.Results[0].Explain.FullText.Raw ||
			r.Diagnostics.Fusion != "FULL_TEXT" || r.Diagnostics.FullText == nil || r.Diagnostics.Dense == nil || r.Diagnostics.Dense.Candidates != 0 {
			t.Errorf("%s: got %+v, %+v; want the text's match, flagged, with its BM25 score and whatever the threshold", name, r.Results, r.Diagnostics)
		}
		for _, c := range []string{dense + `,"denseVectorSearchConfiguration":{"fallbackToFullText":false}}`, dense + `,"fullTextSearchConfiguration":{"numberOfResults":0}}`} {
			if r := l.retrieve(name, ask("pump", c)); len(r.Results) != 0 || r.Diagnostics.FullText != nil {
				t.Errorf("%s, %s: got %v, want nothing", name, c, ids(r))
			}
		}
		if r := l.retrieve(name, vectorAsk(first(8), "", `{"searchType":["DENSE_VECTOR"]}`)); len(r.Results) != 0 {
			t.Errorf("%s, a vector alone: got %v, want no fallback", name, ids(r))
		}
		l.put(kb, messages.DefaultSubspace, "c", "something near nothing")
		r = l.retrieve(name, ask("pump", dense+`}`))
		if len(r.Results) != 0 || r.Diagnostics.FullText != nil {
			t.Errorf("%s: a threshold that empties the list: got %v, want nothing and no fallback", name, ids(r))
		}
	}
}

func TestQueryVector(t *testing.T) { // D-03, CT-49 over the wire
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.kb("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	l.axes(kb, 0.1, 0.9)
	l.vectors["gasket"] = []float32{-1, 0, 0, 0, 0, 0, 0, 0}
	l.put(kb, messages.DefaultSubspace, "word", "gasket")
	const dense = `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"numberOfResults":2}}`
	want := []string{"_default/d1#0", "_default/d0#0"}
	if got := ids(l.retrieve("docs", vectorAsk(first(8), "", dense))); !slices.Equal(got, want) {
		t.Errorf("a vector: got %v, want %v", got, want)
	}
	if got := ids(l.retrieve("docs", vectorAsk(first(8), "gasket", dense))); !slices.Equal(got, want) {
		t.Errorf("a vector beside a text: got %v, want %v", got, want)
	}
	r := l.retrieve("docs", vectorAsk(first(8), "gasket", `{"fullTextSearchConfiguration":{"numberOfResults":1},"denseVectorSearchConfiguration":{"numberOfResults":1}}`))
	if got := ids(r); !slices.Contains(got, "_default/d1#0") || !slices.Contains(got, "_default/word#0") || len(got) != 2 {
		t.Errorf("both legs: got %v, want the vector's and the text's", got)
	}
	if n := l.embeds.Load(); n != 0 {
		t.Errorf("the embedder was called %d times, want never", n)
	}
	refused(t, "a vector alone in hybrid", l.call("docs", messages.OpRetrieve, vectorAsk(first(8), " ", `{}`), nil), messages.CodeValidation, "retrievalQuery.text")
	refused(t, "where there are no vectors", l.call("words", messages.OpRetrieve, vectorAsk(first(8), "x", `{}`), nil), messages.CodeValidation, "retrievalQuery.vector")
	for _, bad := range []string{
		first(7), first(9), "[]", "[0,0,0,0,0,0,0,0]", "[1e-9,0,0,0,0,0,0,0]", "[70000,0,0,0,0,0,0,0]", "[1e39,0,0,0,0,0,0,0]", `["NaN",0,0,0,0,0,0,0]`, `"AQID"`, "[[1]]", "1",
	} {
		err := l.call("docs", messages.OpRetrieve, vectorAsk(bad, "", dense), nil)
		if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || e.Field[:len("retrievalQuery.vector")] != "retrievalQuery.vector" {
			t.Errorf("vector %s: got %v, want VALIDATION_ERROR of retrievalQuery.vector", bad, err)
		}
	}
}

func TestAKnowledgeBaseTightensTheLimits(t *testing.T) { // design 6: the preset by knowledge base
	l := newLab(t, setup{})
	l.kb("docs", nil)
	l.kb("tight", func(n *pgstore.NewKB) { n.Retrieval = json.RawMessage(`{"limits":"tablestore"}`) })
	for _, c := range []struct{ body, field string }{
		{ask(strings.Repeat("水", 129), ""), "retrievalQuery.text"},
		{ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":101}}`), "retrievalConfiguration.denseVectorSearchConfiguration.numberOfResults"},
		{ask("x", `{"fullTextSearchConfiguration":{"numberOfResults":101}}`), "retrievalConfiguration.fullTextSearchConfiguration.numberOfResults"},
		{ask("x", `{"rerankingConfiguration":{"numberOfResults":101}}`), "retrievalConfiguration.rerankingConfiguration.numberOfResults"},
	} {
		refused(t, c.field, l.call("tight", messages.OpRetrieve, c.body, nil), messages.CodeValidation, c.field)
		l.retrieve("docs", c.body)
	}
	l.retrieve("tight", ask(strings.Repeat("水", 128), `{"rerankingConfiguration":{"numberOfResults":100}}`))
	refused(t, "limits in a request", l.call("docs", messages.OpRetrieve, ask("x", `{"limits":"tablestore"}`), nil), messages.CodeValidation, "retrievalConfiguration.limits")
}

func TestLimitsOfTheServer(t *testing.T) {
	l := newLab(t, setup{cfg: retriever.Config{MaxQueryRunes: 10, MaxCandidates: 2000, MaxResults: 5}})
	kb := l.kb("docs", nil)
	l.kb("tight", func(n *pgstore.NewKB) { n.Retrieval = json.RawMessage(`{"limits":"tablestore"}`) })
	l.fill(kb, 8)
	const r = `{"rerankingConfiguration":{"numberOfResults":5},"denseVectorSearchConfiguration":{"numberOfResults":%d}}`
	l.retrieve("docs", ask("pump", fmt.Sprintf(r, 2000)))
	refused(t, "N1", l.call("tight", messages.OpRetrieve, ask("pump", fmt.Sprintf(r, 101)), nil), messages.CodeValidation, "retrievalConfiguration.denseVectorSearchConfiguration.numberOfResults")
	refused(t, "text", l.call("tight", messages.OpRetrieve, ask("eleven long", fmt.Sprintf(r, 1)), nil), messages.CodeValidation, "retrievalQuery.text")
	refused(t, "N3", l.call("docs", messages.OpRetrieve, ask("pump", `{"rerankingConfiguration":{"numberOfResults":6}}`), nil), messages.CodeValidation, "retrievalConfiguration.rerankingConfiguration.numberOfResults")
	if got := l.retrieve("docs", ask("pump", "")); len(got.Results) != 5 {
		t.Errorf("nothing said of N3: got %v, want as many as the limit allows", ids(got))
	}
	bad := retriever.Config{CursorKey: "short", MaxResults: 10_001, MaxQueryRunes: -1}
	for _, flag := range []string{"retriever-cursor-key", "retriever-max-results", "retriever-max-query-runes"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("got %v, want %s named", err, flag)
		}
	}
}
