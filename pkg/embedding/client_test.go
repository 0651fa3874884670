package embedding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

func TestClientSortsFailures(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		fault fakeserver.Fault
		want  error
		after time.Duration
	}{
		{"429 with seconds", fakeserver.Fault{Status: 429, RetryAfter: "7"}, embedding.ErrThrottled, 7 * time.Second},
		{"429 without a wait", fakeserver.Fault{Status: 429}, embedding.ErrThrottled, 0},
		{"429 with a wait of a year", fakeserver.Fault{Status: 429, RetryAfter: "31536000"}, embedding.ErrThrottled, 10 * time.Minute},
		{"429 for an empty purse", fakeserver.Fault{Status: 429, Code: "insufficient_quota"}, embedding.ErrUnauthorized, 0},
		{"500", fakeserver.Fault{Status: 500}, embedding.ErrUnavailable, 0},
		{"503 with a wait", fakeserver.Fault{Status: 503, RetryAfter: "2"}, embedding.ErrUnavailable, 2 * time.Second},
		{"401", fakeserver.Fault{Status: 401}, embedding.ErrUnauthorized, 0},
		{"404", fakeserver.Fault{Status: 404, Message: "no page"}, embedding.ErrUnauthorized, 0},
		{"400 model", fakeserver.Fault{Status: 400, Code: "model_not_found"}, embedding.ErrUnauthorized, 0},
		{"413", fakeserver.Fault{Status: 413}, embedding.ErrTooLarge, 0},
		{"400 batch", fakeserver.Fault{Status: 400, Message: "batch size 9 > maximum allowed batch size 4"}, embedding.ErrTooLarge, 0},
		{"422", fakeserver.Fault{Status: 422, Message: "tokenization error"}, embedding.ErrRejected, 0},
		{"400", fakeserver.Fault{Status: 400, Message: "invalid input"}, embedding.ErrRejected, 0},
		{"other dimension", fakeserver.Fault{Dims: 512}, embedding.ErrDimension, 0},
		{"one vector short", fakeserver.Fault{Short: true}, embedding.ErrBadAnswer, 0},
		{"zero vector", fakeserver.Fault{Zero: true}, embedding.ErrBadAnswer, 0},
		{"a page instead of JSON", fakeserver.Fault{Body: "<html>log in</html>"}, embedding.ErrBadAnswer, 0},
		{"an index twice", fakeserver.Fault{Body: `{"data":[{"index":0,"embedding":"AACAPw=="},{"index":0,"embedding":"AACAPw=="}]}`}, embedding.ErrBadAnswer, 0},
		{"half an answer", fakeserver.Fault{Body: `{"data":[{"index":0`}, embedding.ErrUnavailable, 0},
		{"connection closed", fakeserver.Fault{Drop: true}, embedding.ErrUnavailable, 0},
		{"no answer", fakeserver.Fault{Hang: true}, embedding.ErrUnavailable, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, server := startFake(t, fakeserver.Options{})
			if c.fault.Hang {
				cfg.Timeout = 50 * time.Millisecond
			}
			if c.fault.Body != "" {
				cfg.Dims = 0
			}
			server.Always(&c.fault)
			_, _, err := newClient(t, cfg).Embed(t.Context(), []string{"one text", "another text"})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if got := embedding.RetryAfter(err); got != c.after {
				t.Errorf("retry after %v, want %v", got, c.after)
			}
		})
	}
}

func TestClientNoServer(t *testing.T) {
	t.Parallel()
	c := newClient(t, embedding.ClientConfig{BaseURL: "http://127.0.0.1:1/v1", Model: "m"})
	if _, err := c.Probe(t.Context()); !errors.Is(err, embedding.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
}

func TestClientKeepsTheAddressOutOfErrors(t *testing.T) {
	for _, secret := range []string{"hunter2", "u:hunter2"} { // a token has no password that net/http would hide
		c := newClient(t, embedding.ClientConfig{BaseURL: "http://" + secret + "@127.0.0.1:1/v1", Model: "m"})
		_, err := c.Probe(t.Context())
		if !errors.Is(err, embedding.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want unavailable without it", secret, err)
		}
	}
}

func TestClientCallerGivesUp(t *testing.T) {
	t.Parallel()
	cfg, server := startFake(t, fakeserver.Options{})
	server.Always(&fakeserver.Fault{Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := newClient(t, cfg).Embed(ctx, []string{"text"})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, embedding.ErrUnavailable) {
		t.Fatalf("got %v, want the caller's own deadline and no outage", err)
	}
}

func TestClientBoundsTheAnswer(t *testing.T) {
	t.Parallel()
	cfg, server := startFake(t, fakeserver.Options{})
	cfg.MaxResponseBytes = 1000
	c := newClient(t, cfg)
	if _, _, err := c.Embed(t.Context(), []string{"text"}); !errors.Is(err, embedding.ErrBadAnswer) {
		t.Fatalf("got %v, want ErrBadAnswer", err)
	}
	server.Always(&fakeserver.Fault{Status: 500, Message: strings.Repeat("x", 5000)})
	if _, _, err := c.Embed(t.Context(), []string{"text"}); err == nil || len(err.Error()) > 500 {
		t.Fatalf("got an error of %d bytes", len(err.Error()))
	}
}

func TestClientPutsVectorsInOrder(t *testing.T) {
	t.Parallel()
	cfg, server := startFake(t, fakeserver.Options{})
	c := newClient(t, cfg)
	want := embed(t, c, "first", "second", "third")
	server.Enqueue(fakeserver.Fault{Swap: true})
	got := embed(t, c, "first", "second", "third")
	for i := range want {
		if cosine(got[i], want[i]) < 0.9999 {
			t.Errorf("vector %d is another text's", i)
		}
	}
}

func TestClientRemembersThatBase64IsNotServed(t *testing.T) {
	t.Parallel()
	for _, opts := range []fakeserver.Options{{FloatsOnly: true}, {RefuseBase64: true}} {
		cfg, server := startFake(t, opts)
		c := newClient(t, cfg)
		embed(t, c, "a")
		embed(t, c, "b")
		embed(t, c, "c")
		if got := server.Requests(); got != 4 {
			t.Errorf("%+v: %d requests for 3 calls, want 4", opts, got)
		}
	}
}

func TestClientReusesConnections(t *testing.T) {
	t.Parallel()
	cfg, server := startFake(t, fakeserver.Options{})
	dials := countDials(cfg.HTTP)
	c := newClient(t, cfg)
	server.Enqueue(fakeserver.Fault{Status: 429, RetryAfter: "1"}, fakeserver.Fault{Status: 400, Message: "no"})
	for range 10 {
		_, _, _ = c.Embed(t.Context(), []string{"text"}) // the first two fail on purpose
	}
	if got := dials(); got != 1 {
		t.Errorf("%d connections for 10 requests, want 1", got)
	}
}

func TestClientConfigValidate(t *testing.T) {
	t.Parallel()
	_, err := embedding.NewClient(embedding.ClientConfig{BaseURL: "localhost:80", Dims: -1, SendDims: true})
	for _, field := range []string{"baseUrl", "model", "dims"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

func TestClientAcceptsAnAnswerAsLongAsTheLimit(t *testing.T) {
	t.Parallel()
	body := `{"data":[{"index":0,"embedding":"AACAPw=="}]}`
	cfg, server := startFake(t, fakeserver.Options{})
	server.Always(&fakeserver.Fault{Body: body})
	cfg.Dims = 1
	for limit, want := range map[int64]error{int64(len(body)): nil, int64(len(body)) - 1: embedding.ErrBadAnswer} {
		cfg.MaxResponseBytes = limit
		if _, _, err := newClient(t, cfg).Embed(t.Context(), []string{"text"}); !errors.Is(err, want) {
			t.Errorf("limit of %d bytes: got %v, want %v", limit, err, want)
		}
	}
}

// A count of tokens that cannot be would hold up everyone for as long as the limit on tokens takes to make up for it.
func TestACountOfTokensThatCannotBeIsNone(t *testing.T) {
	t.Parallel()
	cfg, server := startFake(t, fakeserver.Options{})
	cfg.Dims = 1
	for said, want := range map[string]int{"7": 7, "-7": 0, "9000000000000000000": 0} {
		server.Always(&fakeserver.Fault{Body: `{"data":[{"index":0,"embedding":"AACAPw=="}],"usage":{"total_tokens":` + said + `}}`})
		if _, usage, err := newClient(t, cfg).Embed(t.Context(), []string{"some text"}); err != nil || usage.Tokens != want {
			t.Errorf("%s tokens: got %d, %v, want %d", said, usage.Tokens, err, want)
		}
	}
}
