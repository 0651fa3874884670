package chunk

import (
	"slices"
	"strings"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// origin is where the blocks under a chunk come from.
type origin struct {
	place            parse.Place
	pageFrom, pageTo int
	lineFrom, lineTo int
	kinds            []parse.Kind
}

// origin of text[start:end], which lies in the blocks first to last.
func (p *packer) origin(first, last, start, end int) origin {
	blocks := p.doc.Blocks
	o := origin{pageFrom: blocks[first].Page, pageTo: blocks[last].Page}
	for first < last && blankSpan(p.doc.Text, blocks[first]) {
		first++
	}
	o.place = blocks[first].Place
	for i := first; i <= last; i++ {
		b := blocks[i]
		if i > first && blankSpan(p.doc.Text, b) {
			continue
		}
		o.place = shared(o.place, b.Place)
		if !slices.Contains(o.kinds, b.Kind) {
			o.kinds = append(o.kinds, b.Kind)
		}
	}
	if o.pageTo < o.pageFrom { // attachments of a mail count pages of their own
		o.pageFrom, o.pageTo = 0, 0
	}
	if o.place.Attachment == blocks[first].Attachment && blocks[first].Attachment == blocks[last].Attachment {
		o.lineFrom, _ = p.lines(blocks[first], start, end)
		_, o.lineTo = p.lines(blocks[last], start, end)
	}
	if o.lineFrom == 0 || o.lineTo < o.lineFrom {
		o.lineFrom, o.lineTo = 0, 0
	}
	return o
}

// shared keeps what two places have in common.
func shared(a, b parse.Place) parse.Place {
	if a.Slide != b.Slide {
		a.Slide = 0
	}
	if a.Sheet != b.Sheet {
		a.Sheet = ""
	}
	if a.Chapter != b.Chapter {
		a.Chapter = ""
	}
	if a.Attachment != b.Attachment {
		a.Attachment = ""
	}
	return a
}

// lineMemo keeps what counting lines found out, so that each byte of a block is counted once: starts of
// chunks grow.
type lineMemo struct {
	exact map[int]bool // by start of the block: its text has as many lines as its source
	block int          // start of the block last asked for
	at    int          // where its lines were last counted to
	line  int          // source line there
}

// lines are the source lines of the part of a block that lies in text[start:end]. Where the block's
// text has as many lines as its source they are counted, else they are all of the block's.
func (p *packer) lines(b parse.Block, start, end int) (from, to int) {
	if b.Line == 0 || b.LineEnd < b.Line {
		return 0, 0
	}
	stop := b.Start + len(strings.TrimRight(p.doc.Text[b.Start:b.End], " \t\n"))
	m := &p.memo
	exact, known := m.exact[b.Start]
	if !known {
		if m.exact == nil {
			m.exact = map[int]bool{}
		}
		exact = strings.Count(p.doc.Text[b.Start:stop], "\n") == b.LineEnd-b.Line
		m.exact[b.Start] = exact
	}
	if !exact {
		return b.Line, b.LineEnd
	}
	start, end = max(b.Start, min(start, stop)), max(b.Start, min(end-1, stop))
	if m.block != b.Start || m.line == 0 || m.at > start {
		m.block, m.at, m.line = b.Start, b.Start, b.Line
	}
	m.line += strings.Count(p.doc.Text[m.at:start], "\n")
	m.at = start
	return m.line, m.line + strings.Count(p.doc.Text[start:max(start, end)], "\n")
}

// path is the heading path of the first block of content behind leading headings.
func (p *packer) path(first, last int) []string {
	at := first
	for at < last && (p.doc.Blocks[at].Kind == parse.KindHeading || blankSpan(p.doc.Text, p.doc.Blocks[at])) {
		at++
	}
	return p.doc.Blocks[at].HeadingPath
}
