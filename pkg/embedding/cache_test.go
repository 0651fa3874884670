package embedding_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
)

// compute embeds with the fake and counts texts; wait is its duration.
func compute(n *atomic.Int64, wait time.Duration) embedding.ComputeFunc {
	return func(ctx context.Context, texts []string) (embedding.Result, error) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return embedding.Result{}, ctx.Err()
		}
		var r embedding.Result
		for _, t := range texts {
			n.Add(1)
			r.Vectors = append(r.Vectors, embedding.Fake{Dims: 4}.Vector(t))
		}
		return r, nil
	}
}

func TestCacheComputesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := embedding.NewCache(embedding.CacheConfig{}), embedding.DefaultSpace()
		var n atomic.Int64
		done := make(chan error)
		for range 8 {
			go func() {
				v, _, err := c.Embed(t.Context(), s, []string{"a", "b", "a"}, compute(&n, time.Second))
				if err == nil && (len(v) != 3 || v[0] == nil || v[1] == nil || &v[0][0] != &v[2][0]) {
					err = errors.New("not the vectors asked for")
				}
				done <- err
			}()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		_, hits, err := c.Embed(t.Context(), s, []string{"b", "c"}, compute(&n, time.Second))
		if err != nil || hits != 1 || n.Load() != 3 {
			t.Errorf("hits %d, %d texts computed, error %v; want 1, 3", hits, n.Load(), err)
		}
		other := s
		other.QueryPrefix = "q: "
		if _, hits, _ := c.Embed(t.Context(), other, []string{"b"}, compute(&n, 0)); hits != 0 {
			t.Error("a vector of another space was given")
		}
	})
}

func TestCacheFirstCallerMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := embedding.NewCache(embedding.CacheConfig{}), embedding.DefaultSpace()
		var n atomic.Int64
		first, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() {
			_, _, err := c.Embed(first, s, []string{"a"}, compute(&n, time.Second))
			errs <- err
		}()
		synctest.Wait()
		second := make(chan error, 1)
		go func() {
			_, _, err := c.Embed(t.Context(), s, []string{"a"}, compute(&n, time.Second))
			second <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("first: got %v", err)
		}
		if err := <-second; err != nil || n.Load() != 1 {
			t.Errorf("second: got %v, %d texts computed", err, n.Load())
		}
	})
}

func TestCacheCancelsWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := embedding.NewCache(embedding.CacheConfig{}), embedding.DefaultSpace()
		var n atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, _, err := c.Embed(ctx, s, []string{"a"}, compute(&n, time.Hour))
		c.Close()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second || n.Load() != 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		if _, _, err := c.Embed(t.Context(), s, []string{"a"}, compute(&n, 0)); err != nil {
			t.Errorf("the abandoned computation spoiled the next: %v", err)
		}
	})
}

func TestCacheKeepsNoFailure(t *testing.T) {
	t.Parallel()
	c, s := embedding.NewCache(embedding.CacheConfig{}), embedding.DefaultSpace()
	boom := errors.New("boom")
	for _, f := range []embedding.ComputeFunc{
		func(context.Context, []string) (embedding.Result, error) { return embedding.Result{}, boom },
		func(context.Context, []string) (embedding.Result, error) { panic("boom") },
		func(context.Context, []string) (embedding.Result, error) {
			return embedding.Result{Vectors: make([][]float32, 1), Rejected: map[int]error{0: boom}}, nil
		},
		func(context.Context, []string) (embedding.Result, error) { return embedding.Result{}, nil },
	} {
		if _, _, err := c.Embed(t.Context(), s, []string{"a"}, f); err == nil {
			t.Error("no error")
		}
	}
	var n atomic.Int64
	if _, _, err := c.Embed(t.Context(), s, []string{"a"}, compute(&n, 0)); err != nil || n.Load() != 1 {
		t.Errorf("got %v, %d computed", err, n.Load())
	}
	c.Close()
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c, s := embedding.NewCache(embedding.CacheConfig{Entries: 10}), embedding.DefaultSpace()
	small := embedding.NewCache(embedding.CacheConfig{Bytes: 1000})
	var n atomic.Int64
	for i := range 100 {
		for _, cache := range []*embedding.Cache{c, small} {
			if _, _, err := cache.Embed(t.Context(), s, []string{strconv.Itoa(i)}, compute(&n, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.Len() != 10 || small.Len() == 0 || small.Len() > 4 {
		t.Errorf("kept %d and %d entries", c.Len(), small.Len())
	}
	if _, hits, _ := c.Embed(t.Context(), s, []string{"99"}, compute(&n, 0)); hits != 1 {
		t.Error("the newest entry is gone")
	}
	c.Close()
	small.Close()
}
