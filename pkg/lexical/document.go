package lexical

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Limits of a [Document]. A tsvector stores positions in 14 bits and takes at most 1 MB; beyond some of its
// limits the server spoils a value without an error, so everything here stays well inside.
const (
	MaxTermBytes   = 512    // a longer term is cut on a rune boundary
	MaxPositions   = 255    // of one lexeme; further ones are left out
	MaxPosition    = 16_383 // a lexeme met only behind it has this one position
	MaxLexemes     = 20_000 // distinct ones; further ones are left out
	maxStoredBytes = 1_000_000
)

// positionGap lies between the last word of the context and the first of the text, so that no phrase spans
// the two.
const positionGap = 16

// Weight is the label of a position in a tsvector.
type Weight byte

// The weights in use: a field can be boosted without indexing anew.
const (
	WeightA Weight = 'A' // context: title and heading path
	WeightD Weight = 'D' // text
)

// Position is one place of a lexeme in a document.
type Position struct {
	Pos    uint16 // from 1 to MaxPosition
	Weight Weight
}

// Lexeme is one distinct term of a document with its places, which are in rising order, each once.
type Lexeme struct {
	Term      string
	Positions []Position // at least one
}

// TF returns the term frequency that BM25 uses. It is the number of stored positions, so that a reader of
// the stored value finds the same.
func (l Lexeme) TF() int { return len(l.Positions) }

// Document is what is indexed of one chunk.
type Document struct {
	Lexemes []Lexeme // in the order of their terms' bytes
	// Length is the document length for BM25: the number of words and unigrams, whatever the limits left out
	// of Lexemes. Stop words count like any word: without them nDCG@10 is the same within noise on scifact
	// (0.6845 instead of 0.6841) and nfcorpus (0.3170, 0.3165), and lower over nine English sets (mean
	// 0.5853, 0.5863).
	Length int
	// Truncated says that a limit left out a term or an occurrence. The document can still be found by
	// what is there. A term cut at MaxTermBytes does not count: queries cut it alike.
	Truncated bool
}

// Document analyses a chunk: context (title, heading path) is indexed before text and with weight A, and
// counts in the length. Either may be empty. The lexemes may share memory with context and text.
func (a *Analyzer) Document(context, text string) Document {
	s := a.scratch()
	defer a.release(s)
	b := &s.build
	b.begin()
	s.tokens = s.tokens[:0]
	s.segment(a, s.normalize(context, a.han))
	inContext := len(s.tokens)
	offset := 0
	if inContext > 0 {
		offset = s.tokens[inContext-1].Position + positionGap
	}
	s.segment(a, s.normalize(text, a.han))
	for i, t := range s.tokens {
		if i < inContext {
			b.add(t, 0, WeightA)
		} else {
			b.add(t, offset, WeightD)
		}
	}
	return b.document()
}

// builder gathers the lexemes of one document.
type builder struct {
	index   map[string]int32 // term → place in entries
	entries []builderEntry
	places  []place
	order   []ordered
	length  int
	bytes   int // upper bound of what is stored
	cut     bool
}

type builderEntry struct {
	term   string
	count  int32
	newest uint16 // its last position
	lexeme int32  // its place in the result, set by document
}

// place is one occurrence: entry and position.
type place struct {
	entry int32
	Position
}

func (b *builder) begin() {
	b.entries, b.places = b.entries[:0], b.places[:0]
	b.length, b.bytes, b.cut = 0, 0, false
}

func (b *builder) forget() {
	clear(b.index)
	clear(b.entries)
	b.entries = b.entries[:0]
}

// add takes one token, at its position plus offset.
func (b *builder) add(t Token, offset int, weight Weight) {
	if t.Kind == Word || t.Kind == Unigram {
		b.length++
	}
	pos := t.Position + offset
	beyond := pos > MaxPosition
	if beyond {
		pos, b.cut = MaxPosition, true
	}
	i, ok := b.index[t.Term]
	if !ok {
		if i, ok = b.newEntry(t.Term); !ok {
			return
		}
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

// newEntry makes an entry for term, or reports that a limit forbids it.
func (b *builder) newEntry(term string) (int32, bool) {
	// The count of positions takes two bytes, one more may go to alignment, and the first position is paid here
	// so that no entry stays without one.
	need := len(term) + 5
	if len(b.entries) == MaxLexemes || b.bytes+need > maxStoredBytes {
		b.cut = true
		return 0, false
	}
	b.bytes += need
	i := int32(len(b.entries))
	b.entries = append(b.entries, builderEntry{term: term})
	b.index[term] = i
	return i, true
}

// document returns what was gathered.
func (b *builder) document() Document {
	d := Document{Length: b.length, Truncated: b.cut}
	if len(b.entries) == 0 {
		return d
	}
	d.Lexemes = make([]Lexeme, len(b.entries))
	positions := make([]Position, len(b.places))
	for i, o := range b.sorted() {
		e := &b.entries[o.entry]
		d.Lexemes[i] = Lexeme{Term: e.term, Positions: positions[:0:e.count]}
		positions = positions[e.count:]
		e.lexeme = int32(i)
	}
	for _, p := range b.places {
		l := &d.Lexemes[b.entries[p.entry].lexeme]
		l.Positions = append(l.Positions, p.Position)
	}
	return d
}

// ordered is an entry to be sorted: the first eight bytes of its term decide most comparisons.
type ordered struct {
	prefix uint64
	entry  int32
}

// sorted returns the entries' places in the order of their terms.
func (b *builder) sorted() []ordered {
	b.order = b.order[:0]
	for i := range b.entries {
		b.order = append(b.order, ordered{prefix: prefix(b.entries[i].term), entry: int32(i)})
	}
	slices.SortFunc(b.order, func(x, y ordered) int {
		if x.prefix != y.prefix {
			return cmp.Compare(x.prefix, y.prefix)
		}
		return cmp.Compare(b.entries[x.entry].term, b.entries[y.entry].term)
	})
	return b.order
}

// prefix returns the first eight bytes of term as a number that sorts like them; a shorter term is filled up
// with NUL, which no term holds.
func prefix(term string) uint64 {
	if len(term) >= 8 {
		return binary.BigEndian.Uint64([]byte(term[:8]))
	}
	n := uint64(0)
	for i := range len(term) {
		n |= uint64(term[i]) << (56 - 8*i)
	}
	return n
}
