package retriever_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// across is a request to several knowledge bases; more is put behind it, beginning with a comma.
func across(kbs, text, configuration, more string) string {
	return strings.TrimSuffix(ask(text, configuration), "}") + `,"knowledgeBaseNames":[` + kbs + `]` + more + `}`
}

func (l *lab) several(body string) messages.RetrieveReply {
	l.tb.Helper()
	return l.retrieve(messages.AllScope, body)
}

// texts are the contents of results with the knowledge bases that hold them.
func texts(r messages.RetrieveReply) []string {
	out := []string{}
	for _, c := range r.Results {
		out = append(out, c.Content+" "+fmt.Sprint(c.KBIDs))
	}
	return out
}

// along is a vector of the similarity cos to the query's, which is that along the first axis.
func along(cos float64) []float32 {
	v := make([]float32, 8)
	v[0], v[1] = float32(cos), float32(math.Sqrt(1-cos*cos))
	return v
}

// tyresAndCakes are two knowledge bases of one space: kb1 about the query, kb2 about something else, and a text
// that both hold.
func tyresAndCakes(l *lab) (kb1, kb2 pgstore.KB) {
	l.vectors = map[string][]float32{
		"tyre pressure": along(0.9), "tyre width": along(0.8), "chain": along(0.5),
		"cake": along(0.2), "flour": along(0.1), "shared tyre": along(0.7),
	}
	l.embed.Store(func(string) ([]float32, error) { return along(1), nil })
	kb1, kb2 = l.kb("kb1", nil), l.kb("kb2", nil)
	l.put(kb1, messages.DefaultSubspace, "a", "tyre pressure", "tyre width", "chain", "shared tyre")
	l.put(kb2, messages.DefaultSubspace, "b", "cake", "flour")
	l.put(kb2, messages.DefaultSubspace, "c", "shared tyre")
	return kb1, kb2
}

func TestSeveralShareOneScale(t *testing.T) { // CT-84, CT-107, D-25
	l := newLab(t, setup{})
	tyresAndCakes(l)
	r := l.several(across(`"kb1","kb2"`, "tyre", "", ""))
	got := texts(r)
	if want := []string{"shared tyre [kb1 kb2]", "tyre pressure [kb1]", "tyre width [kb1]", "chain [kb1]", "cake [kb2]", "flour [kb2]"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want what is off the topic last: %v", got, want)
	}
	if r.Diagnostics.Fusion != "WEIGHT" || r.Diagnostics.Notes != nil || r.Failures != nil || r.Diagnostics.Generation != 0 || r.NextCursor != "" {
		t.Errorf("diagnostics %+v, failures %v", r.Diagnostics, r.Failures)
	}
	for i, want := range map[int]float64{4: (0.2 - 0.1) / 0.8, 5: 0} { // one minimum and maximum for all
		if part := r.Results[i].Explain.Dense.Scaled; math.Abs(part-want) > 5e-3 {
			t.Errorf("%s: dense part %v, want %v", got[i], part, want)
		}
	}
	shared := r.Results[0] // the word is rarer in kb2, so it weighs more there
	if s := shared.Sources; len(s) != 2 || s[0].KB != "kb2" || s[0].DocID != "c" || s[1].KB != "kb1" || s[1].DocID != "a" || s[1].ChunkID != 3 || s[0].Score < s[1].Score || shared.DocID != "c" {
		t.Errorf("sources of %s: %+v", shared.DocID, s)
	}
	if shared.Score != shared.Sources[0].Score || *shared.RawScore < shared.Score || !strings.Contains(string(shared.Metadata), `"c"`) || strings.Contains(string(shared.Metadata), "owner") {
		t.Errorf("the shared text: %+v, metadata %s", shared, shared.Metadata)
	}
	k := r.Diagnostics.KnowledgeBases
	if len(k) != 2 || k[0].KB != "kb1" || k[1].KB != "kb2" || k[0].Generation == k[1].Generation || k[1].Dense.Candidates != 3 || k[0].FullText == nil {
		t.Errorf("knowledge bases %+v", k)
	}
	r = l.several(across(`"kb1","kb2"`, "tyre", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"numberOfResults":3}}`, ""))
	if want := []string{"tyre pressure [kb1]", "tyre width [kb1]", "shared tyre [kb1 kb2]"}; !slices.Equal(texts(r), want) || r.Diagnostics.Fusion != "DENSE_VECTOR" {
		t.Errorf("dense alone: got %v by %s, want %v", texts(r), r.Diagnostics.Fusion, want)
	}
	if s := r.Results[0].Score; math.Abs(s-0.95) > 1e-3 {
		t.Errorf("a leg alone keeps its scores: got %v, want 0.95", s)
	}
	r = l.several(across(`"kb2","kb1"`, "tyre", `{"denseVectorSearchConfiguration":{"numberOfResults":1},"searchType":["DENSE_VECTOR"]}`, ""))
	if want := []string{"tyre pressure [kb1]", "shared tyre [kb2]"}; !slices.Equal(texts(r), want) {
		t.Errorf("one candidate each: got %v, want %v", texts(r), want)
	}
	r = l.several(across(`"kb2","kb1"`, "tyre", `{"searchType":["FULL_TEXT"]}`, ""))
	if got := texts(r); len(got) != 3 || !slices.Contains(got, "shared tyre [kb1 kb2]") || r.Diagnostics.Fusion != "FULL_TEXT" {
		t.Errorf("words alone: got %v by %s", got, r.Diagnostics.Fusion)
	}
}

func TestSeveralByRank(t *testing.T) { // D-25: RRF by rank within each, ties by the order of the request
	l := newLab(t, setup{})
	tyresAndCakes(l)
	rrf := `{"searchType":["DENSE_VECTOR","FULL_TEXT"],"rerankingConfiguration":{"type":"RRF","numberOfResults":2}}`
	for kbs, want := range map[string]string{`"kb1","kb2"`: "kb1", `"kb2","kb1"`: "kb2"} {
		r := l.several(across(kbs, "cake tyre", rrf, ""))
		if len(r.Results) != 2 || r.Diagnostics.Fusion != "RRF" {
			t.Fatalf("%s: got %v by %s", kbs, texts(r), r.Diagnostics.Fusion)
		}
		if e := r.Results[0].Explain; e.Dense.Rank != 1 || r.Results[1].Explain.Dense.Rank == 0 {
			t.Errorf("%s: ranks %+v", kbs, e.Dense)
		}
		if a, b := r.Results[0], r.Results[1]; a.Score == b.Score && a.Sources[0].KB != want {
			t.Errorf("%s: a tie goes to %s", kbs, a.Sources[0].KB)
		}
	}
	l.kb("far", func(n *pgstore.NewKB) { n.Generation.Space = &messages.Space{Model: "other", Dims: 8, Metric: "l2"} })
	l.put(mustLoad(l, "far"), messages.DefaultSubspace, "x", "cake", "chain")
	r := l.several(across(`"kb1","far"`, "tyre", `{"searchType":["DENSE_VECTOR"]}`, ""))
	if r.Diagnostics.Fusion != "RRF" || len(r.Diagnostics.Notes) != 1 || !strings.Contains(r.Diagnostics.Notes[0], "embedding spaces") {
		t.Errorf("mixed spaces: by %s, notes %q", r.Diagnostics.Fusion, r.Diagnostics.Notes)
	}
	if a, b := r.Results[0], r.Results[1]; a.Score != 1.0/61 || b.Score != 1.0/61 || a.Sources[0].KB != "kb1" || b.Sources[0].KB != "far" || *a.RawScoreScaled != 1 {
		t.Errorf("mixed spaces: got %v with %v", texts(r), scoresOf(r))
	}
	l.kb("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	l.put(mustLoad(l, "words"), messages.DefaultSubspace, "w", "a word about tyre")
	r = l.several(across(`"kb1","words"`, "tyre", "", ""))
	if r.Diagnostics.Fusion != "RRF" || len(r.Diagnostics.Notes) != 1 || !strings.Contains(strings.Join(texts(r), ","), "a word about tyre [words]") {
		t.Errorf("mixed legs: %v by %s, notes %q", texts(r), r.Diagnostics.Fusion, r.Diagnostics.Notes)
	}
}

func mustLoad(l *lab, name string) pgstore.KB {
	l.tb.Helper()
	kb, err := l.store.LoadKB(l.tb.Context(), "acme", name)
	if err != nil {
		l.tb.Fatal(err)
	}
	return kb
}

func TestSeveralByModel(t *testing.T) { // D-25: one call over the union
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(nil)})
	tyresAndCakes(l)
	l.kb("far", func(n *pgstore.NewKB) { n.Generation.Space = &messages.Space{Model: "other", Dims: 8, Metric: "l2"} })
	l.put(mustLoad(l, "far"), messages.DefaultSubspace, "x", "cake")
	j.judge(func(_, text string, _ int) float64 { return -float64(len(text)) })
	r := l.several(across(`"kb1","kb2","far"`, "tyre", modelWith(`,"numberOfResults":3`), ""))
	if want := []string{"cake [far kb2]", "chain [kb1]", "flour [kb2]"}; !slices.Equal(texts(r), want) || r.Diagnostics.Fusion != "MODEL" || r.Diagnostics.Notes != nil {
		t.Errorf("got %v by %s (%q), want %v", texts(r), r.Diagnostics.Fusion, r.Diagnostics.Notes, want)
	}
	if n := len(j.request().Documents); n != 8 || j.calls.Load() != 1 || r.Diagnostics.Rerank.Documents != 8 {
		t.Errorf("%d documents in %d calls, want all 8 in one", n, j.calls.Load())
	}
	if e := r.Results[0].Explain; e.Model == nil || e.Model.Raw != -4 || r.Results[0].Sources[0].KB != "kb2" {
		t.Errorf("explain %+v, sources %+v", e.Model, r.Results[0].Sources)
	}
	j.status.Store(503)
	refused(t, "the model fails", l.call(messages.AllScope, messages.OpRetrieve, across(`"kb1","kb2"`, "tyre", model, ""), nil), messages.CodeRerankModel, "")
	j.status.Store(0)
	j.stuck.Store(true)
	late := l.inTime(messages.AllScope, across(`"kb1","far"`, "tyre", model, ""), func(r messages.RetrieveReply) bool { return r.Failures == nil })
	if late.Diagnostics.Fusion != "RRF" || !slices.Equal(late.Diagnostics.Dropped, []string{"rerank"}) || late.Results[0].Sources[0].KB != "kb1" {
		t.Errorf("no time: %v by %s, dropped %v", texts(late), late.Diagnostics.Fusion, late.Diagnostics.Dropped)
	}
}

func TestSeveralEachAsItIs(t *testing.T) { // own configuration, filters, subspaces, mandatory filter
	l := newLab(t, setup{})
	schema := func(n *pgstore.NewKB) {
		n.Schema = messages.MetadataSchema{{Name: "of", Type: messages.TypeString}, {Name: "owner", Type: messages.TypeString, Internal: true}}
	}
	one := l.kb("one", func(n *pgstore.NewKB) {
		schema(n)
		n.Subspaces, n.Retrieval = true, []byte(`{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":2}}`)
	})
	two := l.kb("two", func(n *pgstore.NewKB) {
		schema(n)
		n.Mandatory = []byte(`{"notEquals":{"key":"of","value":"hidden"}}`)
		n.Retrieval = []byte(`{"searchType":["FULL_TEXT"],"filter":{"notEquals":{"key":"of","value":"draft"}}}`)
	})
	for i := range 4 {
		l.put(one, "red", fmt.Sprintf("r%d", i), fmt.Sprintf("pump red%d", i))
		l.put(one, "blue", fmt.Sprintf("b%d", i), fmt.Sprintf("pump blue%d", i))
	}
	for _, doc := range []string{"plain", "draft", "hidden"} {
		l.put(two, messages.DefaultSubspace, doc, "pump "+doc)
	}
	both := func(more string) string {
		return across(`"one","two"`, "pump", "", `,"subspaces":{"one":["red"]}`+more)
	}
	r := l.several(both(""))
	if want := []string{"pump plain [two]", "pump red0 [one]", "pump red1 [one]"}; !slices.Equal(texts(r), want) {
		t.Errorf("got %v, want %v", texts(r), want)
	}
	for _, c := range r.Results {
		if strings.Contains(string(c.Metadata), "owner") || c.Subspace != map[string]string{"one": "red", "two": "_default"}[c.Sources[0].KB] {
			t.Errorf("got %s of %s", c.Metadata, c.Subspace)
		}
	}
	body := across(`"one","two"`, "pump", `{"filterExpression":"of IN ('draft','hidden','b1')"}`, `,"subspaces":{"one":["red","blue"],"two":["_default"]},"highlight":true`)
	r = l.several(body)
	if want := []string{"pump draft [two]", "pump blue1 [one]"}; !slices.Equal(texts(r), want) || len(r.Results[1].Highlights) != 1 {
		t.Errorf("the request's filter: got %v, want %v, never what is hidden", texts(r), want)
	}
	r = l.several(both(`,"groupBy":{"type":"document"}`))
	if len(r.Results) != 3 {
		t.Errorf("groups: got %v", texts(r))
	}
	for body, field := range map[string]string{
		across(`"one","two"`, "pump", "", ""):                                                 "subspaces.one",
		across(`"one","two"`, "pump", "", `,"subspaces":{"one":[]}`):                          "subspaces.one",
		across(`"one","two"`, "pump", "", `,"subspaces":{"one":["red"],"two":["red"]}`):       "subspaces.two",
		across(`"one","two"`, "pump", "", `,"subspaces":{"one":["red"],"three":["red"]}`):     "subspaces",
		across(`"one","two"`, "pump", "", `,"subspaces":{"one":["RED"]}`):                     "subspaces[0]",
		across(`"one","two"`, "pump", "", `,"subspace":["red"],"subspaces":{"one":["red"]}`):  "subspace",
		across(`"one","two"`, "pump", `{"limits":"default"}`, `,"subspaces":{"one":["red"]}`): "retrievalConfiguration.limits",
	} {
		err := l.call(messages.AllScope, messages.OpRetrieve, body, nil)
		if field == "subspaces[0]" { // named as of one
			field = "subspace[0]"
		}
		refused(t, body, err, messages.CodeValidation, field)
	}
}

func TestSeveralFailTogetherWhenTheRequestIsWrong(t *testing.T) { // CT-87, C-23, D-24
	l := newLab(t, setup{})
	l.kb("one", func(n *pgstore.NewKB) { n.Schema = messages.MetadataSchema{{Name: "year", Type: messages.TypeLong}} })
	l.kb("two", func(n *pgstore.NewKB) { n.Schema = messages.MetadataSchema{{Name: "year", Type: messages.TypeString}} })
	l.kb("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	l.kb("theirs", func(n *pgstore.NewKB) { n.Tenant = "globex" })
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("k%d", i)))
	}
	const c = "retrievalConfiguration."
	for _, tc := range []struct {
		body  string
		code  messages.Code
		field string
		names string // in the message
	}{
		{across(`"one","words"`, "x", `{"filterExpression":"year = 1"}`, ""), messages.CodeValidation, c + "filterExpression", "words"},
		{across(`"one","two"`, "x", `{"filter":{"equals":{"key":"year","value":1}}}`, ""), messages.CodeValidation, c + "filter.equals.value", "two"},
		{across(`"one","two"`, "x", `{"outputConfiguration":{"fields":["month"]}}`, ""), messages.CodeValidation, c + "outputConfiguration.fields[0]", "one"},
		{across(`"one","words"`, "x", `{"searchType":["DENSE_VECTOR"]}`, ""), messages.CodeRetrieverModeInvalid, c + "searchType", "words"},
		{across(`"one","words"`, "x", `{"scoreThreshold":0.5}`, ""), messages.CodeScoreThreshold, c + "scoreThreshold", "one"},
		{across(`"one","nowhere"`, "x", "", ""), messages.CodeKBNotFound, "knowledgeBaseNames[1]", "nowhere"},
		{across(`"one","theirs"`, "x", "", ""), messages.CodeKBNotFound, "knowledgeBaseNames[1]", "theirs"},
		{across(`"one","two","one"`, "x", "", ""), messages.CodeValidation, "knowledgeBaseNames[2]", "twice"},
		{across(`"one","_all"`, "x", "", ""), messages.CodeValidation, "knowledgeBaseNames[1]", "reserved"},
		{across(`"one","../two"`, "x", "", ""), messages.CodeValidation, "knowledgeBaseNames[1]", ""},
		{across(strings.Join(many, ","), "x", "", ""), messages.CodeValidation, "knowledgeBaseNames", "16"},
		{across(`"one"`, "x", "", `,"knowledgeBaseName":"one"`), messages.CodeValidation, "knowledgeBaseName", ""},
		{across(`"one"`, "x", "", `,"tenant":"globex"`), messages.CodeValidation, "tenant", ""},
		{across(`"one"`, " ", "", ""), messages.CodeValidation, "retrievalQuery.text", ""},
		{across(`"one"`, "x", "", `,"groupBy":{"type":"subspace"}`), messages.CodeValidation, "groupBy.type", ""},
		{across(`"one"`, "x", "", `,"cursor":"AQID"`), messages.CodeCursorInvalid, "cursor", ""},
		{ask("x", ""), messages.CodeValidation, "knowledgeBaseNames", ""},
		{`{"knowledgeBaseNames":["one","two"],"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"filterExpression":"year = 1"}}`, messages.CodeValidation, c + "filterExpression", "two"},
		{`{"knowledgeBaseNames":["one"],"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"filterExpression":"year = 1","rerankingConfiguration":{"modelConfiguration":{"provider":"none"}}}}`, messages.CodeValidation, c + "rerankingConfiguration.modelConfiguration.provider", "one"},
		{across(`"one","two"`, "x", `{"denseVectorSearchConfiguration":{"numberOfResults":1000},"fullTextSearchConfiguration":{"numberOfResults":1000}}`, ""), "", "", ""},
		{across(`"one","two","words"`, "x", `{"denseVectorSearchConfiguration":{"numberOfResults":1000},"fullTextSearchConfiguration":{"numberOfResults":1000}}`, ""), messages.CodeValidation, "knowledgeBaseNames", "4000"},
		{across(`"one"`, "x", model, ""), messages.CodeValidation, c + "rerankingConfiguration.modelConfiguration.provider", "one"},
	} {
		err := l.call(messages.AllScope, messages.OpRetrieve, tc.body, nil)
		if tc.code == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.body, err)
			}
			continue
		}
		refused(t, tc.body, err, tc.code, tc.field)
		if e, ok := messages.AsError(err); ok && !strings.Contains(e.Message, tc.names) {
			t.Errorf("%s: the message %q names no %s", tc.body, e.Message, tc.names)
		}
	}
	for _, op := range []string{messages.OpBatch, messages.OpSearch} {
		refused(t, op, l.call(messages.AllScope, op, across(`"one"`, "x", "", ""), nil), messages.CodeNotSupported, "")
	}
	for body, field := range map[string]string{across(`"one"`, "x", "", ""): "knowledgeBaseNames", strings.TrimSuffix(ask("x", ""), "}") + `,"subspaces":{}}`: "subspaces"} {
		for _, scope := range []string{"one", "_"} {
			err := l.call(scope, messages.OpRetrieve, strings.Replace(body, "{", map[string]string{"one": "{", "_": `{"knowledgeBaseName":"one",`}[scope], 1), nil)
			refused(t, scope+" "+body, err, messages.CodeValidation, field)
		}
	}
	var env messages.Envelope
	empty, err := l.nc.Request(messages.RPCSubject("acme", messages.AllScope, messages.OpRetrieve), []byte(across("", "x", "", "")), 10*time.Second)
	if err != nil || json.Unmarshal(empty.Data, &env) != nil || env.Code != messages.CodeSuccess || !strings.Contains(string(env.Data), `"retrievalResults":[]`) {
		t.Errorf("no knowledge bases: got %s, %v, want an empty list", env.Data, err)
	}
}

func TestSeveralOneFails(t *testing.T) { // CT-85, D-26
	l := newLab(t, setup{})
	kb1, _ := tyresAndCakes(l)
	words := l.kb("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	l.put(words, messages.DefaultSubspace, "w", "a tyre")
	without := texts(l.several(across(`"kb2"`, "tyre", "", "")))
	tx, err := l.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), fmt.Sprintf("LOCK TABLE chunks_g%d IN ACCESS EXCLUSIVE MODE", kb1.Generation.ID)); err != nil {
		t.Fatal(err)
	}
	r := l.inTime(messages.AllScope, across(`"kb1","kb2"`, "tyre", "", ""), func(r messages.RetrieveReply) bool { return len(r.Failures) == 1 })
	if !slices.Equal(texts(r), without) || len(r.Failures) != 1 || r.Failures[0].KB != "kb1" || r.Failures[0].Code != messages.CodeDeadlineExceeded {
		t.Errorf("a slow one: got %v, failures %+v, want %v", texts(r), r.Failures, without)
	}
	if k := r.Diagnostics.KnowledgeBases; len(k) != 1 || k[0].KB != "kb2" {
		t.Errorf("knowledge bases that answered: %+v", k)
	}
	w := &wire{l: l, header: bus.Header{messages.HeaderDeadline: "1000"}}
	refused(t, "all slow", w.call(t.Context(), messages.AllScope, across(`"kb1"`, "tyre", "", ""), nil), messages.CodeAllKBsFailed, "")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	l.embed.Store(func(string) ([]float32, error) { return nil, errors.New("secret of the embedder") })
	r = l.several(across(`"kb1","words","kb2"`, "wide tyre", "", ""))
	if want := []string{"a tyre [words]"}; !slices.Equal(texts(r), want) || len(r.Failures) != 2 || r.Failures[1].KB != "kb2" || r.Failures[1].Code != messages.CodeEmbeddingUnavailable {
		t.Errorf("no embedder: got %v, failures %+v", texts(r), r.Failures)
	}
	err = l.call(messages.AllScope, messages.OpRetrieve, across(`"kb1","kb2"`, "wide tyre", "", ""), nil)
	refused(t, "all fail", err, messages.CodeAllKBsFailed, "")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "EMBEDDING_UNAVAILABLE") {
		t.Errorf("all fail: %v", err)
	}
	r = l.several(across(`"kb1","words"`, "wide tyre", "", `,"allowPartial":true`))
	if r.Failures != nil || !slices.Equal(r.Diagnostics.KnowledgeBases[0].Degraded, []string{"DENSE_VECTOR: EMBEDDING_UNAVAILABLE"}) || len(r.Results) != 4 {
		t.Errorf("partial: %v, failures %v, %+v", texts(r), r.Failures, r.Diagnostics.KnowledgeBases)
	}
	if log := l.log.String(); !strings.Contains(log, "a knowledge base of several failed") || strings.Contains(log, "wide tyre") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestSeveralChangeUnderWay(t *testing.T) {
	l := newLab(t, setup{})
	tyresAndCakes(l)
	body := across(`"kb1","kb2"`, "tyre", "", "")
	l.several(body) // both are known from here on
	if _, err := l.store.UpdateKB(t.Context(), "acme", "kb2", pgstore.KBUpdate{SetRetrieval: true, Retrieval: []byte(`{"rerankingConfiguration":{"type":"RRF"}}`)}); err != nil {
		t.Fatal(err)
	}
	r := l.several(body)
	if k := r.Diagnostics.KnowledgeBases; !k[1].Restarted || k[0].Restarted {
		t.Errorf("restarted: %+v", k)
	}
	r = l.several(body)
	if r.Diagnostics.Fusion != "WEIGHT" || len(r.Diagnostics.Notes) != 1 || !strings.Contains(r.Diagnostics.Notes[0], "rerankingConfiguration") {
		t.Errorf("defaults that differ: by %s, notes %q", r.Diagnostics.Fusion, r.Diagnostics.Notes)
	}
	if r := l.several(across(`"kb1","kb2"`, "tyre", `{"rerankingConfiguration":{"type":"RRF"}}`, "")); r.Diagnostics.Fusion != "RRF" || r.Diagnostics.Notes != nil {
		t.Errorf("the request says RRF: by %s, notes %q", r.Diagnostics.Fusion, r.Diagnostics.Notes)
	}
	if r := l.several(across(`"kb2"`, "tyre", "", "")); r.Diagnostics.Fusion != "RRF" {
		t.Errorf("all agree on RRF: by %s", r.Diagnostics.Fusion)
	}
	if _, err := l.store.UpdateKB(t.Context(), "acme", "kb1", pgstore.KBUpdate{SetRetrieval: true, Retrieval: []byte(`{"limits":"tablestore"}`)}); err != nil {
		t.Fatal(err)
	}
	l.several(body)
	refused(t, "one is stricter", l.call(messages.AllScope, messages.OpRetrieve, across(`"kb1","kb2"`, strings.Repeat("x", 129), "", ""), nil), messages.CodeValidation, "retrievalQuery.text")
}

// The vectors of knowledge bases of different spaces are made at the same time: none waits for another's.
func TestSeveralAreEmbeddedAtTheSameTime(t *testing.T) { // CT-88
	l := newLab(t, setup{})
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("kb%d", i)
		kb := l.kb(name, func(n *pgstore.NewKB) { n.Generation.Space.QueryPrefix = name + ": " })
		l.put(kb, messages.DefaultSubspace, "d", "a tyre of "+name)
		names = append(names, fmt.Sprintf("%q", name))
	}
	var late atomic.Bool
	together := func() {
		var waiting atomic.Int32
		all := make(chan struct{})
		l.embed.Store(func(string) ([]float32, error) {
			if waiting.Add(1) == 5 {
				close(all)
			}
			select {
			case <-all:
			case <-time.After(testkit.Patience):
				late.Store(true)
			}
			return along(1), nil
		})
	}
	together()
	r := l.several(across(strings.Join(names, ","), "tyre", `{"searchType":["DENSE_VECTOR"]}`, ""))
	if len(r.Results) != 5 || r.Failures != nil || late.Load() {
		t.Errorf("got %v, failures %v, one waited for another: %v", texts(r), r.Failures, late.Load())
	}
	together()
	var queries []string
	for _, name := range names {
		queries = append(queries, fmt.Sprintf(`{"knowledgeBaseName":%s,"retrievalQuery":{"type":"TEXT","text":"wheel"},"retrievalConfiguration":{"searchType":["DENSE_VECTOR"]}}`, name))
	}
	var batch messages.BatchReply
	if err := l.call(messages.TenantScope, messages.OpBatch, `{"queries":[`+strings.Join(queries, ",")+`]}`, &batch); err != nil || len(batch.Results) != 5 || late.Load() {
		t.Errorf("a batch: %d answers, %v, one waited for another: %v", len(batch.Results), err, late.Load())
	}
}
