package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestQueryOfSeveralKnowledgeBases(t *testing.T) {
	t.Parallel()
	in, err := (&queryFlags{k: 3, subspaces: []string{"b/red", "b/blue"}, rerank: rerankFlags{method: "model", provider: "local", model: "small"}}).request("x")
	if err != nil {
		t.Fatal(err)
	}
	scope, err := ofSeveral([]string{"a", "b"}, &in)
	if err != nil || scope != messages.AllScope || in.Subspace != nil || !slices.Equal(in.Subspaces["b"], []string{"red", "blue"}) || len(in.KnowledgeBaseNames) != 2 {
		t.Errorf("got %s, %+v, %v", scope, in, err)
	}
	if r := in.Configuration.Reranking; r.Type != messages.RerankModel || *r.Model != (messages.ModelConfig{Provider: "local", Model: "small"}) || *r.NumberOfResults != 3 {
		t.Errorf("reranking %+v", r)
	}
	if err := in.CheckSeveral(); err != nil {
		t.Error(err)
	}
	one := messages.RetrieveRequest{Subspace: []string{"red"}}
	if scope, err := ofSeveral([]string{"a"}, &one); err != nil || scope != "a" || one.KnowledgeBaseNames != nil || one.Subspace == nil {
		t.Errorf("one: got %s, %+v, %v", scope, one, err)
	}
	for _, subspace := range []string{"red", "c/red"} {
		if _, err := ofSeveral([]string{"a", "b"}, &messages.RetrieveRequest{Subspace: []string{subspace}}); err == nil || !strings.Contains(err.Error(), "KB/SUBSPACE") {
			t.Errorf("--subspace %s: got %v", subspace, err)
		}
	}
	for _, f := range []rerankFlags{{method: "sum"}, {provider: "local"}, {method: "rrf", model: "small"}} {
		if _, err := (&queryFlags{k: 1, rerank: f}).request("x"); err == nil || !strings.Contains(err.Error(), "--rerank") {
			t.Errorf("%+v: got %v", f, err)
		}
	}
}

func TestAnswersOfSeveralKnowledgeBases(t *testing.T) {
	t.Parallel()
	var r messages.RetrieveReply
	const reply = `{"retrievalResults":[
		{"docId":"d1","chunkId":0,"ossKey":"d1","score":0.8,"content":"a river","subspace":"_default","metadata":{},"kbIds":["a","b"],
		 "sources":[{"kb":"b","subspace":"_default","docId":"d1","chunkId":0,"score":0.8},{"kb":"a","subspace":"_default","docId":"d7","chunkId":2,"score":0.7}],
		 "explain":{"fusion":"MODEL","dense":{"rank":2,"raw":0.9,"scaled":0.95,"weight":0},"model":{"raw":0.8,"scaled":0.8}}}],
	 "failures":[{"kb":"c","code":"UNAVAILABLE","message":"something the search needs is away"}],
	 "diagnostics":{"generation":0,"fusion":"MODEL","timing":{},"dropped":["rerank"],"rerank":{"provider":"local","documents":4,"ms":12.5},
	  "knowledgeBases":[{"kb":"b","generation":3,"dense":{"exact":true,"candidates":4,"ms":1},"notes":["a note of b"]}]}}`
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printAnswers(&out, r, false, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		" 1. b/d1  score 0.8000 by the rerank model; vector 0.9000 (rank 2)", "Fusion MODEL over 1 knowledge bases.", "  b vector: exact, 4 candidates",
		"  rerank model: local, 4 texts, 12.5 ms", "Note: no time was left for the rerank model", "Note: c gave nothing: UNAVAILABLE: something", "Note: b: a note of b",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
