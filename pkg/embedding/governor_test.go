package embedding_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
)

func newGovernor(t *testing.T, cfg embedding.GovernorConfig) *embedding.Governor {
	t.Helper()
	g, err := embedding.NewGovernor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func acquire(t *testing.T, g *embedding.Governor, lane embedding.Lane, tokens int) *embedding.Permit {
	t.Helper()
	p, err := g.Acquire(t.Context(), lane, tokens)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ok() embedding.Outcome {
	return embedding.Outcome{Limits: embedding.Limits{RemainingRequests: -1, RemainingTokens: -1}}
}

func failed(kind error, after time.Duration) embedding.Outcome {
	o := ok()
	o.Err = &embedding.Error{Kind: kind, RetryAfter: after}
	return o
}

func TestGovernorQueryPassesWaitingWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{InFlight: 1})
		first := acquire(t, g, embedding.Batch, 1)
		var mu sync.Mutex
		var order []embedding.Lane
		enter := func(lane embedding.Lane) {
			p := acquire(t, g, lane, 1)
			mu.Lock()
			order = append(order, lane)
			mu.Unlock()
			time.Sleep(time.Second) // the bubble's clock: the request's own duration
			p.Done(ok())
		}
		for range 5 {
			go enter(embedding.Batch)
		}
		synctest.Wait()
		go enter(embedding.Interactive)
		synctest.Wait()
		first.Done(ok())
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 1 || order[0] != embedding.Interactive {
			t.Errorf("after the one in flight went %v, want the query", order)
		}
		mu.Unlock()
		time.Sleep(10 * time.Second)
		mu.Lock()
		if len(order) != 6 {
			t.Errorf("%d of 6 requests went through", len(order))
		}
	})
}

func TestGovernorKeepsAPlaceForQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{InFlight: 3})
		a, b := acquire(t, g, embedding.Batch, 1), acquire(t, g, embedding.Batch, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Acquire(ctx, embedding.Batch, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("third batch request: got %v, want it to wait", err)
		}
		start := time.Now()
		q := acquire(t, g, embedding.Interactive, 1)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the query waited %v", waited)
		}
		for _, p := range []*embedding.Permit{a, b, q} {
			p.Done(ok())
		}
		if s := g.Stats(); s.InFlight != 0 || s.WaitingWork != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

func TestGovernorRatePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{RequestsPerMinute: 60})
		start, n := time.Now(), 0
		for time.Since(start) < 5*time.Minute {
			acquire(t, g, embedding.Batch, 1).Done(ok())
			n++
		}
		if n < 300 || n > 312 { // a burst of ten seconds, then one a second
			t.Errorf("%d requests in five minutes at 60 a minute", n)
		}
	})
}

func TestGovernorTokensPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{TokensPerMinute: 6000})
		start := time.Now()
		for range 10 { // 2,000 tokens each, more than the burst of 1,000, and counted as 3,000 by the provider
			o := ok()
			o.Tokens = 3000
			acquire(t, g, embedding.Batch, 2000).Done(o)
		}
		if got := time.Since(start); got < 4*time.Minute || got > 5*time.Minute+time.Second {
			t.Errorf("30,000 tokens at 6,000 a minute took %v", got)
		}
	})
}

func TestGovernorRetryAfterHoldsEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held time.Duration
		g := newGovernor(t, embedding.GovernorConfig{Hooks: embedding.Hooks{Held: func(d time.Duration) { held = d }}})
		acquire(t, g, embedding.Batch, 1).Done(failed(embedding.ErrThrottled, 7*time.Second))
		if held != 7*time.Second {
			t.Errorf("hook told %v", held)
		}
		start := time.Now()
		acquire(t, g, embedding.Interactive, 1).Done(ok())
		if got := time.Since(start); got < 7*time.Second || got > 7*time.Second+10*time.Millisecond {
			t.Errorf("a query waited %v, want 7s", got)
		}
	})
}

func TestGovernorTellsAtOnceWhenTheWaitIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{})
		acquire(t, g, embedding.Batch, 1).Done(failed(embedding.ErrThrottled, time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := g.Acquire(ctx, embedding.Interactive, 1)
		if !errors.Is(err, embedding.ErrThrottled) || time.Since(start) != 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		if got := embedding.RetryAfter(err); got != time.Minute {
			t.Errorf("retry after %v, want 1m", got)
		}
	})
}

func TestGovernorObeysAnnouncedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{})
		o := ok()
		o.Limits = embedding.Limits{RemainingRequests: 0, ResetRequests: 3 * time.Second, RemainingTokens: -1}
		acquire(t, g, embedding.Batch, 1).Done(o)
		start := time.Now()
		acquire(t, g, embedding.Batch, 1).Done(ok())
		if got := time.Since(start); got < 3*time.Second {
			t.Errorf("waited %v, want 3s", got)
		}
	})
}

func TestGovernorHalvesAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{InFlight: 8})
		var permits []*embedding.Permit
		for range 6 {
			permits = append(permits, acquire(t, g, embedding.Batch, 1))
		}
		time.Sleep(time.Millisecond)
		for _, p := range permits { // all sent before the first refusal: one lesson, not six
			p.Done(failed(embedding.ErrThrottled, time.Millisecond))
		}
		if got := g.Stats().Limit; got != 4 {
			t.Errorf("limit %d after a refusal, want 4", got)
		}
		for range 4 + 5 + 6 + 7 {
			acquire(t, g, embedding.Batch, 1).Done(ok())
		}
		if got := g.Stats().Limit; got != 8 {
			t.Errorf("limit %d after success, want 8", got)
		}
	})
}

func TestGovernorWaiterThatLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(t, embedding.GovernorConfig{InFlight: 1})
		p := acquire(t, g, embedding.Batch, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := g.Acquire(ctx, embedding.Interactive, 1)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		p.Done(ok())
		acquire(t, g, embedding.Batch, 1).Done(ok())
	})
}
