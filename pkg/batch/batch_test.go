package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/batch"
	"github.com/weir-project/weir/pkg/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder serves numbers: it doubles them. A batch waits for the gate when there is one.
type recorder struct {
	mu      sync.Mutex
	batches [][]int
	gate    chan struct{}
	began   chan int
}

func (r *recorder) run(_ context.Context, in []int) ([]batch.Result[int], error) {
	r.mu.Lock()
	r.batches = append(r.batches, slices.Clone(in))
	r.mu.Unlock()
	if r.began != nil {
		r.began <- len(in)
	}
	if r.gate != nil {
		<-r.gate
	}
	out := make([]batch.Result[int], len(in))
	for i, n := range in {
		switch {
		case n == 13:
			return nil, errors.New("thirteen")
		case n == 66:
			panic("sixty-six")
		case n < 0:
			out[i].Err = errors.New("negative")
		default:
			out[i].Out = 2 * n
		}
	}
	return out, nil
}

// do runs calls at once and returns their results by number.
func do(t *testing.T, j *batch.Joiner[int, int], numbers ...int) (wait func() map[int]string) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[int]string{}
	for _, n := range numbers {
		wg.Go(func() {
			out, err := j.Do(context.Background(), n)
			mu.Lock()
			defer mu.Unlock()
			got[n] = fmt.Sprint(out)
			if p, ok := guard.Caught(err); ok {
				got[n] = fmt.Sprint("panic: ", p.Value)
			} else if err != nil {
				got[n] = err.Error()
			}
		})
	}
	return func() map[int]string { wg.Wait(); return got }
}

func TestCallsThatComeWhileOthersRunGoTogether(t *testing.T) {
	r := &recorder{gate: make(chan struct{}), began: make(chan int, 10)}
	j := batch.New(batch.Config[int]{Parallel: 1, Max: 3}, r.run)
	first := do(t, j, 1)
	if n := <-r.began; n != 1 {
		t.Fatalf("first batch: got %d calls, want 1", n)
	}
	rest := do(t, j, 2, 3, 4, 5)
	for j.Waiting() < 4 {
		time.Sleep(time.Millisecond) // a poll: nothing tells that a call waits
	}
	for range 3 {
		r.gate <- struct{}{}
	}
	if got := first()[1]; got != "2" {
		t.Errorf("first: got %s, want 2", got)
	}
	for n, got := range rest() {
		if got != fmt.Sprint(2*n) {
			t.Errorf("%d: got %s, want %d", n, got, 2*n)
		}
	}
	var sizes []int
	for _, b := range r.batches {
		sizes = append(sizes, len(b))
	}
	if !slices.Equal(sizes, []int{1, 3, 1}) {
		t.Errorf("batches: got %v, want 1, 3 and 1 calls", sizes)
	}
}

func TestCallsThatComeOneByOneDoNotLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		j := batch.New(batch.Config[int]{Linger: time.Second, Max: 2}, r.run)
		begin := time.Now()
		for n := range 3 {
			do(t, j, n)()
		}
		r.gate = make(chan struct{})
		held := do(t, j, 3, 4, 5) // the first alone, the others together
		synctest.Wait()
		close(r.gate)
		held()
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("calls that found nothing under way waited %s", waited)
		}
		do(t, j, 6)() // after a batch of several
		do(t, j, 7)() // and after one of one
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("a call after a batch of several, and one more, took %s, want a second", waited)
		}
	})
}

func TestABatchStaysWithinItsCost(t *testing.T) {
	r := &recorder{gate: make(chan struct{}), began: make(chan int, 10)}
	j := batch.New(batch.Config[int]{Parallel: 1, Cost: func(n int) int64 { return int64(n) }, MaxCost: 10}, r.run)
	wait := do(t, j, 1)
	<-r.began
	rest := do(t, j, 50, 50, 50)
	for j.Waiting() < 3 {
		time.Sleep(time.Millisecond) // a poll: nothing tells that a call waits
	}
	close(r.gate)
	wait()
	rest()
	for _, b := range r.batches {
		if len(b) != 1 {
			t.Errorf("batch: got %v, want each alone", b)
		}
	}
}

func TestOneThatFailsDoesNotFailTheOthers(t *testing.T) {
	for _, bad := range []int{13, 66} {
		r := &recorder{gate: make(chan struct{}), began: make(chan int, 10)}
		j := batch.New(batch.Config[int]{Parallel: 1}, r.run)
		first := do(t, j, 1)
		<-r.began
		rest := do(t, j, 2, bad, -3)
		for j.Waiting() < 3 {
			time.Sleep(time.Millisecond) // a poll: nothing tells that a call waits
		}
		close(r.gate)
		first()
		got := rest()
		want := map[int]string{13: "thirteen", 66: "panic: sixty-six"}[bad]
		if got[2] != "4" || got[bad] != want || got[-3] != "negative" {
			t.Errorf("got %v, want 4, %q and negative", got, want)
		}
	}
}

func TestACallerThatGivesUpLeavesTheOthers(t *testing.T) {
	r := &recorder{gate: make(chan struct{}), began: make(chan int, 10)}
	j := batch.New(batch.Config[int]{Parallel: 1}, r.run)
	first := do(t, j, 1)
	<-r.began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Do(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	close(r.gate)
	if got := first()[1]; got != "2" {
		t.Errorf("got %s, want 2", got)
	}
	if got := do(t, j, 5)()[5]; got != "10" {
		t.Errorf("afterwards: got %s, want 10", got)
	}
}

func TestErrorsThatAreNotSplitAreEverybodys(t *testing.T) {
	r := &recorder{gate: make(chan struct{}), began: make(chan int, 10)}
	j := batch.New(batch.Config[int]{Parallel: 1, Split: func(error) bool { return false }}, r.run)
	first := do(t, j, 1)
	<-r.began
	rest := do(t, j, 2, 13)
	for j.Waiting() < 2 {
		time.Sleep(time.Millisecond) // a poll: nothing tells that a call waits
	}
	close(r.gate)
	first()
	if got := rest(); got[2] != "thirteen" || got[13] != "thirteen" {
		t.Errorf("got %v, want the error for both", got)
	}
}

// A batch that is not full lingers for company while another is under way, and no longer than that.
func TestABatchLingersWhileAnotherIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{gate: make(chan struct{}), began: make(chan int, 10)}
		j := batch.New(batch.Config[int]{Max: 3, Parallel: 4, Linger: 5 * time.Millisecond}, r.run)
		begun := func(want ...int) {
			t.Helper()
			synctest.Wait()
			for _, n := range want {
				if len(r.began) == 0 {
					t.Fatalf("no batch of %d calls has begun", n)
				}
				if got := <-r.began; got != n {
					t.Fatalf("batch: got %d calls, want %d", got, n)
				}
			}
			if len(r.began) > 0 {
				t.Fatal("a batch began too early")
			}
		}
		waits := []func() map[int]string{do(t, j, 1)}
		begun(1) // nothing else is under way
		waits = append(waits, do(t, j, 2))
		time.Sleep(4 * time.Millisecond)
		begun()
		waits = append(waits, do(t, j, 3))
		begun()
		time.Sleep(time.Millisecond)
		begun(2) // the second call has lingered
		waits = append(waits, do(t, j, 4, 5, 6))
		begun(3)
		waits = append(waits, do(t, j, 7))
		begun()
		r.gate <- struct{}{}
		r.gate <- struct{}{}
		begun() // one is under way still
		r.gate <- struct{}{}
		begun() // the last was of several
		time.Sleep(5 * time.Millisecond)
		begun(1)
		close(r.gate)
		for _, wait := range waits {
			for n, got := range wait() {
				if got != fmt.Sprint(2*n) {
					t.Errorf("%d: got %s, want %d", n, got, 2*n)
				}
			}
		}
	})
}

// What calls held is not kept by a joiner that waits for the next.
func TestAnIdleJoinerKeepsNothing(t *testing.T) {
	t.Parallel()
	j := batch.New(batch.Config[*[1 << 20]byte]{}, func(_ context.Context, calls []*[1 << 20]byte) ([]batch.Result[int], error) {
		return make([]batch.Result[int], len(calls)), nil
	})
	in := new([1 << 20]byte)
	gone := make(chan struct{})
	runtime.AddCleanup(in, func(c chan struct{}) { close(c) }, gone)
	if _, err := j.Do(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	in = nil
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(j)
			return
		case <-time.After(10 * time.Millisecond): // the batch ends, and cleanups run, a moment later
		}
	}
	t.Error("the call's input is still there")
	runtime.KeepAlive(j)
}
