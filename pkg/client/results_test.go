package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestResultsWithoutWhatTheyNeedAreNotDecoded(t *testing.T) {
	t.Parallel()
	search := func(text string) error { return json.Unmarshal([]byte(text), new(SearchResult)) }
	passage := func(text string) error { return json.Unmarshal([]byte(text), new(RetrievalResult)) }
	several := func(text string) error { return json.Unmarshal([]byte(text), new(MultiKBRetrievalResult)) }
	for _, c := range []struct {
		decode func(string) error
		text   string
		lacks  string // "": it is fine
	}{
		{search, `{"id":"d#0","text":"x","score":1}`, ""},
		{search, `{"text":"x","score":1}`, "id"},
		{search, `{"id":"d#0","score":1}`, "text"},
		{search, `{"id":"d#0","text":"x","score":null}`, "score"},
		{search, `{"id":"d#0","text":"x","retrievalPath":"FILTER"}`, ""},
		{search, `{"id":"d#0","retrievalPath":"FILTER"}`, "text"},
		{passage, `{"text":"x","score":0}`, ""},
		{passage, `{"score":1}`, "text"},
		{passage, `{"text":"x"}`, "score"},
		{several, `{"text":"x","score":1,"rawScore":2,"rawScoreScaled":1,"new":1}`, ""},
		{several, `{"text":"x","score":1,"rawScoreScaled":1}`, "rawScore"},
		{several, `{"text":"x","score":1,"rawScore":2}`, "rawScoreScaled"},
		{several, `{"text":"x","rawScore":2,"rawScoreScaled":1}`, "score"},
		{search, `{"id":1,"text":"x","score":1}`, "string"},
		{search, `[]`, "object"},
	} {
		err := c.decode(c.text)
		if c.lacks == "" && err != nil || c.lacks != "" && (err == nil || !strings.Contains(err.Error(), c.lacks) && c.lacks != "object") {
			t.Errorf("%s: got %v, want it to lack %q", c.text, err, c.lacks)
		}
	}
}

func TestMetadataIsNeverNilNorSharedNorRounded(t *testing.T) {
	t.Parallel()
	var a, b SearchResult
	for _, r := range []*SearchResult{&a, &b} {
		if err := json.Unmarshal([]byte(`{"id":"d#0","text":"x","score":1,"metadata":null}`), r); err != nil {
			t.Fatal(err)
		}
	}
	a.Metadata["k"] = 1
	if len(b.Metadata) != 0 || b.Metadata == nil {
		t.Errorf("got %v, want an empty map of its own", b.Metadata)
	}
	if err := json.Unmarshal([]byte(`{"id":"d#0","text":"x","score":1,"metadata":{"n":9007199254740993}}`), &a); err != nil || fmt.Sprint(a.Metadata["n"]) != "9007199254740993" {
		t.Errorf("got %v, %v, want every digit", a.Metadata, err)
	}
	p := passage(a)
	p.Metadata["n"] = 0
	if fmt.Sprint(a.Metadata["n"]) != "9007199254740993" || p.DocID != "d" || p.ChunkID != "d#0" {
		t.Errorf("got %+v of %+v", p, a)
	}
	if p := passage(SearchResult{ID: "a#b#12"}); p.DocID != "a#b" || p.Metadata == nil {
		t.Errorf("got %+v, want the id split at the last #", p)
	}
}
