package fakeserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

func TestInstantGivesEveryTextAVectorOfItsOwn(t *testing.T) {
	t.Parallel()
	s := fakeserver.NewInstant(32)
	srv := httptest.NewServer(s)
	defer srv.Close()
	p, err := embedding.NewProvider(embedding.ProviderConfig{BaseURL: srv.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	texts := []string{
		"plain", `with "quotes"`, `a backslash \`, `and \" both \\`, `"input":["x","y"]`, "", "文档", "<html>", "line\nend",
	}
	r, err := p.Embed(t.Context(), embedding.SpaceOf("any", 32), embedding.Batch, texts)
	if err != nil || r.Usage.Requests != 1 || s.Texts() != len(texts) {
		t.Fatalf("got %d requests, %d texts, error %v; want 1, %d", r.Usage.Requests, s.Texts(), err, len(texts))
	}
	seen := map[float32]bool{}
	for _, v := range r.Vectors {
		var sum float32
		for i, x := range v {
			sum += float32(i) * x
		}
		seen[sum] = true
	}
	if len(seen) != len(texts) {
		t.Errorf("got %d different vectors, want %d", len(seen), len(texts))
	}
}

func TestInstantReadsWhatIsWrittenDifferently(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(fakeserver.NewInstant(4))
	defer srv.Close()
	for body, want := range map[string]int{
		`{"encoding_format": "base64", "input": ["a", "b,\"c"]}`: 2,
		`{"encoding_format":"base64","input":["a" , "b"]}`:       2,
		`{"input":["\\","\\\"","]"],"encoding_format":"base64"}`: 3,
		`{"input":["a"]}`:                             0,
		`{"encoding_format":"base64","input":["a`:     0,
		`{"encoding_format":"base64","input":["a",]}`: 0,
		`{"encoding_format":"base64","input":[]}`:     0,
		`{"encoding_format":"base64","input":[[1]]}`:  0,
	} {
		res, err := http.Post(srv.URL+"/v1/embeddings", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // it was read to its end
		if err != nil || (res.StatusCode == http.StatusOK) != (want > 0) || strings.Count(string(answer), `"index":`) != want {
			t.Errorf("%s: got %s, %.60s, error %v, want %d vectors", body, res.Status, answer, err, want)
		}
	}
}
