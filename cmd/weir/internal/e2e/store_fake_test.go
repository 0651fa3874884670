package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// memoryStore is a knowledge base in memory: one chunk a document, words counted in place of BM25. The
// contract in store_test.go says in what it is like the real thing.
type memoryStore struct {
	schema messages.MetadataSchema
	dims   int
	chunks []memoryChunk // in order of id
}

type memoryChunk struct {
	id, text string
	vector   []float32
	metadata json.RawMessage
}

var _ client.VectorStore = (*memoryStore)(nil)

func (m *memoryStore) Search(_ context.Context, q client.StoreQuery) ([]client.SearchResult, error) {
	if q.Vector != nil && len(q.Vector) != m.dims {
		return nil, messages.Invalid("retrievalQuery.vector", "has another dimension")
	}
	if err := m.schema.CheckProjection(q.OutputFields); err != nil {
		return nil, err
	}
	allowed, err := m.allowed(q.Filter)
	if err != nil {
		return nil, err
	}
	list, err := m.ranked(q, allowed)
	if err != nil {
		return nil, err
	}
	list = list[:min(len(list), q.TopK)]
	for i := range list {
		m.project(&list[i], q)
	}
	return list, nil
}

func (m *memoryStore) allowed(f filter.Filter) ([]memoryChunk, error) {
	if f == nil {
		return m.chunks, nil
	}
	bound, err := filter.Bind(f, m.schema)
	if err != nil {
		return nil, err
	}
	var out []memoryChunk
	for _, c := range m.chunks {
		typed, err := filter.Typed(m.schema, c.metadata)
		if err != nil {
			return nil, err
		}
		ok, err := bound.Match(typed)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memoryStore) ranked(q client.StoreQuery, of []memoryChunk) ([]client.SearchResult, error) {
	switch {
	case q.FilterOnly:
		return m.scored(of, messages.PathFilter, func(memoryChunk) (float64, bool) { return 0, true }), nil
	case q.Mode == client.ModeVector:
		return m.scored(of, "", func(c memoryChunk) (float64, bool) { return similarity(q.Vector, c.vector), true }), nil
	case q.Mode == client.ModeSparse:
		return m.scored(of, "", func(c memoryChunk) (float64, bool) { n := common(q.Text, c.text); return n, n > 0 }), nil
	}
	vector, sparse := q, q
	vector.Mode, sparse.Mode = client.ModeVector, client.ModeSparse
	var lists [2][]client.SearchResult
	for i, one := range []client.StoreQuery{vector, sparse} {
		var err error
		if lists[i], err = m.ranked(one, of); err != nil {
			return nil, err
		}
	}
	fused, err := fusion.FuseRRF(lists[:], []float64{*q.Alpha, 1 - *q.Alpha}, fusion.DefaultK, func(r client.SearchResult) string { return r.ID })
	out := make([]client.SearchResult, len(fused))
	for i, f := range fused {
		out[i] = f.Item
		out[i].Score = f.Score
	}
	return out, err
}

// scored are the chunks that score leaves, best first.
func (m *memoryStore) scored(of []memoryChunk, path string, score func(memoryChunk) (float64, bool)) []client.SearchResult {
	var out []client.SearchResult
	for _, c := range of {
		s, ok := score(c)
		if !ok {
			continue
		}
		r := client.SearchResult{ID: c.id + "#0", DocID: c.id, Subspace: messages.DefaultSubspace, Text: c.text, Score: s, RetrievalPath: path, Vector: c.vector}
		_ = json.Unmarshal(c.metadata, &r.Metadata) // was checked
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b client.SearchResult) int { return cmp.Compare(b.Score, a.Score) })
	return out
}

func (m *memoryStore) project(r *client.SearchResult, q client.StoreQuery) {
	if !q.OutputVector {
		r.Vector = nil
	}
	if q.OutputFields == nil {
		return
	}
	for key := range r.Metadata {
		if !slices.Contains(q.OutputFields, key) {
			delete(r.Metadata, key)
		}
	}
}

// similarity is (1 + cos) / 2 in four places.
func similarity(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return math.Round((1+ab/math.Sqrt(aa*bb))/2*1e4) / 1e4
}

// common is how many words of the query the text holds, a little less in a longer text; 0 for none.
func common(query, text string) float64 {
	n, words := 0, strings.Fields(strings.ToLower(text))
	for _, w := range strings.Fields(strings.ToLower(query)) {
		if slices.Contains(words, w) {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return float64(n) + 1/float64(1+len(words))
}
