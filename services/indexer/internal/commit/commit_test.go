package commit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/indexer/internal/commit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store swaps everything, unless swap says otherwise, and remembers the groups.
type store struct {
	swap func(ctx context.Context, finished []pgstore.Finished) (pgstore.SwapResult, error)

	mu     sync.Mutex
	groups [][]int64
}

var _ commit.Store = (*store)(nil)

func (s *store) SwapVersions(ctx context.Context, _ int64, finished []pgstore.Finished) (pgstore.SwapResult, error) {
	var res pgstore.SwapResult
	var keys []int64
	for _, f := range finished {
		res.Swapped = append(res.Swapped, f.Candidate)
		keys = append(keys, f.DocKey)
	}
	s.mu.Lock()
	s.groups = append(s.groups, keys)
	s.mu.Unlock()
	if s.swap != nil {
		return s.swap(ctx, finished)
	}
	return res, nil
}

func (s *store) ReadyOf(_ context.Context, candidates []pgstore.Candidate) ([]pgstore.Ready, error) {
	var out []pgstore.Ready
	for _, c := range candidates {
		out = append(out, pgstore.Ready{Candidate: c, SubmitID: fmt.Sprint("m", c.DocKey)})
	}
	return out, nil
}

func version(key int64) pgstore.Finished {
	return pgstore.Finished{Candidate: pgstore.Candidate{DocKey: key, Version: 1}}
}

func TestVersionsFinishedTogetherShareATransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		swapped := 0
		c := commit.New(s, commit.Limits{}, func(int64) { swapped++ })
		defer c.Close()
		var wg sync.WaitGroup
		for key := range int64(5) {
			wg.Go(func() {
				res, err := c.Commit(t.Context(), 1, version(key), 1)
				if err != nil || len(res.Ready) != 1 || res.Ready[0].SubmitID != fmt.Sprint("m", key) {
					t.Errorf("version %d: got %+v, %v", key, res, err)
				}
			})
		}
		wg.Wait()
		if len(s.groups) != 1 || len(s.groups[0]) != 5 || swapped != 1 {
			t.Errorf("groups: got %v and %d calls, want one of five", s.groups, swapped)
		}
	})
}

func TestAFullGroupDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := commit.New(&store{}, commit.Limits{Chunks: 10, Wait: time.Hour}, nil)
		defer c.Close()
		begin := time.Now()
		if _, err := c.Commit(t.Context(), 1, version(1), 10); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited > time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestAFailingVersionFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("bad row")
		s := &store{swap: func(_ context.Context, finished []pgstore.Finished) (res pgstore.SwapResult, err error) {
			if slices.ContainsFunc(finished, func(f pgstore.Finished) bool { return f.DocKey == 2 }) {
				return res, bad
			}
			res.Swapped = []pgstore.Candidate{finished[0].Candidate}
			return res, nil
		}}
		c := commit.New(s, commit.Limits{}, nil)
		defer c.Close()
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for key := range int64(4) {
			wg.Go(func() { _, errs[key] = c.Commit(t.Context(), 1, version(key), 1) })
		}
		wg.Wait()
		for key, err := range errs {
			if want := key == 2; errors.Is(err, bad) != want {
				t.Errorf("version %d: got %v", key, err)
			}
		}
	})
}

func TestCloseEndsATransactionNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{swap: func(ctx context.Context, _ []pgstore.Finished) (pgstore.SwapResult, error) {
			<-ctx.Done()
			return pgstore.SwapResult{}, ctx.Err()
		}}
		c := commit.New(s, commit.Limits{Docs: 1}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Commit(ctx, 1, version(1), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the deadline", err)
		}
		begin := time.Now()
		c.Close()
		if waited := time.Since(begin); waited > time.Second {
			t.Errorf("close waited %s for a transaction that hangs", waited)
		}
		if _, err := c.Commit(t.Context(), 1, version(2), 1); !errors.Is(err, commit.ErrClosed) {
			t.Errorf("after close: got %v, want ErrClosed", err)
		}
	})
}

func TestCloseReleasesThoseThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := commit.New(&store{}, commit.Limits{Wait: time.Hour}, nil)
		done := make(chan error, 1)
		go func() {
			_, err := c.Commit(t.Context(), 1, version(1), 1)
			done <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-done; !errors.Is(err, commit.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}
