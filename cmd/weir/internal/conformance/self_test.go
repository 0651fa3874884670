package conformance_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

// TestTheSuiteSeesDifferences shows that each kind of expectation can fail.
func TestTheSuiteSeesDifferences(t *testing.T) {
	t.Parallel()
	r := &run{w: &world{embeddings: newEmbeddings()}, saved: map[string][]hit{"s": {{"a", 0, 0.9}, {"b", 0, 0.5}}}}
	reply := json.RawMessage(`{"retrievalResults":[{"docId":"a","chunkId":0,"score":0.9},{"docId":"b","chunkId":0,"score":0.5}],"n":1.5,"t":"text","l":[1,2]}`)
	refusal := messages.Invalid("a.b", "must be small")
	for _, c := range []struct {
		expect string
		err    error
		same   bool
	}{
		{`{}`, nil, true},
		{`{"documents":["b","a"],"order":["a#0","b"],"scores":[0.9,0.5],"count":2,"atMost":2,"falling":true,"like":"s","orderLike":"s"}`, nil, true},
		{`{"at":{"n":{"$near":1.5},"t":{"$has":"ex"},"l":{"$length":2},"retrievalResults[*].docId":{"$type":"string"},"x":{"$absent":true},"l[1]":2,"t":{"$in":["text"]},"l":{"$set":[2,1]}}}`, nil, true},
		{`{"code":"VALIDATION_ERROR","field":"a.b","says":["small"]}`, refusal, true},
		{`{"code":"VALIDATION_ERROR","field":"a*"}`, refusal, true},
		{`{"documents":["a"]}`, nil, false},
		{`{"documents":[]}`, nil, false},
		{`{"order":["b","a"]}`, nil, false},
		{`{"order":["a#1","b"]}`, nil, false},
		{`{"scores":[0.9,0.502]}`, nil, false},
		{`{"scores":[0.9]}`, nil, false},
		{`{"count":3}`, nil, false},
		{`{"atMost":1}`, nil, false},
		{`{"like":"unsaved"}`, nil, false},
		{`{"at":{"n":2}}`, nil, false},
		{`{"at":{"n":{"$near":1.6}}}`, nil, false},
		{`{"at":{"n":{"$type":"integer"}}}`, nil, false},
		{`{"at":{"t":{"$has":"no"}}}`, nil, false},
		{`{"at":{"t":{"$absent":true}}}`, nil, false},
		{`{"at":{"x":null}}`, nil, false},
		{`{"at":{"x":{"$type":"string"}}}`, nil, false},
		{`{"at":{"l":{"$length":3}}}`, nil, false},
		{`{"at":{"l":{"$set":[1]}}}`, nil, false},
		{`{"at":{"l[5]":1}}`, nil, false},
		{`{"at":{"n":{"$atLeast":2}}}`, nil, false},
		{`{"at":{"n":{"$atMost":1}}}`, nil, false},
		{`{"at":{"retrievalResults[*].docId":"a"}}`, nil, false},
		{`{"embedded":{"never sent":1}}`, nil, false},
		{`{"within":"0s"}`, nil, false},
		{`{"code":"VALIDATION_ERROR"}`, nil, false},
		{`{}`, refusal, false},
		{`{"code":"INTERNAL"}`, refusal, false},
		{`{"code":"VALIDATION_ERROR","field":"a"}`, refusal, false},
		{`{"code":"VALIDATION_ERROR","field":"b*"}`, refusal, false},
		{`{"code":"VALIDATION_ERROR","says":["large"]}`, refusal, false},
	} {
		var e expect
		if err := json.Unmarshal([]byte(c.expect), &e); err != nil {
			t.Fatal(err)
		}
		problems := e.compare(r, &answer{data: reply, err: c.err, took: 1})
		if same := len(problems) == 0; same != c.same {
			t.Errorf("%s on %v: got the problems %v, want none: %v", c.expect, c.err, problems, c.same)
		}
	}
}

func TestMacros(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"a":60.0,"b":9007199254740993}`:                   `{"a":60.0,"b":9007199254740993}`,
		`{"a":60.0,"b":{"$text":"x","times":3,"then":"y"}}`: `{"a":60.0,"b":"xxxy"}`,
		`{"$list":1,"times":3}`:                             `[1,1,1]`,
		`{"$nest":"notAll","times":2,"in":{"a":1}}`:         `{"notAll":[{"notAll":[{"a":1}]}]}`,
		`{"$many":{"id":"d{n}"},"times":2}`:                 `[{"id":"d01"},{"id":"d02"}]`,
		`{"$paragraphs":"p{n}","times":2}`:                  `"p01\n\np02"`,
	} {
		got, err := expand(json.RawMessage(body))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: got %s (%v), want %s", body, got, err, want)
		}
	}
	for _, bad := range []string{`{"$text":"x"}`, `{"$odd":"x","times":2}`, `{"$list":1,"times":1000000000}`} {
		if got, err := expand(json.RawMessage(bad)); err == nil {
			t.Errorf("%s: got %s, want an error", bad, got)
		}
	}
}
