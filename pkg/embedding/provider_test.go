package embedding_test

import (
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

func startProvider(t testing.TB, opts fakeserver.Options, cfg embedding.ProviderConfig) (*embedding.Provider, *fakeserver.Server) {
	t.Helper()
	s := fakeserver.New(opts)
	srv := httptest.NewServer(s)
	cfg.BaseURL, cfg.APIKey = srv.URL+"/v1", opts.APIKey
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	p, err := embedding.NewProvider(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return p, s
}

func someTexts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("passage: text number %d of the collection", i)
	}
	return out
}

// wantVectors fails unless every text has its own vector, those in without none.
func wantVectors(t *testing.T, r embedding.Result, texts []string, without ...int) {
	t.Helper()
	missing := map[int]bool{}
	for _, i := range without {
		missing[i] = true
		if r.Rejected[i] == nil {
			t.Errorf("text %d has no rejection", i)
		}
	}
	if len(r.Rejected) != len(without) {
		t.Errorf("rejected %v, want those of %v", r.Rejected, without)
	}
	for i, text := range texts {
		switch {
		case missing[i] && r.Vectors[i] != nil:
			t.Errorf("text %d has a vector", i)
		case !missing[i] && (r.Vectors[i] == nil || cosine(r.Vectors[i], embedding.Fake{}.Vector(text)) < 0.9999):
			t.Errorf("text %d has not its vector", i)
		}
	}
}

func TestProviderLearnsTheBatchLimit(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]fakeserver.Options{
		"items": {MaxItems: 10}, "bytes": {MaxBytes: 400},
	} {
		p, server := startProvider(t, opts, embedding.ProviderConfig{})
		texts := someTexts(64)
		r, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantVectors(t, r, texts)
		before := server.Requests()
		if _, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts); err != nil {
			t.Fatal(err)
		}
		want := (64 + server.Largest() - 1) / server.Largest()
		if got := server.Requests() - before; got > want+1 || server.Largest() < 5 {
			t.Errorf("%s: second time %d requests of up to %d texts, want no refusals", name, got, server.Largest())
		}
		if share := p.Limits(embedding.DefaultSpace()).Share(texts[:server.Largest()]); share > 1 || share < 0.5 {
			t.Errorf("%s: the largest request that passed is %v of the limits", name, share)
		}
	}
}

func TestProviderNamesPoisonedTexts(t *testing.T) {
	t.Parallel()
	p, _ := startProvider(t, fakeserver.Options{Poison: "poison"}, embedding.ProviderConfig{})
	texts := someTexts(20)
	texts[3], texts[17] = "a poisoned text", "another poisoned text"
	r, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts)
	if err != nil {
		t.Fatal(err)
	}
	wantVectors(t, r, texts, 3, 17)
}

func TestProviderTextTooLongIsRejectedAndTeachesNothing(t *testing.T) {
	t.Parallel()
	p, server := startProvider(t, fakeserver.Options{MaxTextBytes: 1000}, embedding.ProviderConfig{})
	texts := someTexts(32)
	texts[5] = strings.Repeat("long ", 500)
	r, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts)
	if err != nil {
		t.Fatal(err)
	}
	wantVectors(t, r, texts, 5)
	before := server.Requests()
	if _, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, someTexts(64)); err != nil {
		t.Fatal(err)
	}
	if got := server.Requests() - before; got != 1 {
		t.Errorf("64 ordinary texts took %d requests afterwards, want 1", got)
	}
}

func TestProviderThatRefusesEverythingIsMisconfigured(t *testing.T) {
	t.Parallel()
	p, server := startProvider(t, fakeserver.Options{}, embedding.ProviderConfig{})
	server.Always(&fakeserver.Fault{Status: 400, Message: "unsupported parameter"})
	_, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, someTexts(30))
	if !errors.Is(err, embedding.ErrUnauthorized) || server.Requests() > 2 {
		t.Errorf("got %v after %d requests", err, server.Requests())
	}
}

func TestProviderFragileTextIsNoOutage(t *testing.T) {
	t.Parallel()
	p, server := startProvider(t, fakeserver.Options{Fragile: "fragile"}, embedding.ProviderConfig{})
	_, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, []string{"a fragile text"})
	if !errors.Is(err, embedding.ErrBadAnswer) || errors.Is(err, embedding.ErrUnavailable) {
		t.Errorf("got %v, want ErrBadAnswer", err)
	}
	server.Always(&fakeserver.Fault{Status: 500})
	_, err = p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, []string{"a text"})
	if !errors.Is(err, embedding.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestProviderWaitsOutRateLimits(t *testing.T) {
	t.Parallel()
	p, server := startProvider(t, fakeserver.Options{}, embedding.ProviderConfig{})
	server.Enqueue(fakeserver.Fault{Status: 429, RetryAfter: "0.2"}, fakeserver.Fault{Status: 429, RetryAfter: "0.1"})
	start, texts := time.Now(), someTexts(8)
	r, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts)
	if err != nil {
		t.Fatal(err)
	}
	wantVectors(t, r, texts)
	if got := time.Since(start); got < 300*time.Millisecond || server.Requests() != 3 || server.Texts() != 8 {
		t.Errorf("took %v, %d requests, %d texts: the batch must stay whole", got, server.Requests(), server.Texts())
	}
	server.Enqueue(fakeserver.Fault{Status: 429, RetryAfter: "60"})
	_, err = p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts)
	if !errors.Is(err, embedding.ErrThrottled) || embedding.RetryAfter(err) != time.Minute {
		t.Errorf("got %v, retry after %v", err, embedding.RetryAfter(err))
	}
}

func TestProviderMakesSlowBatchesSmaller(t *testing.T) {
	t.Parallel()
	p, server := startProvider(t, fakeserver.Options{}, embedding.ProviderConfig{Timeout: 200 * time.Millisecond})
	server.Enqueue(fakeserver.Fault{Hang: true})
	if _, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, someTexts(32)); !errors.Is(err, embedding.ErrBadAnswer) {
		t.Fatalf("got %v, want ErrBadAnswer: the provider answers others", err)
	}
	if _, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, someTexts(32)); err != nil {
		t.Fatal(err)
	}
	if got := server.Largest(); got != 16 {
		t.Errorf("then sent %d texts at once, want 16", got)
	}
}

func TestProviderProbe(t *testing.T) {
	t.Parallel()
	p, _ := startProvider(t, fakeserver.Options{Dims: 512}, embedding.ProviderConfig{})
	s := embedding.SpaceOf("some-model", 0)
	if dims, err := p.Probe(t.Context(), s); err != nil || dims != 512 {
		t.Errorf("got %d, %v", dims, err)
	}
	s.Dims = 384
	if _, err := p.Probe(t.Context(), s); !errors.Is(err, embedding.ErrDimension) {
		t.Errorf("got %v, want ErrDimension", err)
	}
	if _, err := p.Embed(t.Context(), s, embedding.Batch, someTexts(1)); !errors.Is(err, embedding.ErrDimension) {
		t.Errorf("got %v, want ErrDimension", err)
	}
}

func TestProviderNormalizes(t *testing.T) {
	t.Parallel()
	p, server := startProvider(t, fakeserver.Options{}, embedding.ProviderConfig{})
	server.Enqueue(fakeserver.Fault{Body: `{"data":[{"index":0,"embedding":"AABAQAAAgEA="}],"usage":{"total_tokens":1}}`}) // 3, 4
	s := embedding.SpaceOf("some-model", 2)
	r, err := p.Embed(t.Context(), s, embedding.Batch, someTexts(1))
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Vectors[0]; math.Abs(float64(v[0])-0.6) > 1e-6 || math.Abs(float64(v[1])-0.8) > 1e-6 {
		t.Errorf("got %v, want 0.6, 0.8", v)
	}
}

func TestErrorsDoNotQuoteTexts(t *testing.T) {
	t.Parallel()
	const secret = "the quick brown fox jumps over the lazy dog"
	p, server := startProvider(t, fakeserver.Options{}, embedding.ProviderConfig{})
	server.Enqueue(fakeserver.Fault{Status: 400, Message: "bad input: " + secret})
	r, err := p.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, []string{secret})
	if err != nil || r.Rejected[0] == nil || strings.Contains(r.Rejected[0].Error(), "brown") {
		t.Errorf("got %v, %v", err, r.Rejected)
	}
}

// BenchmarkProvider is what a request costs besides the model, client and server together.
func BenchmarkProvider(b *testing.B) {
	for _, texts := range []int{1, 10, 40} {
		b.Run(fmt.Sprintf("base64/%d", texts), func(b *testing.B) {
			srv := httptest.NewServer(fakeserver.NewInstant(384))
			defer srv.Close()
			benchmarkProvider(b, srv.URL, texts)
		})
	}
	b.Run("floats/40", func(b *testing.B) {
		srv := httptest.NewServer(fakeserver.New(fakeserver.Options{FloatsOnly: true}))
		defer srv.Close()
		benchmarkProvider(b, srv.URL, 40)
	})
}

func benchmarkProvider(b *testing.B, server string, n int) {
	p, err := embedding.NewProvider(embedding.ProviderConfig{BaseURL: server + "/v1"})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("word%d and others ", i), 75)
	}
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		if _, err := p.Embed(b.Context(), embedding.DefaultSpace(), embedding.Batch, texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/1000/float64(n*b.N), "cpu-µs/text")
}

// cpu is the processor time of this process: on a busy machine it tells what the clock cannot.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
