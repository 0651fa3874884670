package postings

import "slices"

const (
	// MaxSmallSegments bounds the segments of a generation that hold less than half of MaxSegmentDocs
	// live chunks, once PickMerge has nothing more to ask for: there are fewer than this.
	MaxSmallSegments = 32
	// MergeFanIn is how many segments of one class are merged at a time.
	MergeFanIn = 16
)

// SegmentSize is what the merge policy knows of a segment.
type SegmentSize struct {
	ID   int64
	N    int // chunks, dead ones included
	Dead int // tombstones that fall into the segment
}

func (s SegmentSize) live() int { return s.N - s.Dead }

// PickMerge names the segments of one generation to merge next, ascending, or nothing. One id alone
// means: rewrite this segment without its dead chunks. Call it again after each merge until it returns
// nothing. In order of preference it picks
//
//   - a segment of which a tenth or more is dead;
//   - up to MergeFanIn segments, smallest first, of the size class (live chunks below 16, 256, 4,096, half
//     of MaxSegmentDocs) that has most, when it has MergeFanIn or when MaxSmallSegments or more are small.
//
// The live chunks of a pick never exceed MaxSegmentDocs.
func PickMerge(sizes []SegmentSize) []int64 {
	if id, ok := mostlyDead(sizes); ok {
		return []int64{id}
	}
	small := smallSegments(sizes)
	fullest := fullestClass(small)
	if len(fullest) >= MergeFanIn || len(small) >= MaxSmallSegments {
		return fitting(fullest)
	}
	return nil
}

// fullestClass is the run of one class in small that has most segments, ties to the smaller class. With
// MaxSmallSegments in four classes it has eight at least: merges stay among equals, and cheap.
func fullestClass(small []SegmentSize) []SegmentSize {
	var best []SegmentSize
	for from := 0; from < len(small); {
		to := from
		for to < len(small) && classOf(small[to]) == classOf(small[from]) {
			to++
		}
		if to-from > len(best) {
			best = small[from:to]
		}
		from = to
	}
	return best
}

// mostlyDead finds the segment with the largest dead share, ties to the smallest id.
func mostlyDead(sizes []SegmentSize) (int64, bool) {
	best, found := SegmentSize{N: 10, Dead: 1}, false
	for _, s := range sizes {
		share := s.Dead*best.N - best.Dead*s.N
		if s.Dead > 0 && (share > 0 || share == 0 && (!found || s.ID < best.ID)) {
			best, found = s, true
		}
	}
	return best.ID, found
}

// smallSegments are those worth merging, by live chunks, then id.
func smallSegments(sizes []SegmentSize) []SegmentSize {
	var small []SegmentSize
	for _, s := range sizes {
		if s.live() < MaxSegmentDocs/2 {
			small = append(small, s)
		}
	}
	slices.SortFunc(small, func(a, b SegmentSize) int {
		if a.live() != b.live() {
			return a.live() - b.live()
		}
		return compare(a.ID, b.ID)
	})
	return small
}

func classOf(s SegmentSize) int {
	class := 0
	for limit := 16; limit < MaxSegmentDocs && s.live() >= limit; limit *= 16 {
		class++
	}
	return class
}

// fitting takes from the front as many as may share a segment; two small ones always may.
func fitting(small []SegmentSize) []int64 {
	var ids []int64
	live := 0
	for _, s := range small {
		if live += s.live(); len(ids) == MergeFanIn || live > MaxSegmentDocs {
			break
		}
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}
