package postings

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// ErrTooLarge says that more than MaxSegmentDocs chunks were to share a segment.
var ErrTooLarge = errors.New("segment too large")

// Segment describes the chunks of one segment. Once handed to a Ranker, a Cache or Merge it must not be
// modified; it may then be shared by any number of goroutines.
type Segment struct {
	ID       int64
	N        int     // chunks, deleted ones included
	ChunkIDs []int64 // ordinal -> chunk id; unique, in any order
	Lens     []byte  // ordinal -> length in tokens, see EncodeLens
	SumLen   int64   // sum of the stored lengths

	once   sync.Once
	sorted []int64  // chunk ids ascending
	ords   []uint16 // ordinals of sorted; nil when the ids ascend as they are
}

// Len is the stored length in tokens of the chunk at ordinal ord, which must be below N.
func (s *Segment) Len(ord int) int { return lenAt(s.Lens, ord) }

// Check verifies a segment that came from storage: sizes agree and SumLen is the sum of the lengths.
// Errors wrap ErrCorrupt.
func (s *Segment) Check() error {
	if err := s.checkShape(); err != nil {
		return err
	}
	var sum int64
	for ord := range s.N {
		sum += int64(s.Len(ord))
	}
	if sum != s.SumLen {
		return fmt.Errorf("check segment %d: %w: lengths sum to %d, not %d", s.ID, ErrCorrupt, sum, s.SumLen)
	}
	return nil
}

func (s *Segment) checkShape() error {
	if s.N < 0 || s.N > MaxSegmentDocs || len(s.ChunkIDs) != s.N || len(s.Lens) != 2*s.N {
		return fmt.Errorf("check segment %d: %w: %d chunks, %d ids, %d length bytes",
			s.ID, ErrCorrupt, s.N, len(s.ChunkIDs), len(s.Lens))
	}
	return nil
}

// buildLookup sorts the chunk ids once per segment, unless they ascend already.
func (s *Segment) buildLookup() {
	if slices.IsSorted(s.ChunkIDs) {
		s.sorted = s.ChunkIDs
		return
	}
	s.ords = make([]uint16, s.N)
	for i := range s.ords {
		s.ords[i] = uint16(i) //nolint:gosec // i < N <= 65,536
	}
	slices.SortFunc(s.ords, func(a, b uint16) int {
		return compare(s.ChunkIDs[a], s.ChunkIDs[b])
	})
	s.sorted = make([]int64, s.N)
	for i, ord := range s.ords {
		s.sorted[i] = s.ChunkIDs[ord]
	}
}

// match calls visit for every id of the ascending ids that the segment holds, in that order.
func (s *Segment) match(ids []int64, visit func(id int64, ord int)) {
	s.once.Do(s.buildLookup)
	if s.N == 0 || len(ids) == 0 {
		return
	}
	first, _ := slices.BinarySearch(ids, s.sorted[0])
	at := 0
	for _, id := range ids[first:] {
		at += gallop(s.sorted[at:], id)
		if at == s.N {
			return
		}
		if s.sorted[at] != id {
			continue
		}
		if s.ords == nil {
			visit(id, at)
		} else {
			visit(id, int(s.ords[at]))
		}
	}
}

// gallop returns the first index of sorted whose value is at least id; cheap when that is near.
func gallop(sorted []int64, id int64) int {
	step := 1
	for step < len(sorted) && sorted[step] < id {
		step *= 2
	}
	low := step / 2
	i, _ := slices.BinarySearch(sorted[low:min(step, len(sorted))], id)
	return low + i
}

// MarkDead finds which of the tombstoned chunk ids (any order, repeats allowed) the segment holds:
// their ordinals as a bitmap, and their ids ascending. A merge may delete exactly these tombstones.
func (s *Segment) MarkDead(tombstones []int64) (Bitmap, []int64) {
	return s.markDead(ascending(tombstones))
}

func (s *Segment) markDead(tombstones []int64) (Bitmap, []int64) {
	var (
		dead  Bitmap
		found []int64
	)
	s.match(tombstones, func(id int64, ord int) {
		if dead == nil {
			dead = NewBitmap(s.N)
		}
		if !dead.Has(ord) {
			dead.Set(ord)
			found = append(found, id)
		}
	})
	return dead, found
}

// ascending returns ids sorted, copying them only when they are not.
func ascending(ids []int64) []int64 {
	if slices.IsSorted(ids) {
		return ids
	}
	out := slices.Clone(ids)
	slices.Sort(out)
	return out
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// Bitmap is a set of ordinals. Nil is the empty set.
type Bitmap []uint64

// NewBitmap returns an empty set that can hold the ordinals 0..n-1.
func NewBitmap(n int) Bitmap { return make(Bitmap, (n+63)/64) }

// Set adds ord, which must be within the size given to NewBitmap.
func (b Bitmap) Set(ord int) { b[ord>>6] |= 1 << (ord & 63) }

// Has tells whether ord is in the set; an ordinal beyond its size is not.
func (b Bitmap) Has(ord int) bool {
	word := ord >> 6
	return word < len(b) && b[word]&(1<<(ord&63)) != 0
}

// Count is the number of ordinals in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}
