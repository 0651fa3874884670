package conformance_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
)

// retrieverStep makes a retriever and asks it. What Tries leave open is taken from the step.
type retrieverStep struct {
	Kind      string             `json:"kind"` // vector, sparse, hybrid, multi, or auto: by the index type
	IndexType messages.IndexType `json:"indexType"`
	Alpha     *float64           `json:"alpha"` // of the retriever
	KB        string             `json:"kb"`    // over NATS; else the store
	Store     *storeStep         `json:"store"`
	Embedder  *embedderStep      `json:"embedder"`
	Sources   []sourceStep       `json:"sources"` // of multi

	Query          string         `json:"query"`
	Queries        []string       `json:"queries"` // a batch
	Mode           client.Mode    `json:"mode"`
	TopK           *int           `json:"topK"`
	ScoreThreshold *float64       `json:"scoreThreshold"`
	CallAlpha      *float64       `json:"callAlpha"` // of this call
	Filters        map[string]any `json:"filters"`
	Fallback       *bool          `json:"fallback"`
	TextsOnly      bool           `json:"textsOnly"` // of multi
	Close          int            `json:"close"`     // closes the retriever as often, at the end

	// Attempts is how often the step may be repeated until it is quick enough: time depends on the machine.
	Attempts int             `json:"attempts"`
	Save     string          `json:"save"`
	Expect   *found          `json:"expect"`
	Tries    []retrieverStep `json:"tries"`
}

type sourceStep struct {
	KB     string     `json:"kb"`
	Store  *storeStep `json:"store"`
	NatsKB string     `json:"natsKB"`
}

// found is what a retriever must give.
type found struct {
	Code  messages.Code `json:"code"`
	Field *string       `json:"field"`

	Texts   *[]string  `json:"texts"`
	IDs     *[]string  `json:"ids"` // of chunks
	Docs    *[]string  `json:"docs"`
	Scores  []float64  `json:"scores"`
	KBs     [][]string `json:"kbs"`     // that hold each text
	Sources [][]string `json:"sources"` // kb/doc#chunk of each text
	Count   *int       `json:"count"`
	Path    *string    `json:"path"` // retrieval path of every result
	First   int        `json:"first"`
	Like    string     `json:"like"`   // the ids saved under this name, or the first First of them
	Batch   *[]string  `json:"batch"`  // the first text of each answer
	Failed  *[]string  `json:"failed"` // knowledge bases
	Within  string     `json:"within"`

	Embeds    *int `json:"embeds"`    // calls of the embedder
	Searches  *int `json:"searches"`  // of the store
	Cancelled *int `json:"cancelled"` // at least
	Closed    *int `json:"closed"`
	// Query holds matchers of the last query of the store, by path.
	Query map[string]json.RawMessage `json:"query"`
}

// passageFound is a result in the forms of all retrievers.
type passageFound struct {
	text, id, doc, path string
	score               float64
	kbs, sources        []string
}

type outcome struct {
	results  []passageFound
	batch    [][]passageFound
	failed   []string
	err      error
	took     time.Duration
	store    *stubStore
	embedder *stubEmbedder
}

func passages(list []client.SearchResult) []passageFound {
	out := make([]passageFound, len(list))
	for i, r := range list {
		out[i] = passageFound{text: r.Text, id: r.ID, doc: r.DocID, path: r.RetrievalPath, score: r.Score}
	}
	return out
}

func retrieved(list []client.RetrievalResult) []passageFound {
	out := make([]passageFound, len(list))
	for i, r := range list {
		out[i] = passageFound{text: r.Text, id: r.ChunkID, doc: r.DocID, path: r.RetrievalPath, score: r.Score}
	}
	return out
}

func merged(list []client.MultiKBRetrievalResult) []passageFound {
	out := make([]passageFound, len(list))
	for i, r := range list {
		out[i] = passageFound{text: r.Text, id: r.ChunkID, doc: r.DocID, score: r.Score, kbs: r.KBIDs}
		for _, s := range r.Sources {
			out[i].sources = append(out[i].sources, s.KB+"/"+s.ChunkID)
		}
	}
	return out
}

// over returns the try with what it leaves open taken from s.
func (s *retrieverStep) over(try retrieverStep) retrieverStep {
	from, to := reflect.ValueOf(s).Elem(), reflect.ValueOf(&try).Elem()
	for i := range to.NumField() {
		if to.Field(i).IsZero() && to.Type().Field(i).Name != "Tries" {
			to.Field(i).Set(from.Field(i))
		}
	}
	return try
}

func (r *run) retriever(t *testing.T, s *retrieverStep) {
	t.Helper()
	for i := range s.Tries {
		try := s.over(s.Tries[i])
		was := r.at
		r.at = fmt.Sprintf("%s, try %d", was, i+1)
		r.retriever(t, &try)
		r.at = was
	}
	if len(s.Tries) > 0 {
		return
	}
	want := s.Expect
	if want == nil {
		want = &found{}
	}
	limit, _ := time.ParseDuration(cmp.Or(want.Within, "1h"))
	var got outcome
	for range max(s.Attempts, 1) {
		got = r.retrieve(t, s)
		if got.took <= limit {
			break
		}
	}
	want.compare(t, r, got)
	if s.Save != "" {
		r.lists[s.Save] = idsOf(got.results)
	}
}

func idsOf(results []passageFound) []string {
	out := make([]string, len(results))
	for i, p := range results {
		out[i] = cmp.Or(p.id, p.text)
	}
	return out
}

func (r *run) retrieve(t *testing.T, s *retrieverStep) outcome {
	t.Helper()
	out := outcome{store: newStore(s.Store), embedder: newEmbedder(s.Embedder)}
	cfg := client.RetrievalConfig{
		TopK: s.TopK, ScoreThreshold: s.ScoreThreshold, Mode: s.Mode, Filters: s.Filters, Alpha: s.CallAlpha, FallbackToFullText: s.Fallback,
	}
	if s.Kind == "multi" {
		m, err := r.multi(t, s)
		if out.err = err; err == nil {
			out.ask(t, m, s, cfg)
		}
		return out
	}
	one, err := r.one(t, s, &out)
	if out.err = err; err != nil {
		return out
	}
	began := time.Now()
	switch {
	case s.Queries != nil:
		lists, err := batchOf(t.Context(), one, s.Queries, cfg)
		for _, list := range lists {
			out.batch = append(out.batch, retrieved(list))
		}
		out.err = err
	case s.Query != "":
		list, err := one.Retrieve(t.Context(), s.Query, cfg)
		out.results, out.err = retrieved(list), err
	}
	out.took = time.Since(began)
	closer, _ := one.(interface{ Close() error })
	for range s.Close {
		r.must(t, closer.Close())
	}
	return out
}

func batchOf(ctx context.Context, one client.Retriever, queries []string, cfg client.RetrievalConfig) ([][]client.RetrievalResult, error) {
	b, ok := one.(client.BatchRetriever)
	if !ok {
		return nil, errors.New("the retriever has no batch")
	}
	return b.BatchRetrieve(ctx, queries, cfg)
}

// one makes the retriever of a kind.
func (r *run) one(t *testing.T, s *retrieverStep, out *outcome) (client.Retriever, error) {
	t.Helper()
	store := out.store.closable(t)
	if s.KB != "" {
		store = r.natsStore(t, s.KB)
	}
	opts := client.RetrieverOptions{Embedder: out.embedder.orNil(), IndexType: s.IndexType, Alpha: s.Alpha}
	switch s.Kind {
	case "vector":
		return client.NewVectorRetriever(store, opts)
	case "sparse":
		return client.NewSparseRetriever(store, opts)
	case "hybrid":
		return client.NewHybridRetriever(store, opts)
	case "auto":
		return client.NewRetriever(store, opts)
	}
	t.Fatalf("%s: there is no retriever %q", r.at, s.Kind)
	return nil, nil
}

func (r *run) natsStore(t *testing.T, kb string) client.VectorStore {
	t.Helper()
	c, err := client.New(r.w.nc, r.tenant, client.Options{})
	r.must(t, err)
	return c.Store(kb)
}

func (r *run) multi(t *testing.T, s *retrieverStep) (*client.MultiRetriever, error) {
	t.Helper()
	var sources []client.Source
	for _, src := range s.Sources {
		var store client.VectorStore = newStore(src.Store)
		if src.NatsKB != "" {
			store = r.natsStore(t, src.NatsKB)
		}
		one, err := client.NewVectorRetriever(store, client.RetrieverOptions{Embedder: newEmbedder(s.Embedder).orNil()})
		if err != nil {
			return nil, err
		}
		sources = append(sources, client.Source{KB: src.KB, Retriever: one})
	}
	return client.NewMultiRetriever(sources...)
}

func (o *outcome) ask(t *testing.T, m *client.MultiRetriever, s *retrieverStep, cfg client.RetrievalConfig) {
	t.Helper()
	began := time.Now()
	if s.TextsOnly {
		texts, failures, err := m.RetrieveTexts(t.Context(), s.Query, cfg)
		for _, text := range texts {
			o.results = append(o.results, passageFound{text: text})
		}
		o.err = err
		o.fail(failures)
	} else {
		all, err := m.RetrieveWithSource(t.Context(), s.Query, cfg)
		o.results, o.err = merged(all.Results), err
		o.fail(all.Failures)
	}
	o.took = time.Since(began)
}

func (o *outcome) fail(failures []client.KBFailure) {
	for _, f := range failures {
		o.failed = append(o.failed, f.KB)
	}
}

func (f *found) compareError(t *testing.T, r *run, err error) {
	t.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != f.Code || f.Field != nil && e.Field != *f.Field {
		r.errorf(t, "got %v, want %s", err, f.Code)
	}
}

func (f *found) compare(t *testing.T, r *run, o outcome) {
	t.Helper()
	if limit, err := time.ParseDuration(cmp.Or(f.Within, "1h")); err != nil || o.took > limit {
		r.errorf(t, "took %s, want less than %s (%v)", o.took, f.Within, err)
	}
	f.compareCounts(t, r, o)
	if f.Failed != nil && !slices.Equal(o.failed, *f.Failed) {
		r.errorf(t, "got the failures %v, want %v", o.failed, *f.Failed)
	}
	if f.Code != "" || o.err != nil {
		f.compareError(t, r, o.err)
		return
	}
	f.compareResults(t, r, o.results)
	if f.Batch != nil {
		var got []string
		for _, list := range o.batch {
			text := ""
			if len(list) > 0 {
				text = list[0].text
			}
			got = append(got, text)
		}
		if !slices.Equal(got, *f.Batch) {
			r.errorf(t, "got the answers %v, want %v", got, *f.Batch)
		}
	}
}

func (f *found) compareCounts(t *testing.T, r *run, o outcome) {
	t.Helper()
	var searches, cancelled, closed int
	if o.store != nil {
		searches, cancelled, closed = o.store.count()
	}
	for _, c := range []struct {
		what string
		got  int
		want *int
	}{{"calls of the embedder", o.embedder.count(), f.Embeds}, {"searches", searches, f.Searches}, {"closes", closed, f.Closed}} {
		if c.want != nil && c.got != *c.want {
			r.errorf(t, "got %d %s, want %d", c.got, c.what, *c.want)
		}
	}
	if f.Cancelled != nil && cancelled < *f.Cancelled {
		r.errorf(t, "%d searches were cancelled, want at least %d", cancelled, *f.Cancelled)
	}
	if f.Query == nil {
		return
	}
	if searches == 0 {
		r.errorf(t, "the store was not searched")
		return
	}
	q := o.store.queries[searches-1]
	raw, err := json.Marshal(q)
	r.must(t, err)
	new(expect).compareData(func(format string, args ...any) { r.errorf(t, format, args...) }, raw, f.Query)
}

func (f *found) compareResults(t *testing.T, r *run, results []passageFound) {
	t.Helper()
	for _, c := range []struct {
		what string
		want *[]string
		of   func(passageFound) string
	}{
		{"texts", f.Texts, func(p passageFound) string { return p.text }},
		{"ids", f.IDs, func(p passageFound) string { return p.id }},
		{"documents", f.Docs, func(p passageFound) string { return p.doc }},
	} {
		var got []string
		for _, p := range results {
			got = append(got, c.of(p))
		}
		if c.want != nil && !slices.Equal(got, *c.want) {
			r.errorf(t, "got the %s %v, want %v", c.what, got, *c.want)
		}
	}
	for i, p := range results {
		if f.Scores != nil && (len(f.Scores) != len(results) || math.Abs(p.score-f.Scores[i]) > storeTolerance) {
			r.errorf(t, "result %d has the score %v, want %v", i+1, p.score, f.Scores)
		}
		if f.KBs != nil && (len(f.KBs) != len(results) || !slices.Equal(p.kbs, f.KBs[i])) {
			r.errorf(t, "result %d is of %v, want %v", i+1, p.kbs, f.KBs)
		}
		if f.Sources != nil && (len(f.Sources) != len(results) || !slices.Equal(p.sources, f.Sources[i])) {
			r.errorf(t, "result %d has the sources %v, want %v", i+1, p.sources, f.Sources)
		}
		if f.Path != nil && p.path != *f.Path {
			r.errorf(t, "result %d came by %q, want %q", i+1, p.path, *f.Path)
		}
	}
	if f.Count != nil && len(results) != *f.Count {
		r.errorf(t, "got %d results, want %d", len(results), *f.Count)
	}
	if f.Like != "" {
		f.compareLike(t, r, idsOf(results))
	}
}

func (f *found) compareLike(t *testing.T, r *run, got []string) {
	t.Helper()
	want, ok := r.lists[f.Like]
	if f.First > 0 {
		got, want = got[:min(f.First, len(got))], want[:min(f.First, len(want))]
	}
	if !ok || len(want) == 0 || !slices.Equal(got, want) {
		r.errorf(t, "got %v, want as %s %v", got, f.Like, want)
	}
}

// decodeStep reads a library result from JSON.
type decodeStep struct {
	As    string          `json:"as"` // RetrievalResult, SearchResult or MultiKBRetrievalResult
	JSON  json.RawMessage `json:"json"`
	Fails bool            `json:"fails"`
}

func (r *run) decode(t *testing.T, steps []decodeStep) {
	t.Helper()
	for _, s := range steps {
		var maps [2]map[string]any
		var err error
		for i := range maps {
			switch s.As {
			case "RetrievalResult":
				var v client.RetrievalResult
				err = json.Unmarshal(s.JSON, &v)
				maps[i] = v.Metadata
			case "SearchResult":
				var v client.SearchResult
				err = json.Unmarshal(s.JSON, &v)
				maps[i] = v.Metadata
			case "MultiKBRetrievalResult":
				var v client.MultiKBRetrievalResult
				err = json.Unmarshal(s.JSON, &v)
				maps[i] = v.Metadata
			default:
				t.Fatalf("%s: there is no %s", r.at, s.As)
			}
		}
		if (err != nil) != s.Fails {
			r.errorf(t, "%s %s: got %v, want it to fail: %v", s.As, s.JSON, err, s.Fails)
		}
		if s.Fails || err != nil {
			continue
		}
		if maps[0] == nil || len(maps[0]) > 0 {
			r.errorf(t, "%s: got the metadata %v, want an empty map", s.As, maps[0])
			continue
		}
		maps[0]["x"] = 1
		if len(maps[1]) > 0 {
			r.errorf(t, "%s: two results share their metadata", s.As)
		}
	}
}
