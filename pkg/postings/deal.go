package postings

import (
	"cmp"
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

// dealer sorts occurrences by key, then chunk. Keys are hashes and so lie evenly over their range: they are dealt out to
// buckets by their first bits, which leaves next to nothing to sort and takes a quarter of the time of sorting all.
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

// counted makes the sizes of the buckets the places where they begin.
func (d *dealer) counted() {
	at := uint32(0)
	for i, n := range d.at {
		d.at[i] = at
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
	from := uint32(0)
	for _, to := range d.at {
		if bucket := d.occs[from:to]; len(bucket) <= fewKeys {
			insertionSort(bucket)
		} else { // of a common term, mostly
			slices.SortFunc(bucket, func(a, b occurrence) int {
				return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.ord, b.ord))
			})
		}
		from = to
	}
	return d.occs
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
