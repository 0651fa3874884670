package lexical

import (
	"math/bits"
	"slices"
)

// builder gathers the lexemes of one document.
type builder struct {
	hash    termHash
	long    longTerms // of the document's terms
	entries []entry   // one for each term
	slots   []uint16  // open addressing with linear probing: the number of an entry, from 1; 0 when free
	places  []place
	order   []uint64
	spare   []uint64
	bytes   []byte
	length  int
	stored  int // upper bound of the bytes of what is stored
	cut     bool
}

// entry is a term and how often it came.
type entry struct {
	term
	hash   uint32
	next   int32  // where its next position goes in the result, set by document
	count  uint16 // of its positions
	newest uint16 // its last position
}

// place is one occurrence: entry and position.
type place struct {
	entry uint16
	Position
}

func newBuilder(hash termHash) builder {
	return builder{hash: hash}
}

// The table has room for so many terms without growing, at least and at most.
const (
	minTerms = 1 << 5
	maxTerms = 1 << 12
)

// begin readies the builder for a document of about so many tokens, whose long terms are those.
func (b *builder) begin(tokens int, long longTerms) {
	b.long = long
	b.entries, b.places = b.entries[:0], b.places[:0]
	b.length, b.stored, b.cut = 0, 0, false
	b.resize(1 << bits.Len(uint(min(max(tokens, minTerms), maxTerms))))
}

// add takes one token, at its position plus offset.
func (b *builder) add(t *token, offset int32, weight Weight) {
	if t.kind == Word || t.kind == Unigram {
		b.length++
	}
	pos := t.position + offset
	beyond := pos > MaxPosition
	if beyond {
		pos, b.cut = MaxPosition, true
	}
	i := b.entry(&t.term)
	if i < 0 {
		return
	}
	e := &b.entries[i]
	if e.newest == uint16(pos) || beyond && e.newest != 0 {
		return
	}
	if e.count == MaxPositions || b.stored+2 > maxStoredBytes {
		b.cut = true
		return
	}
	e.count++
	e.newest = uint16(pos)
	b.stored += 2
	b.places = append(b.places, place{entry: uint16(i), Position: Position{Pos: uint16(pos), Weight: weight}})
}

// entry returns the number of the entry of a term, a new one when it has none; -1 when a limit forbids that.
func (b *builder) entry(t *term) int {
	hash := b.hash.of(t, b.long)
	mask := uint32(len(b.slots) - 1)
	slot := hash & mask
	for ; b.slots[slot] != 0; slot = (slot + 1) & mask {
		i := int(b.slots[slot]) - 1
		if e := &b.entries[i]; b.long.equal(&e.term, t) {
			return i
		}
	}
	// The count of positions takes two bytes, one more may go to alignment, and the first position is paid here
	// so that no entry stays without one.
	need := b.long.length(t) + 5
	if len(b.entries) == MaxLexemes || b.stored+need > maxStoredBytes {
		b.cut = true
		return -1
	}
	b.stored += need
	b.entries = append(b.entries, entry{})
	n := len(b.entries)
	e := &b.entries[n-1]
	e.head, e.tail, e.long, e.hash = t.head, t.tail, t.long, hash
	b.slots[slot] = uint16(n)
	if 4*n > 3*len(b.slots) {
		b.grow()
	}
	return n - 1
}

func (b *builder) grow() {
	b.resize(2 * len(b.slots))
	mask := uint32(len(b.slots) - 1)
	for i := range b.entries {
		slot := b.entries[i].hash & mask
		for b.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		b.slots[slot] = uint16(i + 1)
	}
}

// resize makes the table n empty slots wide, a power of two.
func (b *builder) resize(n int) {
	b.slots = slices.Grow(b.slots[:0], n)[:n]
	clear(b.slots)
}

// document writes what was gathered to d, whose memory it uses.
func (b *builder) document(d *Document) {
	d.Length, d.Truncated = b.length, b.cut
	n := len(b.entries)
	d.Lexemes = slices.Grow(d.Lexemes[:0], n)[:n]
	d.positions = slices.Grow(d.positions[:0], len(b.places))[:len(b.places)]
	order := b.sorted()
	b.bytes = b.bytes[:0]
	for _, o := range order {
		b.bytes = b.long.append(b.bytes, &b.entries[o&entryMask].term)
	}
	terms := termReader{long: b.long, text: string(b.bytes)}
	first := int32(0)
	for i, o := range order {
		e := &b.entries[o&entryMask]
		e.next = first
		first += int32(e.count)
		l := &d.Lexemes[i]
		l.Term, l.Positions = terms.next(&e.term), d.positions[e.next:first:first]
	}
	for _, p := range b.places {
		e := &b.entries[p.entry]
		d.positions[e.next] = p.Position
		e.next++
	}
}

// The order of the entries is found by numbers that hold the first six bytes of a term above the number of
// its entry: sorting numbers is cheap, and six bytes decide most comparisons.
const (
	entryBits = 16 // MaxLexemes fits
	entryMask = 1<<entryBits - 1
)

// sorted returns the entries in the order of their terms, as numbers whose last entryBits are the entry.
func (b *builder) sorted() []uint64 {
	b.order = b.order[:0]
	for i := range b.entries {
		b.order = append(b.order, b.entries[i].head&^entryMask|uint64(i))
	}
	b.spare = spreadSort(b.order, b.spare)
	for i := 0; i < len(b.order); {
		end := i + 1
		for end < len(b.order) && b.order[i]>>entryBits == b.order[end]>>entryBits {
			end++
		}
		if end > i+1 {
			b.sortTies(b.order[i:end])
		}
		i = end
	}
	return b.order
}

// sortTies sorts entries whose terms begin alike.
func (b *builder) sortTies(order []uint64) {
	slices.SortFunc(order, func(x, y uint64) int {
		return b.long.compare(&b.entries[x&entryMask].term, &b.entries[y&entryMask].term)
	})
}
