package lexical

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"
)

// term is a term in numbers, so that nearly every one is compared, hashed and copied without a look at memory
// elsewhere. Numbers are in the order of the bytes.
type term struct {
	head, tail uint64 // the first sixteen bytes, big-endian, filled up with NUL, which no term holds
	long       int32  // where longTerms has the whole of a term of more bytes, from 1; else 0
}

const shortBytes = 16

// longTerms are the terms of more than shortBytes in one text.
type longTerms []string

// term returns a term, which stays here when it is long.
func (l *longTerms) term(text string) term {
	if len(text) <= 8 {
		return term{head: bigEndian(text)}
	}
	t := term{head: bigEndian(text), tail: bigEndian(text[8:])}
	if len(text) > shortBytes {
		*l = append(*l, text)
		t.long = int32(len(*l))
	}
	return t
}

func bigEndian(s string) uint64 { return bits.ReverseBytes64(padded(s)) }

// padded returns the first eight bytes of s, filled up with NUL, as a little-endian number.
func padded(s string) uint64 {
	switch n := len(s); {
	case n >= 8:
		return binary.LittleEndian.Uint64([]byte(s[:8]))
	case n >= 4: // the two halves may overlap
		return uint64(binary.LittleEndian.Uint32([]byte(s[:4]))) |
			uint64(binary.LittleEndian.Uint32([]byte(s[n-4:])))<<(8*(n-4))
	case n > 0: // so may these three
		return uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1))
	}
	return 0
}

// whole returns the text of t when it is long, else "".
func (l longTerms) whole(t *term) string {
	if t.long == 0 {
		return ""
	}
	return l[t.long-1]
}

func (l longTerms) equal(a, b *term) bool {
	return a.head == b.head && a.tail == b.tail && (a.long == b.long || l.whole(a) == l.whole(b))
}

// compare compares the bytes of terms.
func (l longTerms) compare(a, b *term) int {
	if c := cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(a.tail, b.tail)); c != 0 {
		return c
	}
	return strings.Compare(l.whole(a), l.whole(b))
}

// length returns the bytes of t, which is not empty.
func (l longTerms) length(t *term) int {
	switch {
	case t.long != 0:
		return len(l[t.long-1])
	case t.tail != 0:
		return shortBytes - bits.TrailingZeros64(t.tail)/8
	}
	return 8 - bits.TrailingZeros64(t.head)/8
}

// append appends the bytes of t to dst.
func (l longTerms) append(dst []byte, t *term) []byte {
	if t.long != 0 {
		return append(dst, l[t.long-1]...)
	}
	end := len(dst) + l.length(t)
	dst = binary.BigEndian.AppendUint64(dst, t.head)
	return binary.BigEndian.AppendUint64(dst, t.tail)[:end]
}

// termReader gives out the texts of terms, which share memory.
type termReader struct {
	long longTerms
	text string // of the terms not read yet, one after another
}

// next returns the text of t, which must be the next term.
func (r *termReader) next(t *term) string {
	n := r.long.length(t)
	text := r.text[:n]
	r.text = r.text[n:]
	return text
}

// termHash hashes terms. Its values depend on random numbers that never leave the process, so that nobody can
// make up terms that collide.
type termHash struct {
	seed maphash.Seed
	add  uint64
	mul  uint64
}

func newTermHash() termHash {
	seed := maphash.MakeSeed()
	return termHash{seed: seed, add: maphash.String(seed, "add"), mul: maphash.String(seed, "mul") | 1}
}

func (h *termHash) of(t *term, long longTerms) uint32 {
	if t.long != 0 {
		return uint32(maphash.String(h.seed, long.whole(t)))
	}
	return uint32(h.mix(t.head, t.tail))
}

func (h *termHash) mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^h.add, b^h.mul)
	return high ^ low
}
