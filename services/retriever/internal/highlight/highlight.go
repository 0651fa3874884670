// Package highlight finds the words and phrases of a query in a text and cuts pieces of it around them. It is
// pure.
package highlight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Bounds of what Find returns, in characters.
const (
	MaxPieces   = 3
	pieceLength = 240
	margin      = 40 // before the first mark of a piece, and at least behind its last
)

// Wanted is what to mark.
type Wanted struct {
	Analyzer *lexical.Analyzer
	Terms    []string         // analysed words
	Second   []string         // single characters, marked where nothing else is
	Prefixes []string         // beginnings of analysed words
	Phrases  [][]pgstore.Step // marked as a whole
}

// mark is a place in bytes.
type mark struct {
	start, end int
	what       int // the term, to tell how many different ones a piece holds
}

// Find returns the best pieces of a text in their order, none when it holds nothing wanted.
func Find(w Wanted, text string) []messages.Highlight {
	tokens := w.Analyzer.Analyze(text)
	marks := w.marks(tokens, w.Terms)
	if len(marks) == 0 {
		marks = w.marks(tokens, w.Second)
	}
	return pieces(text, merge(marks))
}

func (w *Wanted) marks(tokens []lexical.Token, terms []string) []mark {
	known := make(map[string]int, len(terms))
	for i, t := range terms {
		known[t] = i
	}
	var out []mark
	for _, t := range tokens {
		if i, ok := known[t.Term]; ok {
			out = append(out, mark{t.Start, t.End, i})
			continue
		}
		for i, p := range w.Prefixes {
			if strings.HasPrefix(t.Term, p) {
				out = append(out, mark{t.Start, t.End, len(terms) + i})
				break
			}
		}
	}
	primary := slices.DeleteFunc(slices.Clone(tokens), func(t lexical.Token) bool { return t.Kind != lexical.Word && t.Kind != lexical.Unigram })
	for i, p := range w.Phrases {
		out = append(out, occurrences(primary, p, len(terms)+len(w.Prefixes)+i)...)
	}
	return out
}

// occurrences finds a phrase among primary tokens, whose positions rise one by one.
func occurrences(primary []lexical.Token, phrase []pgstore.Step, what int) []mark {
	var out []mark
	for at := range primary {
		last := at
		ok := matches(primary[at], phrase[0])
		for _, s := range phrase[1:] {
			last += s.After
			if ok = ok && last < len(primary) && matches(primary[last], s); !ok {
				break
			}
		}
		if ok {
			out = append(out, mark{primary[at].Start, primary[last].End, what})
		}
	}
	return out
}

func matches(t lexical.Token, s pgstore.Step) bool {
	return t.Term == s.Lexeme || s.Prefix && strings.HasPrefix(t.Term, s.Lexeme)
}

// merge orders marks and joins those that overlap.
func merge(marks []mark) []mark {
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	out := marks[:0]
	for _, m := range marks {
		if n := len(out); n > 0 && m.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, m.end)
			continue
		}
		out = append(out, m)
	}
	return out
}

// piece is a run of marks.
type piece struct {
	from, to int // marks[from:to]
	distinct int
}

// pieces gathers marks that lie close together and keeps the groups with most different terms.
func pieces(text string, marks []mark) []messages.Highlight {
	if len(marks) == 0 {
		return nil
	}
	offsets := newOffsets(text)
	groups := group(offsets, marks)
	slices.SortStableFunc(groups, func(a, b piece) int { return cmp.Compare(b.distinct, a.distinct) })
	groups = groups[:min(len(groups), MaxPieces)]
	slices.SortFunc(groups, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	out := make([]messages.Highlight, len(groups))
	end := 0 // of the piece before
	for i, g := range groups {
		out[i] = offsets.highlight(marks[g.from:g.to], end)
		end = out[i].End
	}
	return out
}

func group(o *offsets, marks []mark) []piece {
	var out []piece
	for from := 0; from < len(marks); {
		seen := map[int]struct{}{}
		to := from
		for to < len(marks) && (to == from || o.rune(marks[to].end)-o.rune(marks[from].start) <= pieceLength-2*margin) {
			seen[marks[to].what] = struct{}{}
			to++
		}
		out = append(out, piece{from, to, len(seen)})
		from = to
	}
	return out
}

// offsets turns bytes of a text into characters and back.
type offsets struct {
	text  string
	start []int // byte offset of every character, and of the end
}

func newOffsets(text string) *offsets {
	o := &offsets{text: text, start: make([]int, 0, len(text)+1)}
	for i := range text {
		o.start = append(o.start, i)
	}
	o.start = append(o.start, len(text))
	return o
}

// rune is the number of the character at a byte.
func (o *offsets) rune(at int) int {
	n, _ := slices.BinarySearch(o.start, at)
	return n
}

// highlight is the piece around marks, with no more of the text before after characters.
func (o *offsets) highlight(marks []mark, after int) messages.Highlight {
	h := messages.Highlight{Marks: make([]messages.Mark, len(marks))}
	for i, m := range marks {
		h.Marks[i] = messages.Mark{Start: o.rune(m.start), End: o.rune(m.end)}
	}
	last := h.Marks[len(marks)-1].End
	h.Start = max(h.Marks[0].Start-margin, after)
	h.End = min(max(h.Start+pieceLength, last), len(o.start)-1)
	if h.Start > 0 && h.Start > after {
		h.Start = o.space(h.Start, h.Marks[0].Start)
	}
	if h.End < len(o.start)-1 {
		h.End = o.lastSpace(h.End, last)
	}
	h.Text = o.text[o.start[h.Start]:o.start[h.End]]
	return h
}

// space is the first character from from on that follows a space, from itself when there is none before to.
func (o *offsets) space(from, to int) int {
	for i := from; i < to; i++ {
		if o.text[o.start[i]] == ' ' || o.text[o.start[i]] == '\n' {
			return i + 1
		}
	}
	return from
}

// lastSpace is the last space before from, from itself when there is none behind to.
func (o *offsets) lastSpace(from, to int) int {
	for i := from; i > to; i-- {
		if o.text[o.start[i]] == ' ' || o.text[o.start[i]] == '\n' {
			return i
		}
	}
	return from
}
