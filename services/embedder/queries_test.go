package embedder_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
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
		name  string
		in    messages.EmbedRequest
		fault *fakeserver.Fault
		want  messages.Code
	}{
		{"no texts", queryOf(), nil, messages.CodeValidation},
		{"empty text", queryOf("a", ""), nil, messages.CodeValidation},
		{"too many texts", queryOf(strings.Split(strings.Repeat("a,", 64)+"a", ",")...), nil, messages.CodeValidation},
		{"bad space", bad, nil, messages.CodeValidation},
		{"rejected", queryOf("poison"), nil, messages.CodeEmbeddingRejected},
		{"other dimension", other, nil, messages.CodeDimensionMismatch},
		{"outage", queryOf("y"), &fakeserver.Fault{Status: 503}, messages.CodeEmbeddingUnavailable},
		{"slow", queryOf("z"), &fakeserver.Fault{Hang: true}, messages.CodeDeadlineExceeded},
		// last: it makes everyone wait
		{"throttled beyond the deadline", queryOf("w"), &fakeserver.Fault{Status: 429, RetryAfter: "5"}, messages.CodeEmbeddingUnavailable},
	} {
		w.fake.Always(c.fault)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
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
	w := start(t, fakeserver.Options{Latency: 100 * time.Millisecond}, func(c *embedder.Config) { c.InFlight = 2 })
	var all []messages.EmbedWork
	for _, doc := range strings.Split("a b c d e f g h i j k l m n o p", " ") {
		texts := make([]string, 40) // too many for two messages to share a request
		for i := range texts {
			texts[i] = fmt.Sprintf("passage: %s %d", doc, i)
		}
		all = append(all, message(doc, texts...))
	}
	w.publish(all...)
	w.stored(messages.StreamIndex, 1)
	started := time.Now()
	if _, err := w.query(t.Context(), queryOf("now")); err != nil {
		t.Fatal(err)
	}
	s, err := w.js.Stream(t.Context(), messages.StreamIndex)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n > 8 {
		t.Errorf("the query took %v and came after %d of 16 messages", time.Since(started), n)
	}
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
