package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// recorder is a test that keeps what is reported of it.
type recorder struct {
	testing.TB
	problems []string
}

// errEnd ends a step as Fatalf would end a test.
type errEnd struct{}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(errEnd{})
}

// problems runs a step that needs no server and returns what it reports.
func problems(t *testing.T, raw string) (found []string) {
	t.Helper()
	var s step
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	rec := &recorder{TB: t}
	r := &run{c: &testCase{Steps: []step{s}}, saved: map[string][]hit{}, lists: map[string][]string{"saved": {"A", "B"}}}
	defer func() {
		if p := recover(); p != nil {
			if _, ended := p.(errEnd); !ended {
				panic(p)
			}
		}
		found = rec.problems
	}()
	r.step(rec, 0)
	return nil
}

// Parts of steps, with a place for what is expected.
const (
	ofBuilder = `{"builder":{"calls":[{"do":"text","value":"q"},{"do":"vector","values":[1]},{"do":"eq","key":"a","value":1},{"do":"gt","key":"b","value":2}],
		"store":{"vector":[{"id":"A#0","docId":"A","text":"a","score":0.9},{"id":"B#1","docId":"B","text":"b","score":0.5}]},%s}}`
	ofCalls     = `{"builder":{"calls":[%s]}}`
	ofRetriever = `{"retriever":{"kind":"hybrid","query":"q","embedder":{"vector":[1]},"close":2,"store":{"closer":"error","vector":[{"id":"A","docId":"a","text":"A","score":0.9}],"sparse":[{"id":"B","docId":"b","text":"B","score":9}]},"expect":{%s}}}`
	ofRefused   = `{"retriever":{"kind":"sparse","mode":"vector","query":"q","expect":{%s}}}`
	ofBatch     = `{"retriever":{"kind":"sparse","queries":["p","q"],"store":{"sparse":[{"id":"B","text":"B","score":9}]},"expect":{%s}}}`
	ofMulti     = `{"retriever":{"kind":"multi","query":"q","embedder":{"vector":[1]},"sources":[{"kb":"k1","store":{"vector":[{"id":"x#0","docId":"x","text":"X","score":0.9}]}},{"kb":"k2","store":{"error":"deadline"}}],"expect":{%s}}}`
	ofSlow      = `{"retriever":{"kind":"sparse","query":"q","attempts":2,"store":{"delay":"20ms"},"expect":{%s}}}`
	ofFallback  = `{"retriever":{"kind":"vector","query":"q","embedder":{"vector":[1]},"store":{"sparse":[{"id":"B","text":"B","score":9}]},"expect":{%s}}}`
	ofFuse      = `{"fuse":{"method":"RRF","k":60,"denseWeight":1,"textWeight":1,"dense":[{"id":"A","score":1}],"text":[{"id":"B","score":1}],"want":%s}}`
	ofTexts     = `{"fuseTexts":{"lists":[["x"],["x","y"]],"k":60,"want":%s}}`
	ofExpr      = `{"expressions":[%s]}`
)

// TestTheSuiteSeesDifferencesOfSteps shows that each kind of expectation of a step besides calls can fail.
func TestTheSuiteSeesDifferencesOfSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step, expect string
		same         bool
	}{
		{ofBuilder, `"filter":{"andAll":[{"equals":{"key":"a","value":1}},{"greaterThan":{"key":"b","value":2}}]},"request":{"retrievalQuery.text":"q","retrievalConfiguration.searchType":["DENSE_VECTOR"]},"results":{"texts":["a","b"],"ids":["A#0","B#1"],"docs":["A","B"],"scores":[0.9,0.5],"searches":1,"count":2,"query":{"TopK":4}}`, true},
		{ofBuilder, `"filter":{"andAll":[{"greaterThan":{"key":"b","value":2}},{"equals":{"key":"a","value":1}}]}`, false},
		{ofBuilder, `"filter":{"equals":{"key":"a","value":1}}`, false},
		{ofBuilder, `"filter":null`, false},
		{ofBuilder, `"request":{"retrievalQuery.text":"p"}`, false},
		{ofBuilder, `"request":{"cursor":"x"}`, false},
		{ofBuilder, `"results":{"texts":["b","a"]}`, false},
		{ofBuilder, `"results":{"ids":["A#0"]}`, false},
		{ofBuilder, `"results":{"docs":["A","A"]}`, false},
		{ofBuilder, `"results":{"searches":2}`, false},
		{ofBuilder, `"results":{"query":{"TopK":5}}`, false},
		{ofBuilder, `"results":{"code":"VALIDATION_ERROR"}`, false},
		{ofBuilder, `"fails":{"code":"VALIDATION_ERROR"}`, false},
		{ofCalls, `{"do":"minScore","value":2,"fails":true},{"do":"condition","text":"a ==","fails":true,"at":4}`, true},
		{ofCalls, `{"do":"minScore","value":2}`, false},
		{ofCalls, `{"do":"minScore","value":0.5,"fails":true}`, false},
		{ofCalls, `{"do":"condition","text":"a ==","fails":true,"at":3}`, false},
		{ofCalls, `{"do":"eq","key":"a","value":1,"fails":true}`, false},
		{ofCalls, `{"do":"unheardOf"}`, false},
		{ofRetriever, `"texts":["A","B"],"ids":["A","B"],"docs":["a","b"],"count":2,"like":"saved","path":"","embeds":1,"searches":1,"closed":1,"query":{"Candidates":200},"within":"1h"`, true},
		{ofRetriever, `"texts":["B","A"]`, false},
		{ofRetriever, `"ids":["A"]`, false},
		{ofRetriever, `"docs":["b","a"]`, false},
		{ofRetriever, `"scores":[0.9,9]`, false},
		{ofRetriever, `"count":1`, false},
		{ofRetriever, `"like":"unsaved"`, false},
		{ofRetriever, `"path":"FULL_TEXT_FALLBACK"`, false},
		{ofRetriever, `"embeds":0`, false},
		{ofRetriever, `"searches":2`, false},
		{ofRetriever, `"cancelled":1`, false},
		{ofRetriever, `"closed":2`, false},
		{ofRetriever, `"query":{"Candidates":10}`, false},
		{ofRetriever, `"within":"0s"`, false},
		{ofRetriever, `"within":"soon"`, false},
		{ofRetriever, `"code":"TOP_K_INVALID"`, false},
		{ofRetriever, `"batch":["A"]`, false},
		{ofRefused, `"code":"RETRIEVER_MODE_NOT_SUPPORT","field":"mode","searches":0`, true},
		{ofRefused, `"code":"RETRIEVER_MODE_INVALID"`, false},
		{ofRefused, `"code":"RETRIEVER_MODE_NOT_SUPPORT","field":"topK"`, false},
		{ofRefused, `"count":0`, false},
		{ofBatch, `"batch":["B","B"],"searches":2`, true},
		{ofBatch, `"batch":["B"]`, false},
		{ofBatch, `"batch":["A","B"]`, false},
		{ofMulti, `"texts":["X"],"kbs":[["k1"]],"sources":[["k1/x#0"]],"failed":["k2"]`, true},
		{ofMulti, `"kbs":[["k2"]]`, false},
		{ofMulti, `"sources":[["k1/y#0"]]`, false},
		{ofMulti, `"failed":[]`, false},
		{ofSlow, `"within":"1h","count":0`, true},
		{ofSlow, `"within":"1ms"`, false},
		{ofFallback, `"path":"FULL_TEXT_FALLBACK","searches":2`, true},
		{ofFallback, `"path":""`, false},
		{ofFuse, `[{"id":"A","score":0.01639344},{"id":"B","score":0.01639344}]`, true},
		{ofFuse, `[{"id":"B","score":0.01639344},{"id":"A","score":0.01639344}]`, false},
		{ofFuse, `[{"id":"A","score":0.0163},{"id":"B","score":0.01639344}]`, false},
		{ofFuse, `[{"id":"A","score":0.01639344}]`, false},
		{ofTexts, `[{"text":"x","score":0.03278689,"from":0},{"text":"y","score":0.01612903,"from":1}]`, true},
		{ofTexts, `[{"text":"x","score":0.03278689,"from":1},{"text":"y","score":0.01612903}]`, false},
		{ofTexts, `[{"text":"y","score":0.03278689},{"text":"x","score":0.01612903}]`, false},
		{ofTexts, `[{"text":"x","score":0.03278689}]`, false},
		{ofExpr, `{"text":"a = 1","tree":{"equals":{"key":"a","value":1}}},{"text":"a =","error":3}`, true},
		{ofExpr, `{"text":"a = 1","tree":{"equals":{"key":"a","value":2}}}`, false},
		{ofExpr, `{"text":"a = 1","error":3}`, false},
		{ofExpr, `{"text":"a =","error":2}`, false},
		{ofExpr, `{"text":"a =","tree":{"equals":{"key":"a","value":1}}}`, false},
		{`{"scale":[%s]}`, `{"metric":"cosine","raw":0.6,"want":0.8},{"metric":"l2","operator":2,"want":0}`, true},
		{`{"scale":[%s]}`, `{"metric":"cosine","raw":0.6,"want":0.6}`, false},
		{`{"scale":[%s]}`, `{"metric":"cosine","want":0.6}`, false},
		{`{"decode":[%s]}`, `{"as":"SearchResult","json":{"id":"1#0","text":"t","score":1}},{"as":"SearchResult","json":{"text":"t","score":1},"fails":true}`, true},
		{`{"decode":[%s]}`, `{"as":"SearchResult","json":{"text":"t","score":1}}`, false},
		{`{"decode":[%s]}`, `{"as":"RetrievalResult","json":{"text":"t","score":1},"fails":true}`, false},
		{`{"decode":[%s]}`, `{"as":"RetrievalResult","json":{"text":"t","score":1,"metadata":{"a":1}}}`, false},
		{`{"decode":[%s]}`, `{"as":"Unheard","json":{}}`, false},
	} {
		raw := fmt.Sprintf(c.step, c.expect)
		if found := problems(t, raw); (len(found) == 0) != c.same {
			t.Errorf("%s\ngot the problems %v, want none: %v", raw, found, c.same)
		}
	}
}
