// Package batch joins calls that come while others are under way, so that one transaction or request serves
// many. A call that finds nothing under way goes at once and alone: joining costs no waiting, unless Config.Linger says so.
package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/guard"
)

// Result is what became of one call.
type Result[Out any] struct {
	Out Out
	Err error
}

// Config bounds batches. The zero value means the defaults.
type Config[In any] struct {
	Max      int            // calls of a batch; 0: 64
	Cost     func(In) int64 // of a call, in the caller's unit, asked once; nil: nothing
	MaxCost  int64          // of a batch, but for one call that costs more; 0: no limit
	Parallel int            // batches under way at once; 0: 2
	Timeout  time.Duration  // of a batch; 0: 60 s
	// Linger is how long a batch that is not full may wait for more calls where they come densely: while another is under
	// way, and after one of several calls; 0: not at all.
	Linger time.Duration
	// Split reports that the calls of a batch that failed whole with this error are to be run one by one, so
	// that one that fails does not fail the others. nil: every error but the end of the time. A panic is an error, a guard.Panic.
	Split func(error) bool
}

func (c Config[In]) withDefaults() Config[In] {
	if c.Max == 0 {
		c.Max = 64
	}
	if c.Parallel == 0 {
		c.Parallel = 2
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.Split == nil {
		c.Split = func(err error) bool {
			return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
		}
	}
	return c
}

// Func serves a batch: a result for each call, in their order, or an error of all. Its context outlives
// those of the calls.
type Func[In, Out any] func(ctx context.Context, calls []In) ([]Result[Out], error)

// Joiner joins calls. Safe for concurrent use.
type Joiner[In, Out any] struct {
	cfg Config[In]
	run Func[In, Out]

	mu      sync.Mutex
	waiting []call[In, Out]
	busy    int
	dense   bool // the last batch was of several calls
	alarm   bool // start is called when the waiting have lingered
}

type call[In, Out any] struct {
	in    In
	cost  int64
	since time.Time
	done  chan Result[Out]
}

// New returns a joiner over run.
func New[In, Out any](cfg Config[In], run Func[In, Out]) *Joiner[In, Out] {
	return &Joiner[In, Out]{cfg: cfg.withDefaults(), run: run}
}

// Do runs a call together with others and waits for its result. When ctx ends first the call may still take
// effect: calls must be idempotent.
func (j *Joiner[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	c := call[In, Out]{in: in, since: time.Now(), done: make(chan Result[Out], 1)}
	if j.cfg.Cost != nil {
		c.cost = j.cfg.Cost(in)
	}
	j.mu.Lock()
	j.waiting = append(j.waiting, c)
	j.start()
	j.mu.Unlock()
	select {
	case r := <-c.done:
		return r.Out, r.Err
	case <-ctx.Done():
		var none Out
		return none, fmt.Errorf("wait for batch: %w", context.Cause(ctx))
	}
}

// start runs what waits, as long as another batch may be under way and is full or has lingered. j.mu is held.
func (j *Joiner[In, Out]) start() {
	for j.busy < j.cfg.Parallel && len(j.waiting) > 0 {
		n, full := j.fitting()
		if left := j.cfg.Linger - time.Since(j.waiting[0].since); (j.busy > 0 || j.dense) && !full && left > 0 {
			j.startIn(left)
			return
		}
		calls := j.waiting[:n:n]
		j.waiting = j.waiting[n:]
		j.dense = n > 1
		j.busy++
		go func() {
			j.serve(calls)
			clear(calls) // their memory is that of waiting, which would keep what they held
			j.mu.Lock()
			defer j.mu.Unlock()
			j.busy--
			j.start()
		}()
	}
}

// startIn looks again after a while, unless that is to come already: calls that have waited longer come first. j.mu is held.
func (j *Joiner[In, Out]) startIn(d time.Duration) {
	if j.alarm {
		return
	}
	j.alarm = true
	time.AfterFunc(d, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.alarm = false
		j.start()
	})
}

// fitting is how many of the waiting calls make the next batch, at least one, and whether no other fits.
func (j *Joiner[In, Out]) fitting() (n int, full bool) {
	most := min(len(j.waiting), j.cfg.Max)
	if j.cfg.MaxCost == 0 {
		return most, most == j.cfg.Max
	}
	cost := j.waiting[0].cost
	for n := 1; n < most; n++ {
		if cost += j.waiting[n].cost; cost > j.cfg.MaxCost {
			return n, true
		}
	}
	return most, most == j.cfg.Max || cost >= j.cfg.MaxCost
}

// serve gives every call its result.
func (j *Joiner[In, Out]) serve(calls []call[In, Out]) {
	in := make([]In, len(calls))
	for i, c := range calls {
		in[i] = c.in
	}
	results, err := j.once(in)
	if err != nil && len(calls) > 1 && j.cfg.Split(err) {
		for i := range calls {
			j.serve(calls[i : i+1])
		}
		return
	}
	for i, c := range calls {
		if err != nil {
			c.done <- Result[Out]{Err: err}
		} else {
			c.done <- results[i]
		}
	}
}

func (j *Joiner[In, Out]) once(in []In) (results []Result[Out], err error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.cfg.Timeout)
	defer cancel()
	err = guard.Call(func() (err error) {
		results, err = j.run(ctx, in)
		return err
	})
	if err == nil && len(results) != len(in) {
		err = fmt.Errorf("batch of %d calls has %d results", len(in), len(results))
	}
	return results, err
}

// Waiting is how many calls wait for a batch.
func (j *Joiner[In, Out]) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.waiting)
}
