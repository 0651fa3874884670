package postings

import (
	"container/list"
	"slices"
	"sync"
)

// Key names a posting row within a generation.
type Key struct {
	Term int64 // TermHash
	Seg  int64
}

// Cache remembers segments and posting rows of any number of generations, up to a number of bytes, and
// forgets what was used longest ago. Both are immutable, so an entry never goes stale; what a merge or a
// dropped generation leaves behind is removed by Retain or falls out in time. It also remembers that a
// segment holds no row for a term, or rare terms would be asked for again and again. It is safe for
// concurrent use. What is put in is kept, not copied, and must not be modified afterwards.
//
// A reader has the database list the segments of its snapshot, asks Segments and Postings what is
// missing, loads that in the same snapshot, and hands it in with AddSegments and AddPostings. Covered,
// asked before the snapshot, allows the same in one round trip: load rows of all other segments.
type Cache struct {
	mu       sync.Mutex
	max      int64
	used     int64
	order    *list.List // of *cacheEntry, most recently used first
	entries  map[cacheKey]*list.Element
	segments map[int64]map[int64]struct{} // generation -> ids of the cached segments
	hits     int64
	misses   int64
}

// CacheStats counts since the cache was made; Bytes and Entries are of now.
type CacheStats struct {
	Bytes, Entries, Hits, Misses int64
}

type cacheKey struct {
	generation int64
	Key
	segment bool // a segment (Term is 0), not a row
}

type cacheEntry struct {
	key  cacheKey
	seg  *Segment
	row  Posting // N is 0 when the segment holds no row for the term
	size int64
}

// Bookkeeping of one entry: the entry, its list element and its share of the map.
const entryOverhead = 300

// NewCache returns an empty cache of at most maxBytes; with 0 or less it keeps nothing.
func NewCache(maxBytes int64) *Cache {
	return &Cache{
		max:      maxBytes,
		order:    list.New(),
		entries:  make(map[cacheKey]*list.Element),
		segments: make(map[int64]map[int64]struct{}),
	}
}

// Segments returns the cached segments among ids, and the ids that are missing, both in the order of ids.
func (c *Cache) Segments(generation int64, ids []int64) (found []*Segment, missing []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if e := c.get(segmentKey(generation, id)); e != nil {
			found = append(found, e.seg)
		} else {
			missing = append(missing, id)
		}
	}
	return found, missing
}

// Postings returns the cached rows of terms in segs, and the keys nothing is known of, by segment, then
// in the order of terms. A pair that is known to have no row is in neither.
func (c *Cache) Postings(generation int64, terms, segs []int64) (found []Posting, missing []Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seg := range segs {
		for _, term := range terms {
			key := Key{Term: term, Seg: seg}
			e := c.get(cacheKey{generation: generation, Key: key})
			switch {
			case e == nil:
				missing = append(missing, key)
			case e.row.N > 0:
				found = append(found, e.row)
			}
		}
	}
	return found, missing
}

// Covered returns, ascending, the cached segments of a generation for which everything about terms is
// cached too. It does not count as use.
func (c *Cache) Covered(generation int64, terms []int64) []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []int64
	for seg := range c.segments[generation] {
		if c.knows(generation, terms, seg) {
			out = append(out, seg)
		}
	}
	slices.Sort(out)
	return out
}

func (c *Cache) knows(generation int64, terms []int64, seg int64) bool {
	for _, term := range terms {
		if c.entries[cacheKey{generation: generation, Key: Key{Term: term, Seg: seg}}] == nil {
			return false
		}
	}
	return true
}

// AddSegments puts segments in. They should have passed Segment.Check.
func (c *Cache) AddSegments(generation int64, segs []*Segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seg := range segs {
		// Ids, lengths, and the look-up table that the first use may add.
		c.put(&cacheEntry{key: segmentKey(generation, seg.ID), seg: seg, size: int64(seg.N) * (8 + 2 + 8 + 2)})
	}
}

// AddPostings puts in what was loaded for the keys asked: rows, and for every key of asked without a row
// that there is none. asked must be exactly what was looked for in a snapshot that holds these segments.
func (c *Cache) AddPostings(generation int64, asked []Key, rows []Posting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := make(map[Key]struct{}, len(rows))
	for _, p := range rows {
		key := Key{Term: p.Term, Seg: p.Seg}
		have[key] = struct{}{}
		c.put(&cacheEntry{key: cacheKey{generation: generation, Key: key}, row: p, size: int64(len(p.Data))})
	}
	for _, key := range asked {
		if _, ok := have[key]; !ok {
			c.put(&cacheEntry{key: cacheKey{generation: generation, Key: key}})
		}
	}
}

// Retain forgets everything about segments of a generation that are not in live: call it with the list of
// a recent snapshot now and then, with nil when the generation is gone. A reader of an older snapshot that
// still needs them loads them again.
func (c *Cache) Retain(generation int64, live []int64) {
	keep := make(map[int64]struct{}, len(live))
	for _, id := range live {
		keep[id] = struct{}{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, at := range c.entries {
		if key.generation != generation {
			continue
		}
		if _, ok := keep[key.Seg]; !ok {
			c.remove(at)
		}
	}
}

// Stats returns the counters.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Bytes: c.used, Entries: int64(len(c.entries)), Hits: c.hits, Misses: c.misses}
}

func segmentKey(generation, id int64) cacheKey {
	return cacheKey{generation: generation, Key: Key{Seg: id}, segment: true}
}

func (c *Cache) get(key cacheKey) *cacheEntry {
	at := c.entries[key]
	if at == nil {
		c.misses++
		return nil
	}
	c.hits++
	c.order.MoveToFront(at)
	return entryOf(at)
}

func entryOf(at *list.Element) *cacheEntry {
	e, _ := at.Value.(*cacheEntry) // nothing else is ever put in the list
	return e
}

// put adds an entry, unless it is there: the two are equal then.
func (c *Cache) put(e *cacheEntry) {
	if e.size += entryOverhead; e.size > c.max {
		return
	}
	if at := c.entries[e.key]; at != nil {
		c.order.MoveToFront(at)
		return
	}
	c.entries[e.key] = c.order.PushFront(e)
	c.used += e.size
	if e.key.segment {
		ids := c.segments[e.key.generation]
		if ids == nil {
			ids = make(map[int64]struct{})
			c.segments[e.key.generation] = ids
		}
		ids[e.key.Seg] = struct{}{}
	}
	for c.used > c.max {
		c.remove(c.order.Back())
	}
}

func (c *Cache) remove(at *list.Element) {
	e := entryOf(at)
	c.order.Remove(at)
	delete(c.entries, e.key)
	c.used -= e.size
	if !e.key.segment {
		return
	}
	ids := c.segments[e.key.generation]
	if delete(ids, e.key.Seg); len(ids) == 0 {
		delete(c.segments, e.key.generation)
	}
}
