package embedder_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/embedder"
)

func (w *world) query(ctx context.Context, in messages.EmbedRequest) (messages.EmbedReply, error) {
	var out messages.EmbedReply
	err := bus.Call(ctx, w.nc, messages.SubjectEmbed, nil, in, &out)
	return out, err
}

func queryOf(texts ...string) messages.EmbedRequest {
	return messages.EmbedRequest{Space: messages.Space(embedding.DefaultSpace()), Texts: texts}
}

func TestQueriesAreEmbeddedAndCached(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{}, nil)
	got, err := w.query(t.Context(), queryOf("height of the weir", "第二"))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"query: height of the weir", "query: 第二"} {
		if string(got.Vectors[i]) != string(embedding.EncodeVector(embedding.Fake{}.Vector(text))) {
			t.Errorf("vector %d is not that of %q", i, text)
		}
	}
	before := w.fake.Requests()
	if _, err := w.query(t.Context(), queryOf("第二")); err != nil || w.fake.Requests() != before || got.Tokens == 0 {
		t.Errorf("error %v, %d requests for a known query, %d tokens", err, w.fake.Requests()-before, got.Tokens)
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{Poison: "poison"}, nil)
	other := queryOf("x")
	other.Space.Dims = 100
	bad := queryOf("x")
	bad.Space.Metric = "none"
	for _, c := range []struct {
		name   string
		in     messages.EmbedRequest
		fault  *fakeserver.Fault
		want   messages.Code
		within time.Duration // 0: as long as it takes
	}{
		{"no texts", queryOf(), nil, messages.CodeValidation, 0},
		{"empty text", queryOf("a", ""), nil, messages.CodeValidation, 0},
		{"too many texts", queryOf(strings.Split(strings.Repeat("a,", 64)+"a", ",")...), nil, messages.CodeValidation, 0},
		{"bad space", bad, nil, messages.CodeValidation, 0},
		{"rejected", queryOf("poison"), nil, messages.CodeEmbeddingRejected, 0},
		{"other dimension", other, nil, messages.CodeDimensionMismatch, 0},
		{"outage", queryOf("y"), &fakeserver.Fault{Status: 503}, messages.CodeEmbeddingUnavailable, 0},
		{"slow", queryOf("z"), &fakeserver.Fault{Hang: true}, messages.CodeDeadlineExceeded, 500 * time.Millisecond},
		// last: it makes everyone wait
		{"throttled beyond the deadline", queryOf("w"), &fakeserver.Fault{Status: 429, RetryAfter: "600"}, messages.CodeEmbeddingUnavailable, 0},
	} {
		w.fake.Always(c.fault)
		ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.within, testkit.Patience))
		_, err := w.query(ctx, c.in)
		cancel()
		w.fake.Always(nil)
		if e, ok := messages.AsError(err); !ok || e.Code != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestQueryGoesAheadOfWork(t *testing.T) {
	t.Parallel()
	fake, release, held := fakeserver.New(fakeserver.Options{}), make(chan struct{}), make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.Contains(string(body), "held work") {
			select {
			case held <- struct{}{}:
			default:
			}
			<-release
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fake.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w := start(t, fakeserver.Options{}, func(c *embedder.Config) { c.InFlight, c.BaseURL, c.RequestTimeout = 2, srv.URL+"/v1", testkit.Patience })
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	var all []messages.EmbedWork
	for _, doc := range strings.Split("a b c d e f g h i j k l m n o p", " ") {
		texts := make([]string, 40) // too many for two messages to share a request
		for i := range texts {
			texts[i] = fmt.Sprintf("passage: held work %s %d", doc, i)
		}
		all = append(all, message(doc, texts...))
	}
	w.publish(all...)
	<-held
	if _, err := w.query(t.Context(), queryOf("now")); err != nil {
		t.Fatal(err)
	}
	w.stored(messages.StreamIndex, 0)
	letGo()
	w.stored(messages.StreamIndex, 16)
}

func TestUnknownModel(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{}, func(c *embedder.Config) {
		c.Providers = embedder.Providers{{Models: []string{c.Model}, BaseURL: c.BaseURL}}
		c.BaseURL = ""
	})
	in := queryOf("x")
	if _, err := w.query(t.Context(), in); err != nil {
		t.Errorf("a listed model: %v", err)
	}
	in.Space.Model = "other"
	_, err := w.query(t.Context(), in)
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeEmbedModelNotFound {
		t.Errorf("got %v, want EMBED_MODEL_NOT_FOUND", err)
	}
}
