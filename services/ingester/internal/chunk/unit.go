package chunk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// unit is the least that packing moves: a sentence, a list line, a table row, a code block, a heading,
// or a piece of one that is too long.
type unit struct {
	start, end int  // content
	next       int  // start of the following unit: what lies between is white space
	block      int  // index of its block
	tokens     int  // of text[start:end]; may be a little over
	full       int  // of text[start:next]
	limit      int  // what a chunk that begins with it may spend on it
	lead       bool // heading or table header: should not end a chunk
	running    bool // of running text or a list: may be cut to keep a heading company
	sentence   bool // running and whole: may be repeated as overlap
}

// unitMaker lists the units of blocks.
type unitMaker struct {
	text    string
	counter Counter
	bytes   int
	out     []unit
	walk    sentenceWalk
}

// blockUnits appends the units of one block. whole is what a chunk that begins with the block may
// spend, rest what one that begins inside it may: context that is repeated inside costs the difference.
func (m *unitMaker) blockUnits(index int, b parse.Block, whole, rest int) {
	from := len(m.out)
	switch b.Kind {
	case parse.KindCode:
		if start := contentStart(m.text, b); m.fits(start, b.End, whole) {
			m.append(start, b.End, whole)
		} else {
			m.lines(b.Start, b.End, rest)
		}
	case parse.KindTable:
		at := b.Start
		if b.HeaderEnd > b.Start && m.fits(b.Start, b.HeaderEnd, whole) {
			m.append(b.Start, b.HeaderEnd, whole)
			at = b.HeaderEnd
		}
		m.lines(at, b.End, rest)
	case parse.KindHeading:
		m.append(b.Start, b.End, whole)
	default:
		m.sentences(b.Start, b.End, b.Kind != parse.KindList, rest)
	}
	for i := from; i < len(m.out); i++ {
		u := &m.out[i]
		u.block = index
		u.lead = b.Kind == parse.KindHeading || b.HeaderEnd > b.Start && u.end <= b.HeaderEnd
		u.running = b.Kind == parse.KindParagraph || b.Kind == parse.KindList
		u.sentence = u.running
	}
}

// append adds text[from:to] without the white space around it, if anything is left. Indentation stays.
func (m *unitMaker) append(from, to, limit int) {
	start, end := trimSpan(m.text, from, to)
	if start < end {
		m.out = append(m.out, unit{start: indented(m.text, from, start), end: end, limit: limit})
	}
}

func (m *unitMaker) lines(from, to, limit int) {
	for from < to {
		end := to
		if n := strings.IndexByte(m.text[from:to], '\n'); n >= 0 {
			end = from + n + 1
		}
		m.append(from, end, limit)
		from = end
	}
}

// sentences appends sentences. In running text a line end alone ends none.
func (m *unitMaker) sentences(from, to int, running bool, limit int) {
	it := &m.walk
	it.text, it.at = m.text[:to], from
	start, segment := from, from
	for it.next() {
		end := beforeOpening(m.text, segment, it.at)
		if !goesOn(m.text[segment:end], running) && !joined(m.text, end) {
			m.append(start, end, limit)
			start = end
		}
		segment = end
	}
	m.append(start, to, limit)
}

// goesOn reports a boundary that is none: a line end inside running text, the point of an
// abbreviation, or white space alone. text is what the last boundary left.
func goesOn(text string, running bool) bool {
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	if trimmed == "" {
		return true
	}
	last, size := utf8.DecodeLastRuneInString(trimmed)
	lineEnd := strings.Contains(text[len(trimmed):], "\n")
	if last == '.' && !lineEnd {
		return abbreviation(trimmed[:len(trimmed)-size])
	}
	return lineEnd && running && !strings.ContainsRune(".!?。！？…」』”’\"')）]】》", last)
}

// beforeOpening moves a boundary to the left of brackets and quotes that open: the Unicode rules count
// them to the sentence before when no space stands between, as in CJK text.
func beforeOpening(text string, from, end int) int {
	for at := end; at > from; {
		r, size := utf8.DecodeLastRuneInString(text[from:at])
		if !unicode.In(r, unicode.Ps, unicode.Pi) {
			if at > from {
				return at
			}
			break
		}
		at -= size
	}
	return end
}

// joined reports that a sentence boundary is inside a grapheme: marks, joiners and emoji modifiers
// belong to what stands before them.
func joined(text string, at int) bool {
	if at == len(text) || text[at] < utf8.RuneSelf {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	return r == '\u200d' || r >= 0x1f3fb && r <= 0x1f3ff || unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc)
}

// abbreviation reports that the word before a point is one that does not end a sentence.
func abbreviation(text string) bool {
	const longest = 8
	at := len(text)
	for at > 0 && len(text)-at <= longest {
		c := text[at-1]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			break
		}
		at--
	}
	word := text[at:]
	if len(word) == 1 && word[0] >= 'A' && word[0] <= 'Z' {
		return true // an initial
	}
	switch strings.ToLower(word) {
	case "mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "gen", "col", "sgt", "fig", "figs", "eq", "eqs", "sec",
		"vol", "no", "nos", "pp", "ed", "eds", "vs", "cf", "approx", "dept", "est", "inc", "ltd", "co", "corp", "al":
		return word != "no" // at the end of a sentence "no." is a word; "No. 7" is not
	}
	return false
}

// settle appends the units to out, with what depends on the following unit set, and cut where they are over
// their limit. end is where the following section begins.
func (m *unitMaker) settle(out []unit, end int) []unit {
	out = slices.Grow(out, len(m.out))
	for i, u := range m.out {
		u.next = end
		if i+1 < len(m.out) {
			u.next = m.out[i+1].start
		}
		if u.end-u.start <= m.bytes {
			if m.weigh(&u); u.tokens <= u.limit {
				out = append(out, u)
				continue
			}
		}
		out = append(out, m.pieces(u, u.limit)...)
	}
	return out
}

// weigh counts a unit; a short gap behind it is not worth a second count.
func (m *unitMaker) weigh(u *unit) {
	const short = 8
	u.full = m.counter.Count(m.text[u.start:u.next])
	u.tokens = u.full
	if u.next-u.end > short {
		u.tokens = m.counter.Count(m.text[u.start:u.end])
	}
}

// fits reports that a span can be one unit.
func (m *unitMaker) fits(from, to, limit int) bool {
	start, end := trimSpan(m.text, from, to)
	return end-start <= m.bytes && m.counter.Count(m.text[start:end]) <= limit
}

// contentStart is where the first unit of a block begins.
func contentStart(text string, b parse.Block) int {
	start, _ := trimSpan(text, b.Start, b.End)
	return indented(text, b.Start, start)
}

// indented moves start back over the indentation of its line: it belongs to the line, not to the
// white space behind the line above.
func indented(text string, from, start int) int {
	at := start
	for at > from && (text[at-1] == ' ' || text[at-1] == '\t') {
		at--
	}
	if at == from || text[at-1] == '\n' {
		return at
	}
	return start
}

// trimSpan takes white space off both ends; an empty span is given at its end.
func trimSpan(text string, from, to int) (int, int) {
	end := from + len(strings.TrimRightFunc(text[from:to], unicode.IsSpace))
	if end == from {
		return to, to
	}
	start := end - len(strings.TrimLeftFunc(text[from:end], unicode.IsSpace))
	if start > from && joined(text, start) { // a mark that stands on a space
		_, size := utf8.DecodeLastRuneInString(text[from:start])
		start -= size
	}
	return start, end
}
