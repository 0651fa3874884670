package lexical

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

	positions []Position // of all lexemes
}

// Document analyses a chunk: context (title, heading path) is indexed before text and with weight A, and
// counts in the length. Either may be empty.
func (a *Analyzer) Document(context, text string) Document {
	var d Document
	a.Fill(&d, context, text)
	return d
}

// Fill does what Document does, into the memory of d: whatever was taken from d before is spoilt, but for terms.
func (a *Analyzer) Fill(d *Document, context, text string) {
	s := a.scratch()
	defer a.release(s)
	s.begin()
	s.segment(a, s.normalize(context, a.han))
	inContext := len(s.tokens)
	offset := int32(0)
	if inContext > 0 {
		offset = s.tokens[inContext-1].position + positionGap
	}
	s.segment(a, s.normalize(text, a.han))
	b := &s.build
	b.begin(len(s.tokens), s.long)
	for i := range s.tokens[:inContext] {
		b.add(&s.tokens[i], 0, WeightA)
	}
	for i := inContext; i < len(s.tokens); i++ {
		b.add(&s.tokens[i], offset, WeightD)
	}
	b.document(d)
}
