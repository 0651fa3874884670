package chunk

import (
	"slices"
	"sort"
	"strings"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// packer fills chunks with units, section by section. A section is what stands under one heading
// in one place.
type packer struct {
	doc      parse.Document
	counter  Counter
	size     int // tokens
	overlap  int // tokens
	bytes    int
	sections bool
	out      []Chunk
	headings headingMemo
	memo     lineMemo
	maker    unitMaker
	section  section // the one at hand
}

func (p *packer) run() []Chunk {
	blocks := p.doc.Blocks
	p.maker = unitMaker{text: p.doc.Text, counter: p.counter, bytes: p.bytes}
	begin := 0 // the first unit also takes white space before it
	for from := 0; from < len(blocks); {
		to := p.sectionEnd(from)
		p.units(from, to, begin)
		if len(p.maker.out) == 0 { // nothing but white space: it belongs to what comes before
			from = to
			continue
		}
		next := p.nextStart(to)
		p.pack(p.maker.settle(p.section.units[:0], next))
		begin, from = -1, to
	}
	if len(p.out) == 0 {
		p.blank()
	}
	for i := range p.out {
		p.out[i].Ordinal = i
	}
	return p.out
}

// blank cuts a text of white space only.
func (p *packer) blank() {
	all := unit{start: 0, end: len(p.doc.Text), next: len(p.doc.Text), limit: p.size - p.cost(p.context(0, 0))}
	p.pack(p.maker.pieces(all, all.limit))
}

// pack makes chunks of the units of one section.
func (p *packer) pack(units []unit) {
	p.section = section{packer: p, units: units, first: len(p.out), cores: p.section.cores[:0]}
	p.section.pack()
}

// sectionEnd is the block behind the section that begins at from: the next heading, but a section
// that has headings only takes the following one in.
func (p *packer) sectionEnd(from int) int {
	blocks := p.doc.Blocks
	if !p.sections {
		return len(blocks)
	}
	body := false
	for i := from; i < len(blocks); i++ {
		if blocks[i].Place != blocks[from].Place {
			return i
		}
		if blocks[i].Kind == parse.KindHeading {
			if body {
				return i
			}
			continue
		}
		body = body || !blankSpan(p.doc.Text, blocks[i])
	}
	return len(blocks)
}

// units makes the units of a section, not yet weighed. begin replaces the first unit's start when the
// document begins here.
func (p *packer) units(from, to, begin int) {
	m := &p.maker
	m.out = m.out[:0]
	for i := from; i < to; i++ {
		b := p.doc.Blocks[i]
		whole := max(1, p.size-p.cost(p.context(i, b.Start)))
		rest := whole
		if b.HeaderEnd > b.Start || b.Header != "" || b.Lang != "" {
			rest = max(1, p.size-p.cost(p.context(i, b.End)))
		}
		m.blockUnits(i, b, whole, rest)
	}
	if begin >= 0 && len(m.out) > 0 {
		m.out[0].start = begin
	}
}

// cost of a context with the line end behind it.
func (p *packer) cost(context string) int {
	if context == "" {
		return 0
	}
	return p.counter.Count(context + "\n")
}

// nextStart is where the first content behind a section begins, or the end of the text.
func (p *packer) nextStart(block int) int {
	for ; block < len(p.doc.Blocks); block++ {
		if b := p.doc.Blocks[block]; !blankSpan(p.doc.Text, b) {
			return contentStart(p.doc.Text, b)
		}
	}
	return len(p.doc.Text)
}

func blankSpan(text string, b parse.Block) bool { return strings.TrimSpace(text[b.Start:b.End]) == "" }

// blockAt is the block that holds a byte.
func (p *packer) blockAt(at int) int {
	return sort.Search(len(p.doc.Blocks), func(i int) bool { return p.doc.Blocks[i].End > at })
}

// chunk builds the chunk of a span.
func (p *packer) chunk(start, core, end int, context string, tokens int) Chunk {
	last := min(p.blockAt(max(end-1, start)), len(p.doc.Blocks)-1)
	first := min(p.blockAt(start), last)
	o := p.origin(first, last, start, end)
	return Chunk{
		Start: start, End: end, CoreStart: core, Text: p.doc.Text[start:end],
		HeadingPath: p.path(min(p.blockAt(core), last), last), Place: o.place,
		PageFrom: o.pageFrom, PageTo: o.pageTo, LineFrom: o.lineFrom, LineTo: o.lineTo,
		Kinds: o.kinds, Tokens: tokens, Context: context,
	}
}

// section packs the units of one section.
type section struct {
	*packer
	units []unit
	first int   // chunk of the section
	cores []int // first unit of each chunk
}

func (s *section) pack() {
	for i := 0; i < len(s.units); {
		i = s.next(i)
	}
	s.mergeTail()
}

// next makes the chunk whose core begins with unit i and returns the first unit behind it.
func (s *section) next(i int) int {
	context := s.packer.context(s.units[i].block, s.units[i].start)
	budget := s.size - s.cost(context)
	from := s.overlapFrom(i, budget)
	end := s.fill(i, from, budget)
	end = s.leadIn(i, end, budget)
	end = s.breakAt(i, end)
	for {
		start, stop := s.start(i, from), s.units[end-1].end
		tokens := s.counter.Count(join(context, s.doc.Text[start:stop]))
		switch {
		case tokens <= s.size:
			s.cores = append(s.cores, i)
			s.out = append(s.out, s.chunk(start, s.units[i].start, stop, context, tokens))
			return end
		case from < i: // counts of parts did not add up: give up overlap first, then units
			from++
		case end > i+1:
			end--
		case !s.shrink(i, tokens):
			s.cores = append(s.cores, i)
			s.out = append(s.out, s.chunk(start, s.units[i].start, stop, context, tokens))
			return end
		}
	}
}

// start of a chunk: its first repeated unit, or its core.
func (s *section) start(core, from int) int { return s.units[min(from, core)].start }

// fill adds units from i while they fit behind the overlap that begins at unit from.
func (s *section) fill(i, from, budget int) int {
	used := 0
	for k := from; k < i; k++ {
		used += s.units[k].full
	}
	start, end := s.start(i, from), i
	for end < len(s.units) {
		u := s.units[end]
		if used+u.tokens > budget || u.end-start > s.bytes {
			break
		}
		used += u.full
		end++
	}
	return max(end, i+1)
}

// leadIn keeps a heading from standing alone: when only headings fitted and running text follows, its
// first sentence is cut to what is left.
func (s *section) leadIn(i, end, budget int) int {
	used := 0
	for k := i; k < end; k++ {
		if !s.units[k].lead {
			return end
		}
		used += s.units[k].full
	}
	const least = 8 // tokens worth cutting for
	if end == len(s.units) || !s.units[end].running || budget-used < least {
		return end
	}
	u := s.units[end]
	pieces := s.maker.pieces(u, min(budget-used, u.limit))
	if len(pieces) < 2 || pieces[0].tokens > budget-used || pieces[0].end-s.units[i].start > s.bytes {
		return end
	}
	s.units = slices.Replace(s.units, end, end+1, pieces...)
	return end + 1
}

// breakAt moves the end back to a block border when the chunk stays three quarters full, and off a
// heading or table header.
func (s *section) breakAt(i, end int) int {
	if end < len(s.units) {
		total, used := 0, 0
		for k := i; k < end; k++ {
			total += s.units[k].full
		}
		best := end
		for k := i; k < end; k++ {
			used += s.units[k].full
			if used*4 >= total*3 && s.units[k+1].block != s.units[k].block {
				best = k + 1
			}
		}
		end = best
	}
	last := end
	for last > i+1 && last < len(s.units) && s.units[last-1].lead {
		last--
	}
	if last == i+1 && s.units[i].lead { // headings only: leave them together
		return end
	}
	return last
}

// overlapFrom is the first unit of the longest run of whole sentences before unit i, in the chunk
// before, that is within the overlap and leaves room for unit i.
func (s *section) overlapFrom(i, budget int) int {
	if s.overlap == 0 || len(s.cores) == 0 {
		return i
	}
	core := s.cores[len(s.cores)-1]
	from, used := i, 0
	for from > core && s.units[from-1].sentence {
		used += s.units[from-1].full
		if used > s.overlap || used+s.units[i].tokens > budget || s.units[i].end-s.units[from-1].start > s.bytes {
			break
		}
		from--
	}
	for from < i && s.counter.Count(s.doc.Text[s.units[from].start:s.units[i].start]) > s.overlap {
		from++
	}
	return from
}

// shrink cuts unit i where its parts counted less than the whole. It reports whether that changed it.
func (s *section) shrink(i, tokens int) bool {
	u := s.units[i]
	u.limit = max(1, min(u.limit, u.tokens)-(tokens-s.size))
	pieces := s.maker.pieces(u, u.limit)
	if len(pieces) < 2 {
		return false
	}
	s.units = slices.Replace(s.units, i, i+1, pieces...)
	return true
}

// mergeTail gives a last chunk of less than a quarter to the one before it, if that has room.
func (s *section) mergeTail() {
	n := len(s.out)
	if n < s.first+2 || s.out[n-1].Tokens*4 >= s.size {
		return
	}
	before, tail := s.out[n-2], s.out[n-1]
	if tail.End-before.Start > s.bytes {
		return
	}
	tokens := s.counter.Count(join(before.Context, s.doc.Text[before.Start:tail.End]))
	if tokens > s.size || s.doc.Blocks[s.blockAt(tail.CoreStart)].Kind == parse.KindHeading {
		return
	}
	s.out = append(s.out[:n-2], s.chunk(before.Start, before.CoreStart, tail.End, before.Context, tokens))
}
