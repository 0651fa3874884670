package lexical

import (
	"hash/maphash"
	"math/bits"
)

// termTable numbers distinct terms in the order of their coming. It uses its memory again; the zero value is
// ready after reset. The hashes are those of a [termHash].
type termTable struct {
	terms []hashedTerm
	slots []termSlot // open addressing with linear probing, at most three quarters full; a power of two
}

type hashedTerm struct {
	term string
	hash uint32
}

// termSlot leads to a term.
type termSlot struct {
	hash   uint32
	number int32 // of the term, from 1; 0 when the slot is free
}

// reset empties the table and makes room for about so many terms.
func (t *termTable) reset(terms int) {
	t.terms = t.terms[:0]
	t.resize(1 << bits.Len(uint(min(max(terms, minTerms), maxTerms))))
}

// The table has room for so many terms without growing, at least and at most.
const (
	minTerms = 1 << 5
	maxTerms = 1 << 12
)

// forget drops every reference to a text. The table has to be reset then.
func (t *termTable) forget() {
	clear(t.terms)
	t.terms = t.terms[:0]
}

// find returns the number of term, from 0; -1 when it is not there, with the slot where it belongs.
func (t *termTable) find(term string, hash uint32) (number int32, slot uint32) {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s.number == 0 {
			return -1, i
		}
		if s.hash == hash && t.terms[s.number-1].term == term {
			return s.number - 1, i
		}
	}
}

// insert adds a term that find did not find, in the slot that it returned, and returns the term's number.
func (t *termTable) insert(term string, hash, slot uint32) int32 {
	t.terms = append(t.terms, hashedTerm{term: term, hash: hash})
	n := int32(len(t.terms))
	t.slots[slot] = termSlot{hash: hash, number: n}
	if 4*len(t.terms) > 3*len(t.slots) {
		t.grow()
	}
	return n - 1
}

func (t *termTable) grow() {
	t.resize(2 * len(t.slots))
	mask := uint32(len(t.slots) - 1)
	for i, term := range t.terms {
		at := term.hash & mask
		for t.slots[at].number != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = termSlot{hash: term.hash, number: int32(i + 1)}
	}
}

// resize makes the table n empty slots wide.
func (t *termTable) resize(n int) {
	if cap(t.slots) < n {
		t.slots = make([]termSlot, n)
		return
	}
	t.slots = t.slots[:n]
	clear(t.slots)
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

// of returns the hash of a term. Short terms take a quicker way.
func (h *termHash) of(term string) uint32 {
	if len(term) > 8 {
		return uint32(maphash.String(h.seed, term))
	}
	high, low := bits.Mul64(padded(term)^h.add, h.mul)
	return uint32(high ^ low)
}
