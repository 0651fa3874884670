package conformance_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
)

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

func (f *found) compareError(t testing.TB, r *run, err error) {
	t.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != f.Code || f.Field != nil && e.Field != *f.Field {
		r.errorf(t, "got %v, want %s", err, f.Code)
	}
}

func (f *found) compare(t testing.TB, r *run, o outcome) {
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

func (f *found) compareCounts(t testing.TB, r *run, o outcome) {
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

func (f *found) compareResults(t testing.TB, r *run, results []passageFound) {
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

func (f *found) compareLike(t testing.TB, r *run, got []string) {
	t.Helper()
	want, ok := r.lists[f.Like]
	if f.First > 0 {
		got, want = got[:min(f.First, len(got))], want[:min(f.First, len(want))]
	}
	if !ok || len(want) == 0 || !slices.Equal(got, want) {
		r.errorf(t, "got %v, want as %s %v", got, f.Like, want)
	}
}
