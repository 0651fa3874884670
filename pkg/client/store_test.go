package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// searching serves search with what answer returns.
func (b *bench) searching(answer func(messages.RetrieveRequest) (any, error)) {
	b.t.Helper()
	serve(b.t, b.nc, messages.OpSearch, func(_ context.Context, r bus.Request) (any, error) {
		var in messages.RetrieveRequest
		if err := messages.DecodeStrict(r.Body, &in); err != nil {
			return nil, err
		}
		return answer(in)
	})
}

func TestQueriesOfAStoreOnTheWire(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	var got string
	b.searching(func(in messages.RetrieveRequest) (any, error) {
		raw, err := json.Marshal(in)
		got = string(raw)
		return messages.SearchReply{Results: []messages.SearchResult{{ID: "d#0", Text: "x", Score: 0.5, DocID: "d"}}}, err
	})
	alpha := 0.25
	const rest, shown = `"scoreThreshold":null`, `,"outputConfiguration":{"content":true}`
	for _, c := range []struct {
		what string
		q    StoreQuery
		want string
	}{
		{
			"vector",
			StoreQuery{Mode: ModeVector, Text: "q", Vector: []float32{1}, TopK: 3, Subspace: []string{"s"}},
			`{"subspace":["s"],"retrievalQuery":{"type":"TEXT","text":"q","vector":[1]},"retrievalConfiguration":{"searchType":["DENSE_VECTOR"],` +
				`"denseVectorSearchConfiguration":{"numberOfResults":3,"fallbackToFullText":false},"rerankingConfiguration":{"type":"WEIGHT","numberOfResults":3},` + rest + shown + `}}`,
		},
		{
			"sparse",
			StoreQuery{Mode: ModeSparse, Text: "q", TopK: 3, Filter: ready(t, "a = 1")},
			`{"retrievalQuery":{"type":"TEXT","text":"q"},"retrievalConfiguration":{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":3},` +
				`"rerankingConfiguration":{"type":"WEIGHT","numberOfResults":3},` + rest + shown + `,"filter":{"equals":{"key":"a","value":1}}}}`,
		},
		{
			"hybrid",
			StoreQuery{Mode: ModeHybrid, Text: "q", TopK: 3, Alpha: &alpha, Candidates: 200},
			`{"retrievalQuery":{"type":"TEXT","text":"q"},"retrievalConfiguration":{"searchType":["DENSE_VECTOR","FULL_TEXT"],` +
				`"denseVectorSearchConfiguration":{"numberOfResults":200,"fallbackToFullText":false},"fullTextSearchConfiguration":{"numberOfResults":200},` +
				`"rerankingConfiguration":{"type":"RRF","numberOfResults":3,"rrfConfiguration":{"denseVectorSearchWeight":0.25,"fullTextSearchWeight":0.75,"k":60}},` + rest + shown + `}}`,
		},
		{
			"conditions",
			StoreQuery{FilterOnly: true, TopK: 3, Filter: ready(t, "a = 1"), OutputFields: []string{"a"}, OutputVector: true},
			`{"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"rerankingConfiguration":{"numberOfResults":3},` + rest +
				`,"outputConfiguration":{"fields":["a"],"vector":true,"content":true},"filter":{"equals":{"key":"a","value":1}}}}`,
		},
	} {
		found, err := b.c.Store("kb1").Search(within(t, testkit.Patience), c.q)
		if err != nil || len(found) != 1 || found[0].DocID != "d" || got != c.want {
			t.Errorf("%s: got %v, %v and sent\n%s, want\n%s", c.what, found, err, got, c.want)
		}
	}
	_, err := b.c.Store("kb1").Search(within(t, testkit.Patience), StoreQuery{Mode: "x", TopK: 1})
	wantCode(t, "mode x", err, messages.CodeValidation, "mode")
}

func TestAStoreKeepsToTheServersLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	var asked []int
	limits := messages.TablestoreRetrieveLimits()
	b.searching(func(in messages.RetrieveRequest) (any, error) {
		asked = append(asked, *in.Configuration.Dense.NumberOfResults)
		return messages.SearchReply{}, in.Configuration.Validate(limits)
	})
	s := b.c.Store("kb1")
	alpha := 0.5
	q := StoreQuery{Mode: ModeHybrid, Text: "q", TopK: 10, Alpha: &alpha, Candidates: 200}
	for range 2 {
		if _, err := s.Search(within(t, testkit.Patience), q); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(asked) != "[200 100 100]" {
		t.Errorf("asked for %v candidates, want the limit to be learnt", asked)
	}
	limits.Candidates = 50 // meanwhile
	if _, err := s.Search(within(t, testkit.Patience), q); err != nil || fmt.Sprint(asked[3:]) != "[100 50]" {
		t.Errorf("asked for %v candidates (%v), want the new limit to be learnt", asked[3:], err)
	}
	q.TopK = 150
	_, err := s.Search(within(t, testkit.Patience), q)
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != messages.CodeValidation || !strings.Contains(e.Field, "numberOfResults") {
		t.Errorf("more results than the limit: got %v", err)
	}
}

func TestResultsThatDoNotFitAreAskedForFurther(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.searching(func(in messages.RetrieveRequest) (any, error) {
		n := len(in.Cursor)
		out := messages.SearchReply{Results: []messages.SearchResult{{ID: fmt.Sprint("d#", n), Text: "x", Score: 1}}, NextCursor: in.Cursor + "c"}
		out.Truncated = n < 4
		return out, nil
	})
	for topK, want := range map[int]int{3: 3, 10: 5} {
		found, err := b.c.Store("kb1").Search(within(t, testkit.Patience), StoreQuery{Mode: ModeSparse, Text: "q", TopK: topK})
		if err != nil || len(found) != want || found[want-1].ID != fmt.Sprint("d#", want-1) {
			t.Errorf("top %d: got %v, %v, want %d", topK, found, err, want)
		}
	}
}
