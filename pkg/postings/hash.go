package postings

import "github.com/cespare/xxhash/v2"

// TermHash is the stored identity of an analysed term: XXH64 with seed 0 over its UTF-8 bytes, read as a
// signed integer. It is part of the storage format and never changes. Two terms with one hash would be
// ranked as one term; at a hundred million distinct terms the chance that any two collide is about 3 in
// 10,000. The hash is not made to resist someone who constructs collisions: doing so only blurs the
// ranking of the knowledge base that person writes to.
func TermHash(term string) int64 {
	return int64(xxhash.Sum64String(term)) //nolint:gosec // all 64 bits are kept, only their reading changes
}

// TermHashBytes is TermHash of a term in bytes.
func TermHashBytes(term []byte) int64 {
	return int64(xxhash.Sum64(term)) //nolint:gosec // as above
}
