package postings

import (
	"math/bits"
	"slices"
)

// occurrence is a term in a chunk.
type occurrence struct {
	key uint64 // of the term, see keyOf
	ord uint16
	tf  uint8
}

// keyOf returns a number for a term, in the order of the terms.
func keyOf(term int64) uint64 { return uint64(term) ^ 1<<63 } //nolint:gosec // same bits

func termOf(key uint64) int64 { return int64(key ^ 1<<63) } //nolint:gosec // same bits

// dealer sorts occurrences by key. Those of one key keep their order. Keys are hashes and so lie evenly over their range:
// they are dealt out to buckets by their first bits, which leaves next to nothing to sort.
type dealer struct {
	shift uint     // key>>shift is the bucket
	at    []uint32 // by bucket: how many there are; once all are counted, where the next goes
	occs  []occurrence
}

// bucketSize is about how many occurrences share a bucket.
const (
	bucketSize = 8
	maxBits    = 16
	fewKeys    = 32 // are sorted by insertion
)

func newDealer(total int) *dealer {
	width := min(bits.Len(uint(total/bucketSize)), maxBits) //nolint:gosec // not negative
	return &dealer{shift: uint(64 - width), at: make([]uint32, 1<<width), occs: make([]occurrence, total)}
}

func (d *dealer) count(key uint64) { d.at[key>>d.shift]++ }

func (d *dealer) counted() { starts(d.at) }

// starts makes the sizes of buckets the places where they begin.
func starts(sizes []uint32) {
	at := uint32(0)
	for i, n := range sizes {
		sizes[i] = at
		at += n
	}
}

func (d *dealer) deal(o occurrence) {
	at := &d.at[o.key>>d.shift]
	d.occs[*at] = o
	*at++
}

// sorted returns the occurrences, all of which were counted and dealt, in order.
func (d *dealer) sorted() []occurrence {
	var spare []occurrence
	from := uint32(0)
	for _, to := range d.at {
		spare = sortKeys(d.occs[from:to], spare, d.shift)
		from = to
	}
	return d.occs
}

// sortKeys sorts occurrences whose keys have the same bits from shift on. spare is working memory, returned grown if need
// be.
func sortKeys(occs, spare []occurrence, shift uint) []occurrence {
	switch {
	case len(occs) < 2:
		return spare
	case len(occs) <= fewKeys:
		insertionSort(occs)
		return spare
	case !slices.ContainsFunc(occs, func(o occurrence) bool { return o.key != occs[0].key }): // a common term
		return spare
	}
	next := max(shift, 8) - 8
	var at [1 << 8]uint32
	for _, o := range occs {
		at[uint8(o.key>>next)]++
	}
	starts(at[:])
	spare = append(spare[:0], occs...)
	for _, o := range spare {
		to := &at[uint8(o.key>>next)]
		occs[*to] = o
		*to++
	}
	from := uint32(0)
	for _, to := range at {
		spare = sortKeys(occs[from:to], spare, next)
		from = to
	}
	return spare
}

func insertionSort(occs []occurrence) {
	for i := 1; i < len(occs); i++ {
		o, j := occs[i], i
		for ; j > 0 && occs[j-1].key > o.key; j-- {
			occs[j] = occs[j-1]
		}
		occs[j] = o
	}
}
