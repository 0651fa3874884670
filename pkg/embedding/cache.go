package embedding

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weir-project/weir/pkg/guard"
)

// CacheConfig bounds a cache. Zero fields take the defaults.
type CacheConfig struct {
	Entries int // default 4,096
	Bytes   int // of texts and vectors together, default 32 MiB
}

// Cache keeps recent vectors by space and exact text, and computes a text asked for by several
// callers at once only once. Nothing that failed is kept. Safe for concurrent use; Close waits for
// computations whose callers all left.
type Cache struct {
	cfg CacheConfig

	mu      sync.Mutex
	entries map[cacheKey]*list.Element // of *cacheEntry, most recent first
	order   *list.List
	bytes   int
	flights map[cacheKey]*flight
	running sync.WaitGroup
}

type cacheKey struct{ space, text string }

type cacheEntry struct {
	key    cacheKey
	vector []float32
}

func (e *cacheEntry) bytes() int { return len(e.key.text) + 4*len(e.vector) + entryOverhead }

const entryOverhead = 200

// flight is one computation under way; result and err are set when done is closed.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int // callers; the last to leave cancels
	texts   []string
	result  Result
	err     error
}

// NewCache returns an empty cache.
func NewCache(cfg CacheConfig) *Cache {
	if cfg.Entries <= 0 {
		cfg.Entries = 4096
	}
	if cfg.Bytes <= 0 {
		cfg.Bytes = 32 << 20
	}
	return &Cache{
		cfg: cfg, entries: map[cacheKey]*list.Element{}, order: list.New(), flights: map[cacheKey]*flight{},
	}
}

// ComputeFunc embeds texts; the vectors are in order.
type ComputeFunc func(ctx context.Context, texts []string) (Result, error)

// Embed returns a vector for every text, computing in one call those that are neither known nor being
// computed. A rejected text is the error. hits counts texts that were known. The vectors are shared:
// they must not be changed. compute's context ends when every caller that waits for it has left.
func (c *Cache) Embed(ctx context.Context, space Space, texts []string, compute ComputeFunc) (vectors [][]float32, hits int, err error) {
	vectors = make([][]float32, len(texts))
	awaited := c.claim(ctx, space.ID(), texts, vectors, compute)
	defer c.leave(awaited)
	hits = len(texts)
	for i, t := range texts {
		if vectors[i] != nil {
			continue
		}
		hits--
		if vectors[i], err = c.await(ctx, awaited[t], t); err != nil {
			return nil, 0, err
		}
	}
	return vectors, hits, nil
}

// claim fills in the known vectors, joins the computations under way and starts one for the rest. It
// returns the computation to wait for by text; every distinct one was joined once.
func (c *Cache) claim(ctx context.Context, space string, texts []string, vectors [][]float32, compute ComputeFunc) map[string]*flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	awaited, joined := map[string]*flight{}, map[*flight]bool{}
	var fresh []string
	for i, t := range texts {
		if v := c.get(cacheKey{space, t}); v != nil {
			vectors[i] = v
		} else if f := c.flights[cacheKey{space, t}]; f != nil {
			awaited[t], joined[f] = f, true
		} else if _, twice := awaited[t]; !twice {
			awaited[t] = nil
			fresh = append(fresh, t)
		}
	}
	if len(fresh) > 0 {
		f := c.start(ctx, space, fresh, compute)
		joined[f] = true
		for _, t := range fresh {
			awaited[t] = f
		}
	}
	for f := range joined {
		f.waiting++
	}
	return awaited
}

// start runs a computation in its own goroutine. Called with the lock held.
func (c *Cache) start(ctx context.Context, space string, texts []string, compute ComputeFunc) *flight {
	// Values such as the trace are the first caller's; its cancellation is not.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel, texts: texts}
	for _, t := range texts {
		c.flights[cacheKey{space, t}] = f
	}
	c.running.Go(func() {
		defer cancel()
		result, err := safely(ctx, texts, compute)
		c.land(space, f, result, err)
	})
	return f
}

// safely is compute with a panic as an error: it runs on a goroutine nobody else guards.
func safely(ctx context.Context, texts []string, compute ComputeFunc) (result Result, err error) {
	err = guard.Call(func() (err error) {
		result, err = compute(ctx, texts)
		return err
	})
	if err == nil && len(result.Vectors) != len(texts) {
		err = fmt.Errorf("embed query: %d vectors for %d texts", len(result.Vectors), len(texts))
	}
	return result, err
}

func (c *Cache) land(space string, f *flight, result Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.result, f.err = result, err
	for i, t := range f.texts {
		key := cacheKey{space, t}
		if c.flights[key] == f {
			delete(c.flights, key)
		}
		if err == nil && result.Vectors[i] != nil {
			c.put(&cacheEntry{key, result.Vectors[i]})
		}
	}
	close(f.done)
}

func (c *Cache) await(ctx context.Context, f *flight, text string) ([]float32, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("embed query: %w", context.Cause(ctx))
	}
	if f.err != nil {
		return nil, f.err
	}
	for i, t := range f.texts {
		if t == text {
			if v := f.result.Vectors[i]; v != nil {
				return v, nil
			}
			return nil, rejection(f.result, i)
		}
	}
	return nil, errors.New("embed query: the text is not in its computation")
}

func rejection(r Result, i int) error {
	if err := r.Rejected[i]; err != nil {
		return err
	}
	return &Error{Kind: ErrBadAnswer, Message: "a vector is missing"}
}

// leave gives up the computations joined; one that nobody waits for any more is cancelled and no
// longer joined by others.
func (c *Cache) leave(awaited map[string]*flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := map[*flight]bool{}
	for _, f := range awaited {
		if left[f] {
			continue
		}
		left[f] = true
		if f.waiting--; f.waiting == 0 {
			f.cancel()
			c.forget(f)
		}
	}
}

func (c *Cache) forget(f *flight) {
	for key, other := range c.flights {
		if other == f {
			delete(c.flights, key)
		}
	}
}

func (c *Cache) get(key cacheKey) []float32 {
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheEntry).vector
}

func (c *Cache) put(entry *cacheEntry) {
	if _, ok := c.entries[entry.key]; ok {
		return
	}
	c.entries[entry.key] = c.order.PushFront(entry)
	c.bytes += entry.bytes()
	for c.order.Len() > c.cfg.Entries || c.bytes > c.cfg.Bytes {
		oldest := c.order.Remove(c.order.Back()).(*cacheEntry)
		delete(c.entries, oldest.key)
		c.bytes -= oldest.bytes()
	}
}

// Len is the number of vectors kept.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// Close waits for computations still under way.
func (c *Cache) Close() { c.running.Wait() }
