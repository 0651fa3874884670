package lexical

import (
	"cmp"
	"math/bits"
	"slices"
)

// builder gathers the lexemes of one document.
type builder struct {
	hash    termHash
	terms   termTable
	entries []builderEntry // one for each term
	places  []place
	order   []uint64
	spare   []uint64
	length  int
	bytes   int // upper bound of what is stored
	cut     bool
}

type builderEntry struct {
	count  int32
	next   int32  // where its next position goes in the result, set by document
	newest uint16 // its last position
}

// place is one occurrence: entry and position.
type place struct {
	entry int32
	Position
}

func newBuilder(hash termHash) builder {
	return builder{hash: hash}
}

// begin readies the builder for a document of about so many tokens.
func (b *builder) begin(tokens int) {
	b.terms.reset(tokens)
	b.entries, b.places = b.entries[:0], b.places[:0]
	b.length, b.bytes, b.cut = 0, 0, false
}

func (b *builder) forget() { b.terms.forget() }

// add takes one token, at its position plus offset.
func (b *builder) add(t *Token, offset int, weight Weight) {
	if t.Kind == Word || t.Kind == Unigram {
		b.length++
	}
	pos := t.Position + offset
	beyond := pos > MaxPosition
	if beyond {
		pos, b.cut = MaxPosition, true
	}
	i := b.entry(t)
	if i < 0 {
		return
	}
	e := &b.entries[i]
	if e.newest == uint16(pos) || beyond && e.newest != 0 {
		return
	}
	if e.count == MaxPositions || b.bytes+2 > maxStoredBytes {
		b.cut = true
		return
	}
	e.count++
	e.newest = uint16(pos)
	b.bytes += 2
	b.places = append(b.places, place{entry: i, Position: Position{Pos: uint16(pos), Weight: weight}})
}

// entry returns the entry of a token's term, a new one when it has none; -1 when a limit forbids that.
func (b *builder) entry(t *Token) int32 {
	hash := t.hash
	if hash == 0 {
		hash = b.hash.of(t.Term)
	}
	i, slot := b.terms.find(t.Term, hash)
	if i >= 0 {
		return i
	}
	// The count of positions takes two bytes, one more may go to alignment, and the first position is paid here
	// so that no entry stays without one.
	need := len(t.Term) + 5
	if len(b.entries) == MaxLexemes || b.bytes+need > maxStoredBytes {
		b.cut = true
		return -1
	}
	b.bytes += need
	b.entries = append(b.entries, builderEntry{})
	return b.terms.insert(t.Term, hash, slot)
}

// document returns what was gathered.
func (b *builder) document() Document {
	d := Document{Length: b.length, Truncated: b.cut}
	if len(b.entries) == 0 {
		return d
	}
	d.Lexemes = make([]Lexeme, len(b.entries))
	positions := make([]Position, len(b.places))
	first := int32(0)
	for i, o := range b.sorted() {
		entry := o & entryMask
		e := &b.entries[entry]
		e.next = first
		first += e.count
		d.Lexemes[i] = Lexeme{Term: b.terms.terms[entry].term, Positions: positions[e.next:first:first]}
	}
	for _, p := range b.places {
		e := &b.entries[p.entry]
		positions[e.next] = p.Position
		e.next++
	}
	return d
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
	for i := range b.terms.terms {
		// A shorter term is filled up with NUL, which no term holds.
		prefix := bits.ReverseBytes64(padded(b.terms.terms[i].term))
		b.order = append(b.order, prefix&^entryMask|uint64(i))
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
		return cmp.Compare(b.terms.terms[x&entryMask].term, b.terms.terms[y&entryMask].term)
	})
}
