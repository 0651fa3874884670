package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// pieces cuts a unit that is too long: at clauses, else words, else graphemes, else runes. The first
// piece costs at most first tokens, the others at most the unit's limit, unless a single rune costs more.
func (m *unitMaker) pieces(u unit, first int) []unit {
	if u.start > 0 { // a line that is cut has no use for its indentation
		u.start, _ = trimSpan(m.text, u.start, u.end)
	}
	c := &cutter{m: m, unit: u, begin: u.start, limit: max(first, 1), later: max(u.limit, 1)}
	c.walk()
	c.emit(u.end)
	for i := range c.out {
		p := &c.out[i]
		p.next = u.next
		if i+1 < len(c.out) {
			p.next = c.out[i+1].start
		}
		m.weigh(p)
	}
	return c.out
}

// border is a place where the current piece may end.
type border struct {
	at     int // 0: none
	tokens int // of the piece up to there
}

// cutter walks atoms (a word, a CJK character, at most some 48 bytes) and ends a piece when the next
// atom does not fit. Counts of atoms are added up, so every byte is counted once.
type cutter struct {
	m      *unitMaker
	unit   unit
	begin  int // of the current piece
	used   int // tokens of the current piece
	limit  int
	later  int
	clause border
	word   border
	out    []unit
}

const (
	atomBytes = 48
	gulf      = 1024
)

func (c *cutter) walk() {
	text := c.m.text[:c.unit.end]
	it := graphemes.FromString(text[c.unit.start:])
	start, content := c.unit.start, c.unit.start // of the atom; end of the last one's content
	for it.Next() {
		end := c.unit.start + it.End()
		r, _ := utf8.DecodeRuneInString(it.Value())
		space := unicode.IsSpace(r)
		next, _ := utf8.DecodeRuneInString(text[end:])
		last := end == c.unit.end
		switch {
		case space && !last && unicode.IsSpace(next):
			continue
		case !space && !last && !wide(r) && !wide(next) && end-start < atomBytes && !unicode.IsSpace(next):
			continue
		case !space && !last && unicode.IsSpace(next): // the space belongs to this atom
			continue
		}
		c.atom(start, end, content)
		content = start + len(strings.TrimRightFunc(text[start:end], unicode.IsSpace))
		start = end
	}
}

// atom adds text[start:end] to the current piece. It is counted with the white space before it, as
// models count words, and without the white space behind it.
func (c *cutter) atom(start, end, content int) {
	text := c.m.text
	stop := start + len(strings.TrimRightFunc(text[start:end], unicode.IsSpace))
	if stop == start { // the document begins with white space, or a line with its indentation
		c.used += c.m.counter.Count(text[start:end])
		return
	}
	cost := c.m.counter.Count(text[min(content, start):stop])
	if cost > c.later && start > c.begin && content < start { // a piece that begins here has no white space to pay for
		if strings.TrimSpace(text[c.begin:start]) != "" {
			c.end(border{start, c.used})
		}
		cost = c.m.counter.Count(text[start:stop])
	}
	if cost > c.later || stop-start > c.m.bytes {
		c.small(start, stop)
	} else {
		c.place(start, stop, cost)
	}
	if end > stop || wideAt(text, stop) { // the white space goes with this atom
		c.word = border{end, c.used}
		if clauseEnd(text[start:stop]) || strings.Contains(text[stop:end], "\n") {
			c.clause = border{end, c.used}
		}
	}
	if end-stop > gulf { // a gulf of white space stays behind the piece
		c.end(border{end, c.used})
	}
}

// small places the graphemes of an atom that is itself too long, and the runes of such a grapheme.
func (c *cutter) small(start, end int) {
	it := graphemes.FromString(c.m.text[start:end])
	for it.Next() {
		from, to := start+it.Start(), start+it.End()
		cost := c.m.counter.Count(c.m.text[from:to])
		if strings.TrimSpace(c.m.text[from:to]) == "" {
			c.used += cost // white space never begins a piece
			continue
		}
		if cost <= c.later && to-from <= c.m.bytes {
			c.place(from, to, cost)
			continue
		}
		for from < to {
			r, size := utf8.DecodeRuneInString(c.m.text[from:to])
			cost := c.m.counter.Count(c.m.text[from : from+size])
			if unicode.IsSpace(r) {
				c.used += cost
			} else {
				c.place(from, from+size, cost)
			}
			from += size
		}
	}
}

// place adds a span that stays whole, ending the current piece before it when it does not fit.
func (c *cutter) place(start, end, cost int) {
	for start > c.begin && (c.used+cost > c.limit || end-c.begin > c.m.bytes) {
		if end-c.begin <= gulf && strings.TrimSpace(c.m.text[c.begin:start]) == "" {
			break // white space alone makes no piece
		}
		best := border{start, c.used}
		switch {
		case c.clause.at > c.begin && c.clause.tokens*2 >= c.limit:
			best = c.clause
		case c.word.at > c.begin && c.word.tokens*2 >= c.limit:
			best = c.word
		}
		c.end(best)
	}
	c.used += cost
}

// end closes the current piece at a border; what lies behind it begins the next one.
func (c *cutter) end(b border) {
	c.emit(b.at)
	c.begin, c.used, c.limit = b.at, c.used-b.tokens, c.later
	for _, kept := range []*border{&c.clause, &c.word} {
		if kept.at <= b.at {
			*kept = border{}
		} else {
			kept.tokens -= b.tokens
		}
	}
}

// emit appends the piece up to end. A piece of white space only is possible when a document begins
// with more of it than a chunk holds.
func (c *cutter) emit(end int) {
	if end <= c.begin {
		return
	}
	for end-c.begin > c.m.bytes && strings.TrimSpace(c.m.text[c.begin:end]) == "" {
		p := c.unit
		p.start, p.end, p.sentence = c.begin, c.begin+c.m.bytes, false
		for !utf8.RuneStart(c.m.text[p.end]) {
			p.end--
		}
		c.out = append(c.out, p)
		c.begin = p.end
	}
	p := c.unit
	p.start, p.sentence = c.begin, false
	p.end = c.begin + len(strings.TrimRightFunc(c.m.text[c.begin:end], unicode.IsSpace))
	if p.end == c.begin {
		p.end = end
	}
	c.out = append(c.out, p)
}

// clauseEnd reports that an atom ends a clause.
func clauseEnd(atom string) bool {
	last, _ := utf8.DecodeLastRuneInString(atom)
	return strings.ContainsRune(",;:|.!?，、；：。！？…", last)
}

func wideAt(text string, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:end])
	return wide(before)
}
