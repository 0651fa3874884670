package commit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/indexer/internal/commit"
)

func sizes(groups [][]int64) []int {
	out := make([]int, len(groups))
	for i, g := range groups {
		out[i] = len(g)
	}
	return out
}

// commitAll commits versions of one chunk at once, and returns their errors by key.
func commitAll(t *testing.T, c *commit.Committer, generation int64, n int) []error {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for key := range int64(n) {
		wg.Go(func() { _, errs[key] = c.Commit(t.Context(), generation, version(key), 1) })
	}
	wg.Wait()
	return errs
}

func TestAGroupIsCutAtItsNumberOfDocuments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{swap: func(_ context.Context, finished []pgstore.Finished) (res pgstore.SwapResult, _ error) {
			time.Sleep(time.Millisecond)
			return res, nil
		}}
		c := commit.New(s, commit.Limits{Docs: 4, Wait: time.Hour}, nil)
		defer c.Close()
		begin := time.Now()
		if err := errors.Join(commitAll(t, c, 1, 4)...); err != nil {
			t.Fatal(err)
		}
		if got := sizes(s.groups); !slices.Equal(got, []int{4}) || time.Since(begin) > time.Second {
			t.Errorf("got groups of %v after %s, want one of 4 at once", got, time.Since(begin))
		}
	})
}

// counting is a store whose transactions take a second, and how many ran at once at most.
func counting() (s *store, most *int) {
	running := 0
	s, most = &store{}, new(int)
	s.swap = func(context.Context, []pgstore.Finished) (pgstore.SwapResult, error) {
		s.mu.Lock()
		running++
		*most = max(*most, running)
		s.mu.Unlock()
		time.Sleep(time.Second)
		s.mu.Lock()
		running--
		s.mu.Unlock()
		return pgstore.SwapResult{}, nil
	}
	return s, most
}

func TestWhatComesDuringATransactionSharesTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, most := counting()
		c := commit.New(s, commit.Limits{Docs: 6, Wait: 10 * time.Millisecond}, nil)
		defer c.Close()
		var wg sync.WaitGroup
		for key := range int64(7) { // two come at once, the others while those are under way
			wg.Go(func() {
				if key >= 2 {
					time.Sleep(time.Duration(key) * 20 * time.Millisecond)
				}
				if _, err := c.Commit(t.Context(), 1, version(key), 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := sizes(s.groups); !slices.Equal(got, []int{2, 5}) || *most != 1 {
			t.Errorf("got groups of %v, %d at once; want 2 and then 5, one at a time", got, *most)
		}
	})
}

func TestAFullGroupDoesNotWaitForOneOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, most := counting()
		c := commit.New(s, commit.Limits{Docs: 2}, nil)
		defer c.Close()
		begin := time.Now()
		if err := errors.Join(commitAll(t, c, 1, 6)...); err != nil {
			t.Fatal(err)
		}
		if got := sizes(s.groups); !slices.Equal(got, []int{2, 2, 2}) || *most != 2 || time.Since(begin) != 2*time.Second {
			t.Errorf("got groups of %v, %d at once, in %s; want three of 2, two at once, in 2s", got, *most, time.Since(begin))
		}
	})
}

// After a large transaction the next one waits for more to come, but not for more that does not come.
func TestAStreamThatPausesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		c := commit.New(s, commit.Limits{Docs: 100}, nil) // a full group, and a second until the next
		defer c.Close()
		if err := errors.Join(commitAll(t, c, 1, 100)...); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for key := range int64(10) {
			wg.Go(func() {
				time.Sleep(time.Duration(key) * 30 * time.Millisecond)
				if _, err := c.Commit(t.Context(), 1, version(key), 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := sizes(s.groups); !slices.Equal(got, []int{100, 10}) || time.Since(begin) > 330*time.Millisecond {
			t.Errorf("got groups of %v, the last after %s; want 100 and 10, soon after the tenth came", got, time.Since(begin))
		}
	})
}

func TestGenerationsNeverShareATransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{swap: func(context.Context, []pgstore.Finished) (res pgstore.SwapResult, _ error) {
			time.Sleep(time.Second)
			return res, nil
		}}
		c := commit.New(s, commit.Limits{}, nil)
		defer c.Close()
		begin := time.Now()
		var wg sync.WaitGroup
		for generation := range int64(3) {
			wg.Go(func() {
				if err := errors.Join(commitAll(t, c, generation, 2)...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := sizes(s.groups); !slices.Equal(got, []int{2, 2, 2}) || time.Since(begin) > 1500*time.Millisecond {
			t.Errorf("got groups of %v after %s, want three of two beside each other", got, time.Since(begin))
		}
	})
}

func TestAnOutageIsNotTriedAgainOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outage := fmt.Errorf("swap: %w", io.ErrUnexpectedEOF) // what pgstore.Retryable calls an outage
		s := &store{swap: func(context.Context, []pgstore.Finished) (res pgstore.SwapResult, err error) { return res, outage }}
		c := commit.New(s, commit.Limits{}, nil)
		defer c.Close()
		for key, err := range commitAll(t, c, 1, 3) {
			if !pgstore.Retryable(err) {
				t.Errorf("version %d: got %v, want the outage", key, err)
			}
		}
		if got := sizes(s.groups); !slices.Equal(got, []int{3}) {
			t.Errorf("got transactions of %v, want the one", got)
		}
	})
}

func TestOneWhoLeavesDoesNotSpoilItForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		c := commit.New(s, commit.Limits{Wait: time.Second}, nil)
		defer c.Close()
		gone := errors.New("no time left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, gone)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Commit(ctx, 1, version(1), 1); !errors.Is(err, gone) {
				t.Errorf("who left: got %v, want the cause", err)
			}
		})
		wg.Go(func() {
			if res, err := c.Commit(t.Context(), 1, version(2), 1); err != nil || len(res.Ready) != 1 {
				t.Errorf("who stayed: got %+v (%v), want it ready", res, err)
			}
		})
		wg.Wait()
		if got := sizes(s.groups); !slices.Equal(got, []int{2}) {
			t.Errorf("got groups of %v, want one of 2: the version is committed, whoever waits", got)
		}
	})
}

func TestAPanicFailsThatVersionOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{swap: func(_ context.Context, finished []pgstore.Finished) (res pgstore.SwapResult, _ error) {
			for _, f := range finished {
				if f.DocKey == 1 {
					panic("poison")
				}
			}
			return res, nil
		}}
		c := commit.New(s, commit.Limits{}, nil)
		defer c.Close()
		for key, err := range commitAll(t, c, 1, 3) {
			e, permanent := messages.AsError(err)
			if want := key == 1; permanent != want || want && e.Code != messages.CodeInternal {
				t.Errorf("version %d: got %v", key, err)
			}
		}
	})
}

func TestVersionsThatAreNotLiveAreNoError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{swap: func(context.Context, []pgstore.Finished) (pgstore.SwapResult, error) {
			return pgstore.SwapResult{Incomplete: []pgstore.Candidate{version(0).Candidate}, Lost: []pgstore.Candidate{version(1).Candidate}}, nil
		}}
		touched := false
		c := commit.New(s, commit.Limits{}, func(int64) { touched = true })
		defer c.Close()
		var wg sync.WaitGroup
		for key, want := range []commit.Result{{}, {Lost: true}} {
			wg.Go(func() {
				got, err := c.Commit(t.Context(), 1, version(int64(key)), 1)
				if err != nil || got.Lost != want.Lost || len(got.Ready) != 0 {
					t.Errorf("version %d: got %+v (%v), want %+v", key, got, err, want)
				}
			})
		}
		wg.Wait()
		if touched {
			t.Error("nothing went live, but a merge was asked for")
		}
	})
}

// A stream of documents makes few transactions, a document that comes alone waits for none.
func TestTransactionsKeepTheirDistanceUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{swap: func(context.Context, []pgstore.Finished) (res pgstore.SwapResult, _ error) { return res, nil }}
		c := commit.New(s, commit.Limits{Wait: 20 * time.Millisecond, Spacing: time.Second}, nil)
		defer c.Close()
		took := func(key int64) time.Duration {
			begin := time.Now()
			if _, err := c.Commit(t.Context(), 1, version(key), 1); err != nil {
				t.Error(err)
			}
			return time.Since(begin)
		}
		if d := took(0); d != 20*time.Millisecond {
			t.Errorf("the first took %s, want 20ms", d)
		}
		time.Sleep(time.Minute)
		if d := took(1); d != 20*time.Millisecond {
			t.Errorf("one that came alone took %s, want 20ms", d)
		}
		for key := range int64(5) {
			if d := took(2 + key); d != 20*time.Millisecond {
				t.Errorf("one after another: the %dth took %s, want 20ms", key, d)
			}
		}
		before := len(s.groups)
		var wg sync.WaitGroup
		for key := range int64(2000) { // two hundred a second
			wg.Go(func() { took(7 + key) })
			time.Sleep(5 * time.Millisecond)
		}
		wg.Wait()
		if got := len(s.groups) - before; got > 16 {
			t.Errorf("two thousand in ten seconds made %d transactions (%v), want at most 16", got, sizes(s.groups))
		}
	})
}
