package embedding_test

import (
	"context"
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

// backend is a server the contract runs over.
type backend struct {
	name string
	cfg  func(t *testing.T) (embedding.ClientConfig, int)
}

func fakeBackend(name string, opts fakeserver.Options) backend {
	return backend{name, func(t *testing.T) (embedding.ClientConfig, int) {
		cfg, _ := startFake(t, opts)
		return cfg, 384
	}}
}

// backends is the fake in its variants, and the real server that EMBEDDING_BASE_URL names.
func backends() []backend {
	all := []backend{
		fakeBackend("fake", fakeserver.Options{}),
		fakeBackend("fake without base64", fakeserver.Options{FloatsOnly: true}),
		fakeBackend("fake refusing base64", fakeserver.Options{RefuseBase64: true}),
		fakeBackend("fake with a key", fakeserver.Options{APIKey: "secret"}),
	}
	if base := os.Getenv("EMBEDDING_BASE_URL"); base != "" {
		all = append(all, backend{"real", func(t *testing.T) (embedding.ClientConfig, int) {
			model := os.Getenv("EMBEDDING_MODEL")
			if model == "" {
				model = embedding.DefaultSpace().Model
			}
			return embedding.ClientConfig{BaseURL: base, APIKey: os.Getenv("EMBEDDING_API_KEY"), Model: model}, 0
		}})
	}
	return all
}

// startFake serves the options until the test ends.
func startFake(t testing.TB, opts fakeserver.Options) (embedding.ClientConfig, *fakeserver.Server) {
	t.Helper()
	s := fakeserver.New(opts)
	srv := httptest.NewServer(s)
	h := embedding.NewHTTPClient(16)
	t.Cleanup(func() {
		h.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	return embedding.ClientConfig{
		BaseURL: srv.URL + "/v1", APIKey: opts.APIKey, Model: "multilingual-e5-small", Dims: 384,
		Timeout: 5 * time.Second, HTTP: h,
	}, s
}

func newClient(t testing.TB, cfg embedding.ClientConfig) *embedding.Client {
	t.Helper()
	if cfg.HTTP == nil {
		cfg.HTTP = embedding.NewHTTPClient(4)
		t.Cleanup(cfg.HTTP.CloseIdleConnections)
	}
	c, err := embedding.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContract(t *testing.T) {
	for _, b := range backends() {
		t.Run(b.name, func(t *testing.T) {
			cfg, dims := b.cfg(t)
			c := newClient(t, cfg)
			t.Run("probe gives the dimension", func(t *testing.T) { contractProbe(t, c, dims) })
			t.Run("one vector a text in order", func(t *testing.T) { contractOrder(t, c) })
			t.Run("likeness follows words", func(t *testing.T) { contractLikeness(t, c) })
			t.Run("vectors are the same in either form", func(t *testing.T) { contractForms(t, c, newClient(t, cfg)) })
			t.Run("odd texts have vectors", func(t *testing.T) { contractOddTexts(t, c) })
			t.Run("nothing asked, nothing sent", func(t *testing.T) { contractEmpty(t, c) })
		})
	}
}

func contractProbe(t *testing.T, c *embedding.Client, want int) {
	dims, err := c.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if dims == 0 || want != 0 && dims != want {
		t.Fatalf("got %d dimensions, want %d", dims, want)
	}
}

func contractOrder(t *testing.T, c *embedding.Client) {
	texts := []string{
		"passage: the river rises in spring", "passage: a weir holds the water back",
		"passage: 文档检索系统", "passage: the river rises in spring",
	}
	together := embed(t, c, texts...)
	for i, text := range texts {
		alone := embed(t, c, text)[0]
		if got := cosine(alone, together[i]); got < 0.99 {
			t.Errorf("text %d: cosine of alone and together %.4f, want at least 0.99", i, got)
		}
	}
}

func contractLikeness(t *testing.T, c *embedding.Client) {
	v := embed(t, c, "query: height of the old weir", "passage: the old weir has a height of two metres", "passage: 股票市场 今天 上涨")
	near, far := cosine(v[0], v[1]), cosine(v[0], v[2])
	if near <= far {
		t.Errorf("cosine to the answer %.3f, to a stranger %.3f", near, far)
	}
}

// formSlack is what a number may lose as a decimal.
const formSlack = 1e-7

func contractForms(t *testing.T, c, floats *embedding.Client) {
	floats.AskForFloats()
	const text = "query: how high is the old weir"
	got, want := embed(t, c, text)[0], embed(t, floats, text)[0]
	if len(got) != len(want) {
		t.Fatalf("got %d dimensions, as floats %d", len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > formSlack {
			t.Fatalf("number %d: got %v, as floats %v", i, got[i], want[i])
		}
	}
}

func contractOddTexts(t *testing.T, c *embedding.Client) {
	embed(t, c, " ", "\u0000x", "<s> </s> <mask>", "\U0001F600", `quote " and \ slash`, strings.Repeat("word ", 3000))
}

func contractEmpty(t *testing.T, c *embedding.Client) {
	v, usage, err := c.Embed(t.Context(), nil)
	if err != nil || len(v) != 0 || usage.Requests != 0 {
		t.Fatalf("got %d vectors, %d requests, error %v", len(v), usage.Requests, err)
	}
}

func embed(t *testing.T, c *embedding.Client, texts ...string) [][]float32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	v, usage, err := c.Embed(ctx, texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(v) != len(texts) || usage.Requests == 0 || usage.Tokens == 0 {
		t.Fatalf("got %d vectors for %d texts, usage %+v", len(v), len(texts), usage)
	}
	return v
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}
