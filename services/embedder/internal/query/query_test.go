package query_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/embedder/internal/query"
)

// slow is an Embedder that takes its time.
type slow struct {
	takes time.Duration
	calls int
}

var _ query.Embedder = (*slow)(nil)

func (s *slow) Embed(ctx context.Context, _ embedding.Space, lane embedding.Lane, texts []string) (embedding.Result, error) {
	s.calls++
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return embedding.Result{}, ctx.Err()
	}
	var r embedding.Result
	for _, t := range texts {
		r.Vectors = append(r.Vectors, embedding.Fake{}.Vector(t))
	}
	r.Usage.Tokens = int(lane) + 7 // 7 for the interactive lane
	return r, nil
}

func TestOneWithMoreTimeIsNotCutShortByOneWithLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, provider := embedding.NewCache(embedding.CacheConfig{}), &slow{takes: 3 * time.Second}
		h := query.New(func(string) (query.Embedder, error) { return provider, nil }, cache)
		ask := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			reply, err := h.Handle(ctx, messages.EmbedRequest{Space: messages.Space(embedding.DefaultSpace()), Texts: []string{"same"}})
			if err == nil && (len(reply.Vectors) != 1 || reply.Tokens != 7) {
				t.Errorf("got %d vectors, %d tokens", len(reply.Vectors), reply.Tokens)
			}
			return err
		}
		short := make(chan error, 1)
		go func() { short <- ask(time.Second) }()
		synctest.Wait()
		if err := ask(10 * time.Second); err != nil {
			t.Errorf("the one with ten seconds: %v", err)
		}
		if e, ok := messages.AsError(<-short); !ok || e.Code != messages.CodeDeadlineExceeded {
			t.Errorf("the one with one second: %v", e)
		}
		if provider.calls != 2 {
			t.Errorf("%d calls, want 2", provider.calls)
		}
		cache.Close()
	})
}
