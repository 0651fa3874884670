package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
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

func (r *run) retriever(t testing.TB, s *retrieverStep) {
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

func (r *run) retrieve(t testing.TB, s *retrieverStep) outcome {
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
func (r *run) one(t testing.TB, s *retrieverStep, out *outcome) (client.Retriever, error) {
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

func (r *run) natsStore(t testing.TB, kb string) client.VectorStore {
	t.Helper()
	c, err := client.New(r.w.nc, r.tenant, client.Options{})
	r.must(t, err)
	return c.Store(kb)
}

func (r *run) multi(t testing.TB, s *retrieverStep) (*client.MultiRetriever, error) {
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

func (o *outcome) ask(t testing.TB, m *client.MultiRetriever, s *retrieverStep, cfg client.RetrievalConfig) {
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
