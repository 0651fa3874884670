package postings

import (
	"math"
	"slices"
)

// collector keeps the best limit hits and all that tie with the last of them.
type collector struct {
	limit int
	floor float64 // hits below it cannot get in any more
	hits  []Hit
	full  int // number of hits at which to cut
}

func newCollector(limit int) *collector {
	limit = min(limit, math.MaxInt32) // any more is all, and doubling it must not overflow
	return &collector{limit: limit, floor: math.Inf(-1), full: fullAt(limit)}
}

// fullAt leaves room between cuts, so that each costs little per hit.
func fullAt(kept int) int { return 2*kept + 256 }

// offer adds a hit whose score is not below the floor.
func (c *collector) offer(h Hit) {
	c.hits = append(c.hits, h)
	if len(c.hits) >= c.full {
		c.cut()
		c.full = fullAt(len(c.hits))
	}
}

// cut orders the hits and drops those below the limit-th score.
func (c *collector) cut() {
	slices.SortFunc(c.hits, func(a, b Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return compare(a.ChunkID, b.ChunkID)
	})
	if len(c.hits) <= c.limit {
		return
	}
	c.floor = c.hits[c.limit-1].Score
	end := c.limit
	for end < len(c.hits) && c.hits[end].Score == c.floor {
		end++
	}
	c.hits = c.hits[:end]
}

func (c *collector) result() []Hit {
	c.cut()
	return c.hits
}
