package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// Stub answers searches as a test wants it. The zero value finds nothing.
type Stub struct {
	search func(context.Context, StoreQuery) ([]SearchResult, error)
}

func (s Stub) Search(ctx context.Context, q StoreQuery) ([]SearchResult, error) {
	if s.search == nil {
		return nil, nil
	}
	return s.search(ctx, q)
}

// lists answers each mode with a list of its own, and remembers what was asked.
type lists struct {
	mu      sync.Mutex
	of      map[Mode][]SearchResult
	err     map[Mode]error
	queries []StoreQuery
}

func (l *lists) Search(_ context.Context, q StoreQuery) ([]SearchResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries = append(l.queries, q)
	return l.of[q.Mode], l.err[q.Mode]
}

func hit(id string, score float64) SearchResult {
	return SearchResult{ID: id, Text: "text of " + id, Score: score, Metadata: map[string]any{"k": "v"}}
}

// embedding is an embedder that counts.
type embedding struct {
	calls  atomic.Int64
	vector []float32
	err    error
}

func (e *embedding) Embed(context.Context, string) ([]float32, error) {
	e.calls.Add(1)
	return e.vector, e.err
}

func ids(list []RetrievalResult) string {
	var out []string
	for _, r := range list {
		out = append(out, r.ChunkID)
	}
	return strings.Join(out, " ")
}

func TestModesOfIndexTypes(t *testing.T) {
	t.Parallel()
	able := map[messages.IndexType]string{"vector": "vector", "bm25": "sparse", "hybrid": "hybrid vector sparse"}
	for index, modes := range able {
		for _, m := range Modes() {
			r, err := NewHybridRetriever(Stub{}, RetrieverOptions{IndexType: index, Embedder: &embedding{vector: []float32{1}}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Retrieve(t.Context(), "q", RetrievalConfig{Mode: m})
			if strings.Contains(modes, string(m)) {
				if err != nil || CheckMode(index, m) != nil {
					t.Errorf("%s, %s: got %v", index, m, err)
				}
				continue
			}
			wantCode(t, fmt.Sprint(index, m), err, messages.CodeRetrieverModeInvalid, "mode")
			wantCode(t, fmt.Sprint(index, m), CheckMode(index, m), messages.CodeRetrieverModeInvalid, "mode")
		}
	}
	_, err := NewRetriever(Stub{}, RetrieverOptions{IndexType: "x"})
	wantCode(t, "index type x", err, messages.CodeIndexTypeNotSupported, "indexType")
	wantCode(t, "check of x", CheckMode("x", ModeVector), messages.CodeIndexTypeNotSupported, "indexType")
	wantCode(t, "mode x", CheckMode("hybrid", "x"), messages.CodeValidation, "mode")
}

func TestTheRetrieverFitsTheIndexType(t *testing.T) {
	t.Parallel()
	for index, want := range map[messages.IndexType]Mode{"vector": ModeVector, "bm25": ModeSparse, "hybrid": ModeHybrid, "": ModeHybrid} {
		r, err := NewRetriever(Stub{}, RetrieverOptions{IndexType: index})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.(ModeReporter).SupportedModes()[0]; got != want {
			t.Errorf("%q: got mode %s, want %s", index, got, want)
		}
	}
}

func TestRequestsThatNoRetrieverTakes(t *testing.T) {
	t.Parallel()
	nan, half, zero, above := math.NaN(), 0.5, 0, 1.2
	build := map[string]func() (Retriever, error){
		"vector": func() (Retriever, error) { return NewVectorRetriever(Stub{}, RetrieverOptions{}) },
		"sparse": func() (Retriever, error) { return NewSparseRetriever(Stub{}, RetrieverOptions{}) },
		"hybrid": func() (Retriever, error) { return NewHybridRetriever(Stub{}, RetrieverOptions{}) },
	}
	for _, c := range []struct {
		kind  string
		query string
		cfg   RetrievalConfig
		code  messages.Code
		field string
	}{
		{"vector", "q", RetrievalConfig{Mode: ModeHybrid}, messages.CodeModeNotSupported, "mode"},
		{"vector", "q", RetrievalConfig{Mode: ModeSparse}, messages.CodeModeNotSupported, "mode"},
		{"sparse", "q", RetrievalConfig{Mode: ModeVector}, messages.CodeModeNotSupported, "mode"},
		{"sparse", "q", RetrievalConfig{Mode: ModeHybrid}, messages.CodeModeNotSupported, "mode"},
		{"hybrid", "q", RetrievalConfig{Mode: "dense"}, messages.CodeValidation, "mode"},
		{"sparse", "q", RetrievalConfig{ScoreThreshold: &half}, messages.CodeScoreThreshold, "scoreThreshold"},
		{"hybrid", "q", RetrievalConfig{ScoreThreshold: &half}, messages.CodeScoreThreshold, "scoreThreshold"},
		{"hybrid", "q", RetrievalConfig{ScoreThreshold: &half, Mode: ModeSparse}, messages.CodeScoreThreshold, "scoreThreshold"},
		{"vector", "q", RetrievalConfig{ScoreThreshold: &nan}, messages.CodeValidation, "scoreThreshold"},
		{"hybrid", "q", RetrievalConfig{Alpha: &above}, messages.CodeValidation, "alpha"},
		{"hybrid", "q", RetrievalConfig{Alpha: &nan}, messages.CodeValidation, "alpha"},
		{"sparse", "q", RetrievalConfig{TopK: &zero}, messages.CodeTopKInvalid, "topK"},
		{"sparse", " ", RetrievalConfig{}, messages.CodeValidation, "query"},
		{"sparse", "q", RetrievalConfig{Filters: map[string]any{"a": nil}}, messages.CodeValidation, "equals"},
		{"vector", "q", RetrievalConfig{}, messages.CodeEmbedModelNotFound, ""},
		{"hybrid", "q", RetrievalConfig{Mode: ModeVector}, messages.CodeEmbedModelNotFound, ""},
	} {
		r, err := build[c.kind]()
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Retrieve(t.Context(), c.query, c.cfg)
		wantCode(t, fmt.Sprintf("%s %+v", c.kind, c.cfg), err, c.code, c.field)
	}
	_, err := NewVectorRetriever(nil, RetrieverOptions{})
	wantCode(t, "no store", err, messages.CodeVectorStoreNotFound, "")
	_, err = NewHybridRetriever(Stub{}, RetrieverOptions{Alpha: &above})
	wantCode(t, "alpha", err, messages.CodeValidation, "alpha")
}

func TestVectorsAreMadeOnce(t *testing.T) {
	t.Parallel()
	given := []float32{3, 4}
	for _, c := range []struct {
		what  string
		b     *SearchBuilder
		calls int64
		want  []float32
	}{
		{"text", NewSearch().Text("q"), 1, []float32{1, 2}},
		{"vector", NewSearch().Vector(given), 0, given},
		{"both", NewSearch().Text("q").Vector(given), 0, given},
		{"words", NewSearch().Text("q").SearchTypes(messages.FullText), 0, nil},
		{"conditions", NewSearch().WithVector(false).Eq("a", 1), 0, nil},
	} {
		e, l := &embedding{vector: []float32{1, 2}}, &lists{of: map[Mode][]SearchResult{ModeVector: {hit("d#0", 1)}}}
		if _, err := c.b.Search(t.Context(), l, e); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if got := l.queries[0].Vector; e.calls.Load() != c.calls || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v after %d calls, want %v after %d", c.what, got, e.calls.Load(), c.want, c.calls)
		}
	}
	_, err := NewSearch().Text("q").Search(t.Context(), Stub{}, nil)
	wantCode(t, "no embedder", err, messages.CodeEmbedModelNotFound, "")
	broken := errors.New("model is down")
	if _, err := NewSearch().Text("q").Search(t.Context(), Stub{}, &embedding{err: broken}); !errors.Is(err, broken) {
		t.Errorf("broken embedder: got %v", err)
	}
	_, err = NewSearch().Text("q").Search(t.Context(), Stub{}, &embedding{})
	wantCode(t, "empty vector", err, messages.CodeValidation, "vector")
	_, err = NewSearch().Text("q").Search(t.Context(), nil, nil)
	wantCode(t, "no store", err, messages.CodeVectorStoreNotFound, "")
}

func TestTheThresholdIsOnSimilarities(t *testing.T) {
	t.Parallel()
	l := &lists{of: map[Mode][]SearchResult{ModeVector: {hit("a#0", 0.65), hit("b#0", 0.64996), hit("c#0", 0.6499)}}}
	found, err := NewSearch().Text("q").MinScore(0.65).Search(t.Context(), l, &embedding{vector: []float32{1}})
	if err != nil || len(found) != 2 || found[1].ID != "b#0" {
		t.Errorf("got %v, %v, want a and b, which is 0.65 in four places", found, err)
	}
	if len(l.of[ModeVector]) != 3 || l.of[ModeVector][2].ID != "c#0" {
		t.Error("the store's list was changed")
	}
}

func TestWordsAnswerWhereVectorsFindNothing(t *testing.T) {
	t.Parallel()
	no, threshold := false, 0.99
	words := []SearchResult{{ID: "d#3", Text: "x", Score: 7.5}}
	for _, c := range []struct {
		what     string
		dense    []SearchResult
		err      error
		cfg      RetrievalConfig
		index    messages.IndexType
		want     string
		searches int
	}{
		{"by default", nil, nil, RetrievalConfig{}, "", "d#3", 2},
		{"the threshold is none of words", nil, nil, RetrievalConfig{ScoreThreshold: &threshold}, "", "d#3", 2},
		{"not where the threshold left nothing", []SearchResult{hit("a#0", 0.5)}, nil, RetrievalConfig{ScoreThreshold: &threshold}, "", "", 1},
		{"switched off", nil, nil, RetrievalConfig{FallbackToFullText: &no}, "", "", 1},
		{"an index without words, known", nil, nil, RetrievalConfig{}, "vector", "", 1},
		{"an index without words, not known", nil, messages.Errorf(messages.CodeRetrieverModeInvalid, "no words"), RetrievalConfig{}, "", "", 2},
	} {
		l := &lists{of: map[Mode][]SearchResult{ModeVector: c.dense, ModeSparse: words}, err: map[Mode]error{ModeSparse: c.err}}
		r, err := NewVectorRetriever(l, RetrieverOptions{Embedder: &embedding{vector: []float32{1}}, IndexType: c.index})
		if err != nil {
			t.Fatal(err)
		}
		c.cfg.Filters = map[string]any{"a": 1}
		found, err := r.Retrieve(t.Context(), "q", c.cfg)
		if err != nil || ids(found) != c.want || len(l.queries) != c.searches {
			t.Errorf("%s: got %q, %v in %d searches, want %q in %d", c.what, ids(found), err, len(l.queries), c.want, c.searches)
		}
		for _, q := range l.queries {
			if q.Filter == nil {
				t.Errorf("%s: mode %s was searched without the filter", c.what, q.Mode)
			}
		}
		if len(found) > 0 && (found[0].RetrievalPath != messages.PathFallback || found[0].DocID != "d" || found[0].Score != 7.5) {
			t.Errorf("%s: got %+v, want a marked result with ids", c.what, found[0])
		}
	}
	if words[0].RetrievalPath != "" {
		t.Error("the store's list was changed")
	}
}

func TestHybridQueries(t *testing.T) {
	t.Parallel()
	zero, third, many := 0.0, 0.3, 450
	for _, c := range []struct {
		what       string
		opts       RetrieverOptions
		cfg        RetrievalConfig
		mode       Mode
		alpha      float64
		topK       int
		candidates int
	}{
		{"the defaults", RetrieverOptions{Embedder: &embedding{vector: []float32{1}}}, RetrievalConfig{}, ModeHybrid, 0.5, 5, 200},
		{"the retriever's alpha", RetrieverOptions{Embedder: &embedding{vector: []float32{1}}, Alpha: &third}, RetrievalConfig{}, ModeHybrid, 0.3, 5, 200},
		{"the call's alpha", RetrieverOptions{Embedder: &embedding{vector: []float32{1}}, Alpha: &third}, RetrievalConfig{Alpha: &zero}, ModeHybrid, 0, 5, 200},
		{"more than usual", RetrieverOptions{Embedder: &embedding{vector: []float32{1}}}, RetrievalConfig{TopK: &many}, ModeHybrid, 0.5, 450, 450},
		{"nobody makes vectors", RetrieverOptions{}, RetrievalConfig{}, ModeSparse, 0.5, 5, 200},
	} {
		l := &lists{}
		r, err := NewHybridRetriever(l, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Retrieve(t.Context(), "q", c.cfg); err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if q := l.queries[0]; q.Mode != c.mode || *q.Alpha != c.alpha || q.TopK != c.topK || q.Candidates != c.candidates || q.Text != "q" {
			t.Errorf("%s: got %+v with alpha %v", c.what, q, *q.Alpha)
		}
	}
}

func TestFiltersAreJoined(t *testing.T) {
	t.Parallel()
	l := &lists{}
	r, err := NewSparseRetriever(l, RetrieverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := RetrievalConfig{Filters: map[string]any{"b": 2, "a": "x"}, Filter: ready(t, "c > 3"), Subspace: []string{"s"}}
	if _, err := r.Retrieve(t.Context(), "q", cfg); err != nil {
		t.Fatal(err)
	}
	raw, err := l.queries[0].Filter.MarshalJSON()
	want := `{"andAll":[{"equals":{"key":"a","value":"x"}},{"equals":{"key":"b","value":2}},{"greaterThan":{"key":"c","value":3}}]}`
	if err != nil || string(raw) != want || !slices.Equal(l.queries[0].Subspace, cfg.Subspace) {
		t.Errorf("got %s, %v in %v, want %s", raw, err, l.queries[0].Subspace, want)
	}
}

// All queries of the batch must be under way together, or this test does not end well.
func TestABatchRunsAtOnceInOrder(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(3)
	r, err := NewSparseRetriever(Stub{search: func(ctx context.Context, q StoreQuery) ([]SearchResult, error) {
		all.Done()
		met := make(chan struct{})
		go func() { all.Wait(); close(met) }()
		select {
		case <-met:
			return []SearchResult{hit(q.Text, 1)}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}, RetrieverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.BatchRetrieve(within(t, testkit.Patience), []string{"a", "b", "c"}, RetrievalConfig{})
	if err != nil || len(got) != 3 || ids(got[0])+ids(got[1])+ids(got[2]) != "abc" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := r.BatchRetrieve(t.Context(), nil, RetrievalConfig{}); err != nil || len(got) != 0 {
		t.Errorf("empty: got %v, %v", got, err)
	}
}

func TestABatchFailsAsOne(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var cancelled atomic.Int64
	r, err := NewSparseRetriever(Stub{search: func(ctx context.Context, q StoreQuery) ([]SearchResult, error) {
		if q.Text == "bad" {
			return nil, broken
		}
		<-ctx.Done() // the batch's context, which ends with the failure
		cancelled.Add(1)
		return nil, context.Cause(ctx)
	}}, RetrieverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.BatchRetrieve(within(t, testkit.Patience), []string{"a", "bad", "b"}, RetrievalConfig{}); !errors.Is(err, broken) || got != nil {
		t.Errorf("got %v, %v, want the error", got, err)
	}
	if t.Context().Err() != nil || cancelled.Load() > 2 {
		t.Errorf("%d cancelled", cancelled.Load())
	}
}

// What a store of somebody else's runs into is the error of whoever asked.
func TestAPanicIsTheErrorOfTheCall(t *testing.T) {
	t.Parallel()
	r, err := NewSparseRetriever(Stub{search: func(context.Context, StoreQuery) ([]SearchResult, error) { panic("broken") }}, RetrieverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.BatchRetrieve(t.Context(), []string{"a", "b"}, RetrievalConfig{})
	wantCode(t, "a batch", err, messages.CodeInternal, "")
	_, err = multi(t, Source{KB: "a", Retriever: r}, Source{KB: "b", Retriever: fixed{}}).RetrieveWithSource(t.Context(), "q", RetrievalConfig{})
	wantCode(t, "several sources", err, messages.CodeInternal, "")
}

type closable struct {
	Stub
	closed *int
	err    error
}

func (c closable) Close() error { *c.closed++; return c.err }

type plainlyClosable struct {
	Stub
	closed *int
}

func (c plainlyClosable) Close() { *c.closed++ }

func TestAStoreIsClosedOnce(t *testing.T) {
	t.Parallel()
	n, broken := 0, errors.New("broken")
	for _, c := range []struct {
		store VectorStore
		want  int
		err   error
	}{{closable{closed: &n}, 1, nil}, {closable{closed: &n, err: broken}, 1, broken}, {plainlyClosable{closed: &n}, 1, nil}, {Stub{}, 0, nil}} {
		n = 0
		r, err := NewVectorRetriever(c.store, RetrieverOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMultiRetriever(Source{KB: "a", Retriever: r})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := m.Close(); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if err := r.Close(); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
		}
		if n != c.want {
			t.Errorf("closed %d times, want %d", n, c.want)
		}
	}
}
