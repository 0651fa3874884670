// Package commit makes finished versions live, many in one transaction. Callers wait for the
// transaction that holds theirs, so what follows (an event, an acknowledgement) is never ahead of it.
package commit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what a commit needs of the database.
type Store interface {
	SwapVersions(ctx context.Context, generation int64, finished []pgstore.Finished) (pgstore.SwapResult, error)
	ReadyOf(ctx context.Context, candidates []pgstore.Candidate) ([]pgstore.Ready, error)
}

// Limits of a group. The zero value is 256 documents, 2,000 chunks, 20 ms, 50 ms and 1 s.
type Limits struct {
	Docs   int
	Chunks int
	Wait   time.Duration // from the first of a group
	Quiet  time.Duration // from the last: the stream has paused, and Spacing would be waited out for nothing
	// Spacing bounds the distance between the beginnings of two transactions of a generation, unless the
	// second is full. The distance is ten milliseconds for each document of the first: a stream of
	// documents makes few large segments, not many small ones to be merged, while documents that come one
	// by one wait no longer than Wait.
	Spacing time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Docs == 0 {
		l.Docs = 256
	}
	if l.Chunks == 0 {
		l.Chunks = 2000
	}
	if l.Wait == 0 {
		l.Wait = 20 * time.Millisecond
	}
	if l.Quiet == 0 {
		l.Quiet = 50 * time.Millisecond
	}
	if l.Spacing == 0 {
		l.Spacing = time.Second
	}
	return l
}

// Result is what became of one version.
type Result struct {
	Ready []pgstore.Ready // the submits it answers, when it is live now
	Lost  bool            // its staged chunks are gone: parse again
}

// Committer groups versions by generation. Safe for concurrent use. Close it.
type Committer struct {
	store   Store
	limits  Limits
	swapped func(generation int64)

	ctx    context.Context // of the transactions, which outlive those who wait for them
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	groups map[int64]*group    // by generation, the one being gathered
	busy   map[int64]int       // transactions under way of a generation
	next   map[int64]time.Time // when the next transaction of a generation may begin, unless that is past
	closed bool
}

// New returns a committer; swapped is called after every transaction that made something live.
func New(store Store, limits Limits, swapped func(generation int64)) *Committer {
	c := &Committer{store: store, limits: limits.withDefaults(), swapped: swapped, groups: map[int64]*group{}, busy: map[int64]int{}, next: map[int64]time.Time{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// ErrClosed is what Commit returns after Close.
var ErrClosed = errors.New("the committer is closed")

// Close gives up transactions that nobody waits for any more and returns when all have ended. Versions
// still being gathered are not committed: their messages were not acknowledged.
func (c *Committer) Close() {
	c.mu.Lock()
	c.closed = true
	for generation, g := range c.groups {
		g.timer.Stop()
		g.fail(ErrClosed)
		delete(c.groups, generation)
	}
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

type group struct {
	finished []pgstore.Finished
	waiters  []chan outcome
	chunks   int
	full     bool
	due      bool // full, or its time is over
	until    time.Time
	timer    *time.Timer
}

type outcome struct {
	result Result
	err    error
}

func (g *group) fail(err error) {
	for _, w := range g.waiters {
		w <- outcome{err: err}
	}
}

// Commit makes a version live if it is complete, together with others of its generation, and waits for
// that. chunks is about how many it has. An incomplete or stale version is no error.
func (c *Committer) Commit(ctx context.Context, generation int64, finished pgstore.Finished, chunks int) (Result, error) {
	wait := make(chan outcome, 1)
	if !c.add(generation, finished, chunks, wait) {
		return Result{}, ErrClosed
	}
	select {
	case o := <-wait:
		return o.result, o.err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for commit: %w", context.Cause(ctx))
	}
}

// add puts a version into the group being gathered; false when the committer is closed.
func (c *Committer) add(generation int64, finished pgstore.Finished, chunks int, wait chan outcome) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	g := c.groups[generation]
	if g == nil {
		g = &group{until: time.Now().Add(c.patience(generation))}
		g.timer = time.AfterFunc(c.limits.Wait, func() { c.expire(generation, g) })
		c.groups[generation] = g
	}
	g.timer.Reset(min(time.Until(g.until), max(c.limits.Wait, c.limits.Quiet)))
	g.finished = append(g.finished, finished)
	g.waiters = append(g.waiters, wait)
	g.chunks += chunks
	if len(g.finished) >= c.limits.Docs || g.chunks >= c.limits.Chunks {
		g.full, g.due = true, true
	}
	c.start(generation)
	return true
}

// patience is how long a new group of a generation gathers while others come. c.mu is held.
func (c *Committer) patience(generation int64) time.Duration {
	return max(c.limits.Wait, time.Until(c.next[generation]))
}

func (c *Committer) expire(generation int64, g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.due = true
	if c.groups[generation] == g {
		c.start(generation)
	}
}

// parallel is how many transactions of a generation may be under way at once: a full group does not wait for one
// other. A smaller one does, and grows.
const parallel = 2

// start runs the gathered group when its turn has come. c.mu is held.
func (c *Committer) start(generation int64) {
	g := c.groups[generation]
	if g == nil || !g.due || c.busy[generation] >= parallel || c.busy[generation] > 0 && !g.full {
		return
	}
	g.timer.Stop()
	delete(c.groups, generation)
	c.busy[generation]++
	c.space(generation, len(g.finished))
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		c.run(generation, g)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.busy[generation]--; c.busy[generation] == 0 {
			delete(c.busy, generation)
		}
		c.start(generation)
	}()
}

// spacePerDoc is the distance that a document of a transaction puts before the next.
const spacePerDoc = 10 * time.Millisecond

// space sets when the transaction after one of so many documents, which begins now, may begin; and forgets
// what is past. c.mu is held.
func (c *Committer) space(generation int64, docs int) {
	now := time.Now()
	for g, at := range c.next {
		if at.Before(now) {
			delete(c.next, g)
		}
	}
	c.next[generation] = now.Add(min(time.Duration(docs)*spacePerDoc, c.limits.Spacing))
}

// commitTimeout bounds a transaction, whoever waits for it.
const commitTimeout = 60 * time.Second

func (c *Committer) run(generation int64, g *group) {
	ctx, cancel := context.WithTimeout(c.ctx, commitTimeout)
	defer cancel()
	results, err := c.swap(ctx, generation, g.finished)
	if err != nil && len(g.finished) > 1 && !pgstore.Retryable(err) {
		c.oneByOne(ctx, generation, g)
		return
	}
	for i, w := range g.waiters {
		w <- outcome{results[g.finished[i].Candidate], err}
	}
}

// oneByOne keeps a version that fails from failing the others of its group.
func (c *Committer) oneByOne(ctx context.Context, generation int64, g *group) {
	for i, f := range g.finished {
		results, err := c.swap(ctx, generation, []pgstore.Finished{f})
		g.waiters[i] <- outcome{results[f.Candidate], err}
	}
}

// swap is one transaction. A panic in it is a permanent error of its versions: no handler is below it to
// catch it.
func (c *Committer) swap(ctx context.Context, generation int64, finished []pgstore.Finished) (results map[pgstore.Candidate]Result, err error) {
	err = guard.Call(func() (err error) {
		results, err = c.once(ctx, generation, finished)
		return err
	})
	return results, err
}

func (c *Committer) once(ctx context.Context, generation int64, finished []pgstore.Finished) (map[pgstore.Candidate]Result, error) {
	res, err := c.store.SwapVersions(ctx, generation, finished)
	if err != nil {
		return nil, err
	}
	if len(res.Swapped) > 0 && c.swapped != nil {
		c.swapped(generation)
	}
	results := make(map[pgstore.Candidate]Result, len(finished))
	for _, lost := range res.Lost {
		results[lost] = Result{Lost: true}
	}
	if len(res.Incomplete)+len(res.Lost) == len(finished) {
		return results, nil
	}
	// Versions that an earlier delivery made live are told of again: its event may not have gone out.
	candidates := make([]pgstore.Candidate, len(finished))
	for i, f := range finished {
		candidates[i] = f.Candidate
	}
	ready, err := c.store.ReadyOf(ctx, candidates)
	if err != nil {
		return nil, err
	}
	for _, r := range ready {
		have := results[r.Candidate]
		have.Ready = append(have.Ready, r)
		results[r.Candidate] = have
	}
	return results, nil
}
