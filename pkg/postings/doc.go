// Package postings holds the ranked half of full-text search: immutable posting segments, their
// byte format, how they are built and merged, and an exact BM25 scorer over them.
//
// It does no I/O and knows no SQL: callers store and load [Segment] and [Posting] rows, this package
// turns them into scores. Everything is a pure function of its arguments, except [Ranker] (which only
// recycles scratch memory) and [Cache].
//
// # Model
//
// A segment numbers at most [MaxSegmentDocs] chunks by ordinals 0..N-1 and says for each its chunk id
// and its length in tokens. A posting row lists, for one term in one segment, the ordinals that hold
// the term and how often. Rows are never changed. A deleted chunk is named by a tombstone kept outside
// the segments; the scorer leaves it out of every statistic, and a merge drops it for good.
//
// # Bytes of a posting row
//
// One entry per ordinal, ascending:
//
//	uvarint(gap<<1 | more)   gap = ordinal - previous ordinal - 1, previous of the first is -1
//	tf byte                  only when more = 1: 2..255, larger frequencies are stored as 255
//
// Lengths are two bytes little-endian each, larger ones stored as 65,535 ([EncodeLens]). Both caps are
// part of the ranking: a checker that wants equal scores applies them too.
//
// # Score
//
// For a chunk of length len, summed over the distinct query terms in ascending order of their hash:
//
//	weight * ln(1 + (N-df+0.5)/(df+0.5)) * (k1+1)*tf / (tf + k1*(1-b + b*len/avglen))
//
// N, df and avglen are those of all live chunks of the snapshot, whatever the caller lets through. The
// order of summation is fixed, so a score is the same float64 however the chunks are spread over
// segments.
package postings
