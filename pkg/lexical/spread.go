package lexical

import (
	"math/bits"
	"slices"
)

const (
	spreadBits  = 6
	spreadLeast = 16 // fewer keys are sorted by insertion
	spreadDepth = 3  // keys that are still together after so many rounds are left to the library
)

// spreadSort sorts at most 65,535 keys in place. The heads of terms lie far apart, so that to deal them out
// over their range takes half the time of comparing them. spare is working memory, returned grown if need be.
func spreadSort(keys, spare []uint64) []uint64 {
	spare = slices.Grow(spare[:0], len(keys))[:len(keys)]
	spread(keys, spare, spreadDepth)
	return spare
}

func spread(keys, spare []uint64, depth int) {
	if len(keys) >= spreadLeast && depth == 0 {
		slices.Sort(keys)
		return
	}
	if len(keys) >= spreadLeast {
		ends := deal(keys, spare)
		begin := uint16(0)
		for _, end := range ends {
			if end-begin >= spreadLeast {
				spread(keys[begin:end], spare[begin:end], depth-1)
			}
			begin = end
		}
	}
	insertionSort(keys)
}

// deal puts keys in order of the bucket they belong to, and returns where each bucket ends.
func deal(keys, spare []uint64) (ends [1 << spreadBits]uint16) {
	const mask = 1<<spreadBits - 1
	low, high := keys[0], keys[0]
	for _, k := range keys {
		low, high = min(low, k), max(high, k)
	}
	shift := max(0, bits.Len64(high-low)-spreadBits)
	for _, k := range keys {
		ends[(k-low)>>shift&mask]++
	}
	at := uint16(0)
	for i, size := range ends {
		ends[i] = at // where the bucket begins
		at += size
	}
	copy(spare, keys)
	for _, k := range spare {
		b := (k - low) >> shift & mask
		keys[ends[b]] = k
		ends[b]++
	}
	return ends
}

func insertionSort(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		k, j := keys[i], i
		for ; j > 0 && keys[j-1] > k; j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = k
	}
}
