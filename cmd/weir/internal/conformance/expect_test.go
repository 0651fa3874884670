package conformance_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// storeTolerance is how near numbers must be that went through the store.
const storeTolerance = 1e-3

// expect is what a reply must be. What is not given is not looked at, except that the code is SUCCESS.
type expect struct {
	Code  messages.Code `json:"code"`
	Field *string       `json:"field"` // exactly, or with * at its end the beginning
	Says  []string      `json:"says"`  // in the message of the error

	Documents *[]string `json:"documents"` // the ids found, whatever their order
	Order     *[]string `json:"order"`     // ids in order: d1, or d1#0 with the chunk
	Scores    []float64 `json:"scores"`    // in order
	Tolerance float64   `json:"tolerance"` // of scores; default 1e-3
	Count     *int      `json:"count"`
	AtMost    *int      `json:"atMost"`
	Falling   bool      `json:"falling"` // no score above the one before it
	Like      string    `json:"like"`    // the results saved under this name, in order and scores
	OrderLike string    `json:"orderLike"`
	// At holds matchers by path: retrievalResults[0].score, retrievalResults[*].docId.
	At map[string]json.RawMessage `json:"at"`
	// Envelope is the same for what stands around the data: code, message, requestId.
	Envelope map[string]json.RawMessage `json:"envelope"`

	Embedded map[string]int `json:"embedded"` // how often texts were sent to the embedding server, ever
	Within   string         `json:"within"`   // as 400ms
}

// hit is a result as lists are compared by.
type hit struct {
	doc   string
	chunk int
	score float64
}

func (h hit) String() string { return fmt.Sprintf("%s#%d %.7g", h.doc, h.chunk, h.score) }

// answer is what came of a request.
type answer struct {
	envelope, data json.RawMessage
	err            error
	took           time.Duration
	hits           []hit
}

// compare returns what is not as expected, and reads the answer's results.
func (e *expect) compare(r *run, a *answer) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if limit, err := time.ParseDuration(cmp.Or(e.Within, "1h")); err != nil || a.took > limit {
		fail("took %s, want less than %s (%v)", a.took, e.Within, err)
	}
	for text, want := range e.Embedded {
		if got := r.w.embeddings.times(text); got != want {
			fail("%q was sent %d times to the embedding server, want %d", text, got, want)
		}
	}
	e.compareData(fail, a.envelope, e.Envelope)
	if a.err != nil || e.Code != "" && e.Code != messages.CodeSuccess {
		e.compareError(fail, a.err)
		return problems
	}
	var err error
	if a.hits, err = hitsOf(a.data); err != nil {
		fail("%v", err)
		return problems
	}
	e.compareList(fail, a.hits)
	e.compareSaved(fail, r, a.hits)
	e.compareData(fail, a.data, e.At)
	return problems
}

func (e *expect) compareData(fail func(string, ...any), raw json.RawMessage, at map[string]json.RawMessage) {
	if len(at) == 0 {
		return
	}
	var data any
	if err := json.Unmarshal(raw, &data); err != nil {
		fail("the data is %q: %v", raw, err)
		return
	}
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if err := matchAt(data, path, at[path]); err != nil {
			fail("%v", err)
		}
	}
}

func (e *expect) compareError(fail func(string, ...any), err error) {
	var got *messages.Error
	if !errors.As(err, &got) || got.Code != cmp.Or(e.Code, messages.CodeSuccess) {
		fail("got %v, want %s", err, cmp.Or(e.Code, messages.CodeSuccess))
		return
	}
	if e.Field != nil {
		beginning, some := strings.CutSuffix(*e.Field, "*")
		if some && !strings.HasPrefix(got.Field, beginning) || !some && got.Field != *e.Field {
			fail("got %v of field %q, want of %q", err, got.Field, *e.Field)
		}
	}
	for _, text := range e.Says {
		if !strings.Contains(got.Field+" "+got.Message, text) {
			fail("got %v, want it to say %q", err, text)
		}
	}
}

func (e *expect) compareList(fail func(string, ...any), hits []hit) {
	if e.Documents != nil {
		var got []string
		for _, h := range hits {
			got = append(got, h.doc)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(*e.Documents))
		if got = slices.Compact(got); !slices.Equal(got, want) {
			fail("got the documents %v, want %v", got, want)
		}
	}
	if e.Order != nil && !inOrder(hits, *e.Order) {
		fail("got %v, want %v", hits, *e.Order)
	}
	if e.Scores != nil {
		want := make([]hit, len(e.Scores))
		for i, s := range e.Scores {
			want[i].score = s
		}
		if !nearScores(hits, want, cmp.Or(e.Tolerance, storeTolerance)) {
			fail("got %v, want the scores %v", hits, e.Scores)
		}
	}
	if e.Count != nil && len(hits) != *e.Count {
		fail("got %d results %v, want %d", len(hits), hits, *e.Count)
	}
	if e.AtMost != nil && len(hits) > *e.AtMost {
		fail("got %d results, want at most %d", len(hits), *e.AtMost)
	}
	if e.Falling && !slices.IsSortedFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) }) {
		fail("got %v, want falling scores", hits)
	}
}

func (e *expect) compareSaved(fail func(string, ...any), r *run, hits []hit) {
	for _, like := range []struct {
		name   string
		scores bool
	}{{e.Like, true}, {e.OrderLike, false}} {
		if like.name == "" {
			continue
		}
		want, ok := r.saved[like.name]
		same := slices.EqualFunc(hits, want, func(a, b hit) bool { return a.doc == b.doc && a.chunk == b.chunk })
		if !ok || !same || like.scores && !nearScores(hits, want, 1e-9) {
			fail("got %v, want as %s %v", hits, like.name, want)
		}
	}
}

func inOrder(hits []hit, want []string) bool {
	return slices.EqualFunc(hits, want, func(h hit, w string) bool {
		return w == h.doc || w == fmt.Sprintf("%s#%d", h.doc, h.chunk)
	})
}

func nearScores(a, b []hit, tolerance float64) bool {
	return slices.EqualFunc(a, b, func(x, y hit) bool { return math.Abs(x.score-y.score) <= tolerance })
}

func equalHits(a, b []hit, tolerance float64) bool {
	return slices.EqualFunc(a, b, func(x, y hit) bool {
		return x.doc == y.doc && x.chunk == y.chunk && math.Abs(x.score-y.score) <= tolerance
	})
}

// hitsOf reads the results of a retrieve or search; other replies have none.
func hitsOf(data json.RawMessage) ([]hit, error) {
	var reply struct {
		Results []messages.RetrievedChunk `json:"retrievalResults"`
		Found   []messages.SearchResult   `json:"searchResults"`
	}
	if len(data) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	var out []hit
	for _, c := range reply.Results {
		out = append(out, hit{c.DocID, c.ChunkID, c.Score})
	}
	for _, c := range reply.Found {
		out = append(out, hit{c.DocID, c.ChunkID, c.Score})
	}
	return out, nil
}
