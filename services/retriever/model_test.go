package retriever_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/retriever"
)

// judge is a rerank server. Its scores are what score says of a text, NaN: the text is left out.
type judge struct {
	*httptest.Server
	score  atomic.Value // func(query, text string, place int) float64
	status atomic.Int32 // 0: 200
	stuck  atomic.Bool
	calls  atomic.Int32

	mu   sync.Mutex
	last judged
}

// judged is a request as it came.
type judged struct {
	Model, Query string
	Documents    []string
	TopN         int `json:"top_n"`
}

func newJudge(tb testing.TB) *judge {
	tb.Helper()
	j := &judge{}
	j.judge(func(_, _ string, place int) float64 { return float64(place) / 100 })
	end := make(chan struct{})
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		j.calls.Add(1)
		if j.stuck.Load() {
			select {
			case <-r.Context().Done():
			case <-end:
			}
			return
		}
		j.answer(w, body)
	}))
	tb.Cleanup(j.Close)
	tb.Cleanup(func() { close(end) })
	return j
}

func (j *judge) judge(score func(query, text string, place int) float64) { j.score.Store(score) }

func (j *judge) answer(w http.ResponseWriter, body []byte) {
	var in judged
	if err := json.Unmarshal(body, &in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	j.mu.Lock()
	j.last = in
	j.mu.Unlock()
	if status := j.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		_, _ = w.Write([]byte(`{"error":"secret of the server"}`))
		return
	}
	score, _ := j.score.Load().(func(string, string, int) float64)
	var results []string
	for i, text := range in.Documents {
		if s := score(in.Query, text, i); !math.IsNaN(s) {
			results = append(results, fmt.Sprintf(`{"index":%d,"relevance_score":%v}`, i, s))
		}
	}
	slices.Reverse(results) // their order says nothing
	fmt.Fprintf(w, `{"model":%q,"results":[%s]}`, in.Model, strings.Join(results, ","))
}

func (j *judge) request() judged {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// providers are settings with this server as the provider local.
func (j *judge) providers(change func(*service.RerankProvider)) retriever.Config {
	p := service.RerankProvider{Name: "local", URL: j.URL + "/rerank", Models: []string{"small", "large"}, APIKey: "k3y-of-the-judge"}
	if change != nil {
		change(&p)
	}
	return retriever.Config{Rerank: service.RerankProviders{p, {Name: "other", URL: "http://127.0.0.1:9/rerank"}}}
}

const model = `{"rerankingConfiguration":{"type":"MODEL"}}`

func modelWith(more string) string {
	return `{"rerankingConfiguration":{"type":"MODEL"` + more + `}}`
}

func scoresOf(r messages.RetrieveReply) []float64 {
	var out []float64
	for _, c := range r.Results {
		out = append(out, c.Score)
	}
	return out
}

func TestModelOrders(t *testing.T) { // CT-25, D-13, D-14
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(nil)})
	kb := l.kb("docs", nil)
	l.put(kb, messages.DefaultSubspace, "a", "pump one", "pump two", "pump two") // equal texts keep their own scores
	l.put(kb, messages.DefaultSubspace, "b", "seal only")
	r := l.retrieve("docs", ask("pump", model))
	sent := j.request()
	if sent.Model != "small" || sent.Query != "pump" || sent.TopN != 4 || !slices.Equal(sent.Documents, []string{"pump one", "pump two", "pump two", "seal only"}) {
		t.Errorf("sent %+v, want the union in order of its keys", sent)
	}
	if want := []string{"_default/b#0", "_default/a#2", "_default/a#1", "_default/a#0"}; !slices.Equal(ids(r), want) {
		t.Errorf("got %v, want the reverse order %v", ids(r), want)
	}
	d := r.Diagnostics
	if d.Fusion != "MODEL" || d.Rerank == nil || d.Rerank.Provider != "local" || d.Rerank.Model != "small" || d.Rerank.Documents != 4 || d.Dropped != nil {
		t.Errorf("diagnostics %+v, rerank %+v", d, d.Rerank)
	}
	first := r.Results[0]
	if e := first.Explain; e.Fusion != "MODEL" || e.Model == nil || e.Model.Raw != 0.03 || e.Dense == nil || e.FullText == nil || e.Dense.Weight != 0 {
		t.Errorf("explain %+v, model %+v", e, e.Model)
	}
	if first.Score != 0.03 || *first.RawScore != 0.03 || *first.RawScoreScaled != 0.03 {
		t.Errorf("scores of the first: %+v", first)
	}
	j.judge(func(_, text string, place int) float64 {
		if place == 0 || text == "seal only" {
			return math.NaN()
		}
		return -float64(place)
	})
	r = l.retrieve("docs", ask("pump", modelWith(`,"numberOfResults":3,"modelConfiguration":{"provider":"local","model":"large"}`)))
	if want := []string{"_default/a#1", "_default/a#2", "_default/a#0"}; !slices.Equal(ids(r), want) || !slices.Equal(scoresOf(r), []float64{-1, -2, 0}) {
		t.Errorf("got %v with %v, want %v, what is left out last with 0", ids(r), scoresOf(r), want)
	}
	if last := r.Results[2]; !last.Explain.Model.Omitted || *last.RawScoreScaled != 0 || *r.Results[0].RawScoreScaled != 0 {
		t.Errorf("explain of what was left out: %+v", last.Explain.Model)
	}
	if j.request().Model != "large" || r.Diagnostics.Rerank.Omitted != 2 {
		t.Errorf("model %s, report %+v", j.request().Model, r.Diagnostics.Rerank)
	}
	if log := l.log.String(); strings.Contains(log, "k3y") || strings.Contains(log, "pump") {
		t.Errorf("the log has a key or a text:\n%s", log)
	}
}

func TestModelWithOneLeg(t *testing.T) { // C-32
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(nil)})
	l.fill(l.kb("docs", nil), 5)
	for _, leg := range []string{"DENSE_VECTOR", "FULL_TEXT"} {
		r := l.retrieve("docs", ask("pump", `{"searchType":["`+leg+`"],"rerankingConfiguration":{"type":"MODEL"}}`))
		if want := []string{"_default/d04#0", "_default/d03#0", "_default/d02#0", "_default/d01#0", "_default/d00#0"}; !slices.Equal(ids(r), want) || r.Diagnostics.Fusion != "MODEL" {
			t.Errorf("%s: got %v by %s", leg, ids(r), r.Diagnostics.Fusion)
		}
	}
	all := l.retrieve("docs", ask("pump number3", `{"searchType":["DENSE_VECTOR"]}`))
	least := all.Results[2].Score
	r := l.retrieve("docs", ask("pump number3", fmt.Sprintf(`{"searchType":["DENSE_VECTOR"],"scoreThreshold":%v,"rerankingConfiguration":{"type":"MODEL"}}`, least)))
	if n := len(j.request().Documents); n != len(r.Results) || n < 3 || n == len(all.Results) && least > all.Results[4].Score {
		t.Errorf("a threshold of %v leaves %d of %d for the model", least, n, len(all.Results))
	}
	before := j.calls.Load()
	if r := l.retrieve("docs", ask("zzz", `{"searchType":["FULL_TEXT"],"rerankingConfiguration":{"type":"MODEL"}}`)); len(r.Results) != 0 || j.calls.Load() != before {
		t.Errorf("nothing found: %v with %d calls", ids(r), j.calls.Load()-before)
	}
}

// What the rest of the request wants works on the model's order.
func TestModelWithEverythingElse(t *testing.T) {
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(nil)})
	kb := l.kb("docs", nil)
	for d := range 4 {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%d", d), fmt.Sprintf("pump a%d", d), fmt.Sprintf("pump b%d", d))
	}
	whole := ids(l.retrieve("docs", ask("pump", model)))
	calls := j.calls.Load()
	body := ask("pump", modelWith(`,"numberOfResults":3`))
	paged := l.follow("docs", body, nil)
	var got []string
	for _, c := range paged {
		got = append(got, fmt.Sprintf("%s/%s#%d", c.Subspace, c.DocID, c.ChunkID))
		if c.Explain.Model == nil || c.Explain.Model.Raw != c.Score || c.Explain.Fusion != "MODEL" {
			t.Errorf("explain on a page: %+v", c.Explain)
		}
	}
	if !slices.Equal(got, whole) || j.calls.Load() != calls+1 {
		t.Errorf("in pages: got %v with %d calls, want %v and one", got, j.calls.Load()-calls, whole)
	}
	r := l.retrieve("docs", groupedAsk("pump", modelWith(`,"numberOfResults":2`), `{"type":"document"}`))
	if want := []string{"_default/d3#1", "_default/d2#1"}; !slices.Equal(ids(r), want) || r.NextCursor == "" {
		t.Errorf("groups: got %v, want %v", ids(r), want)
	}
	r = l.retrieve("docs", strings.TrimSuffix(ask("pump", model), "}")+`,"highlight":true}`)
	if h := r.Results[0].Highlights; len(h) != 1 || h[0].Marks[0] != (messages.Mark{End: 4}) {
		t.Errorf("highlights %+v", h)
	}
	var search messages.SearchReply
	if err := l.call("docs", messages.OpSearch, ask("pump", model), &search); err != nil || search.Results[0].ID != "d3#1" {
		t.Errorf("search: got %+v, %v", search.Results, err)
	}
	var batch messages.BatchReply
	if err := l.call("docs", messages.OpBatch, batchOf(ask("pump", model), ask("pump", ""), ask("pump", modelWith(`,"numberOfResults":1`))), &batch); err != nil {
		t.Fatal(err)
	}
	if got := batch.Results; !slices.Equal(ids(got[0]), whole) || got[1].Diagnostics.Fusion != "WEIGHT" || !slices.Equal(ids(got[2]), whole[:1]) {
		t.Errorf("batch: got %v, %s, %v", ids(got[0]), got[1].Diagnostics.Fusion, ids(got[2]))
	}
	l.retrieve("docs", ask(`+pump -b2 "a1"`, `{"fullTextSearchConfiguration":{"syntax":"simple"},"rerankingConfiguration":{"type":"MODEL"}}`))
	if q := j.request().Query; strings.ContainsAny(q, `+-"`) {
		t.Errorf("the model was asked %q, with the operators", q)
	}
	if _, err := l.store.UpdateKB(t.Context(), "acme", "docs", pgstore.KBUpdate{SetRetrieval: true, Retrieval: []byte(modelWith(`,"modelConfiguration":{"model":"large"}`))}); err != nil {
		t.Fatal(err)
	}
	if r := l.retrieve("docs", ask("pump", "")); r.Diagnostics.Fusion != "MODEL" || j.request().Model != "large" {
		t.Errorf("the knowledge base's default: %s by %s", r.Diagnostics.Fusion, j.request().Model)
	}
	if r := l.retrieve("docs", ask("pump", `{"rerankingConfiguration":{"type":"RRF"}}`)); r.Diagnostics.Fusion != "RRF" {
		t.Errorf("the request over it: %s", r.Diagnostics.Fusion)
	}
}

func TestModelInPlaceOfAnEmptyDenseLeg(t *testing.T) { // C-14, C-32
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(nil)})
	kb := l.kb("docs", nil)
	l.fill(kb, 3)
	l.exec(fmt.Sprintf("ALTER TABLE chunks_g%d ALTER embedding DROP NOT NULL", kb.Generation.ID))
	l.exec(fmt.Sprintf("UPDATE chunks_g%d SET embedding = NULL", kb.Generation.ID))
	r := l.retrieve("docs", ask("pump", `{"searchType":["DENSE_VECTOR"],"scoreThreshold":0.9,"rerankingConfiguration":{"type":"MODEL"}}`))
	if want := []string{"_default/d02#0", "_default/d01#0", "_default/d00#0"}; !slices.Equal(ids(r), want) {
		t.Fatalf("got %v, want %v", ids(r), want)
	}
	for _, c := range r.Results {
		if c.RetrievalPath != messages.PathFallback || c.Explain.Dense != nil || c.Explain.FullText == nil {
			t.Errorf("got %+v, want it marked", c)
		}
	}
}

func TestModelIsRefused(t *testing.T) { // CT-14
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(func(p *service.RerankProvider) { p.MaxDocuments = 50 })})
	l.fill(l.kb("docs", nil), 2)
	l.kb("elsewhere", func(n *pgstore.NewKB) { n.Tenant = "globex" })
	const c = "retrievalConfiguration.rerankingConfiguration.modelConfiguration."
	for body, field := range map[string]string{
		ask("x", modelWith(`,"modelConfiguration":{"provider":"bailian"}`)):                                                                                   c + "provider",
		ask("x", `{"rerankingConfiguration":{"modelConfiguration":{"provider":"bailian"}}}`):                                                                  c + "provider",
		ask("x", modelWith(`,"modelConfiguration":{"model":"huge"}`)):                                                                                         c + "model",
		ask("x", modelWith(`,"modelConfiguration":{"provider":"other","model":"small"}`)):                                                                     c + "model",
		ask("x", modelWith(`,"modelConfiguration":{"provider":"`+strings.Repeat("x", 300)+`"}`)):                                                              c + "provider",
		ask("x", modelWith(`,"modelConfiguration":{"url":"http://attacker/"}`)):                                                                               c + "url",
		ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":31},"rerankingConfiguration":{"type":"MODEL"}}`):                                       c + "provider",
		vectorAsk(first(8), "", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"type":"MODEL"}}`):                                                  "retrievalQuery.text",
		ask("x", `{"scoreThreshold":0.5,"fullTextSearchConfiguration":{"numberOfResults":0},"rerankingConfiguration":{"type":"MODEL","numberOfResults":-1}}`): "retrievalConfiguration.rerankingConfiguration.numberOfResults",
	} {
		refused(t, body, l.call("docs", messages.OpRetrieve, body, nil), messages.CodeValidation, field)
	}
	if n := j.calls.Load(); n != 0 {
		t.Errorf("the server was called %d times for refused requests", n)
	}
	if r := l.retrieve("docs", ask("x", `{"denseVectorSearchConfiguration":{"numberOfResults":50},"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"type":"MODEL"}}`)); len(r.Results) != 2 {
		t.Errorf("as many as are taken: got %v", ids(r))
	}
}

func TestModelFails(t *testing.T) { // D-26, C-33
	j := newJudge(t)
	cfg := j.providers(func(p *service.RerankProvider) { p.Timeout = service.Duration(time.Minute) })
	cfg.Rerank = append(cfg.Rerank, service.RerankProvider{Name: "hasty", URL: j.URL, Timeout: service.Duration(50 * time.Millisecond)})
	l := newLab(t, setup{cfg: cfg})
	l.fill(l.kb("docs", nil), 3)
	for name, broken := range map[string]func(){
		"a refusal": func() { j.status.Store(422) },
		"too busy":  func() { j.status.Store(429) },
		"a failure": func() { j.status.Store(500) },
		"silence":   func() { j.stuck.Store(true) },
		"nonsense":  func() { j.judge(func(string, string, int) float64 { return math.Inf(1) }) },
		"nothing":   func() { j.judge(func(string, string, int) float64 { return math.NaN() }) },
	} {
		j.status.Store(0)
		j.stuck.Store(false)
		j.judge(func(_, _ string, place int) float64 { return float64(place) })
		if r := l.retrieve("docs", ask("pump", model)); r.Diagnostics.Fusion != "MODEL" {
			t.Fatalf("before %s: %s", name, r.Diagnostics.Fusion)
		}
		broken()
		configuration := model
		if j.stuck.Load() {
			configuration = modelWith(`,"modelConfiguration":{"provider":"hasty"}`)
		}
		for _, body := range []string{ask("pump", configuration), partial("pump", configuration)} { // no part of an order is an order
			err := l.call("docs", messages.OpRetrieve, body, nil)
			refused(t, name, err, messages.CodeRerankModel, "")
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), j.URL)) {
				t.Errorf("%s: the error tells too much: %v", name, err)
			}
		}
	}
	if r := l.retrieve("docs", ask("pump", "")); len(r.Results) != 3 {
		t.Errorf("without the model: got %v", ids(r))
	}
	if log := l.log.String(); !strings.Contains(log, "the rerank model failed") || strings.Contains(log, "k3y") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestNoTimeForTheModel(t *testing.T) { // D-26: the order of RRF, and the reply says so
	j := newJudge(t)
	l := newLab(t, setup{cfg: j.providers(func(p *service.RerankProvider) { p.Timeout = service.Duration(time.Minute) })})
	l.fill(l.kb("docs", nil), 9)
	want := l.retrieve("docs", ask("pump number3", `{"rerankingConfiguration":{"type":"RRF","numberOfResults":4}}`))
	j.stuck.Store(true)
	got := l.inTime("docs", ask("pump number3", modelWith(`,"numberOfResults":4`)), func(messages.RetrieveReply) bool { return true })
	if !slices.Equal(ids(got), ids(want)) || !slices.Equal(scoresOf(got), scoresOf(want)) || got.NextCursor == "" {
		t.Errorf("got %v, want those of RRF %v", ids(got), ids(want))
	}
	d := got.Diagnostics
	if !slices.Equal(d.Dropped, []string{messages.DroppedRerank}) || d.Fusion != "RRF" || d.Rerank != nil || got.Results[0].Explain.Model != nil {
		t.Errorf("diagnostics %+v", d)
	}
	if log := l.log.String(); !strings.Contains(log, "no time was left for the rerank model") {
		t.Errorf("the log:\n%s", log)
	}
	next := l.retrieve("docs", withCursor(ask("pump number3", modelWith(`,"numberOfResults":4`)), got.NextCursor))
	if len(next.Results) != 4 || next.Diagnostics.Fusion != "RRF" {
		t.Errorf("the next page: %d results by %s", len(next.Results), next.Diagnostics.Fusion)
	}
}
