package pdfworker

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matrix is a PDF transformation [a b c d e f].
type matrix [6]float64

func identity() matrix { return matrix{1, 0, 0, 1, 0, 0} }

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

type point struct{ x, y float64 }

func (m matrix) at(x, y float64) point {
	return point{m[0]*x + m[2]*y + m[4], m[1]*x + m[3]*y + m[5]}
}

// direction is the unit vector along the baseline.
func (m matrix) direction() point {
	length := math.Hypot(m[0], m[1])
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return point{1, 0}
	}
	return point{m[0] / length, m[1] / length}
}

// height is the font size on the page.
func (m matrix) height() float64 {
	h := math.Hypot(m[2], m[3])
	if math.IsNaN(h) || math.IsInf(h, 0) {
		return 0
	}
	return h
}

// layout joins placed strings, in the order of the content stream, into lines and blocks. Distances
// are in font sizes, measured along the baseline and across it.
type layout struct {
	blocks  []Block
	lines   []Line
	line    strings.Builder
	begin   float64 // of the line, along the baseline
	end     float64
	size    float64 // largest in the line
	last    point   // end of the last string
	dir     point
	started bool
}

const (
	spaceGap    = 0.17 // a space between Latin letters
	cjkGap      = 0.7  // a space between CJK characters: they are often set apart
	columnGap   = 1.5  // two spaces, so that columns stay apart
	backGap     = 1.0  // a step back of this much starts a line
	lineGap     = 0.5  // across the baseline: a new line
	blockGap    = 1.9  // across the baseline: a new block
	sizeChange  = 1.15 // a line this much larger or smaller than the one above starts a block
	sameHeading = 0.99 // cosine between directions that count as one
)

func (l *layout) add(text string, start, end, dir point, size float64) {
	if size <= 0 {
		size = 1
	}
	if !l.started {
		l.open(start, dir)
	} else {
		l.step(text, start, dir, size)
	}
	l.started = true
	if strings.TrimSpace(text) != "" {
		l.size = max(l.size, size)
	}
	l.line.WriteString(text)
	l.last, l.dir = end, dir
	l.end = max(l.end, along(end, dir))
}

// step decides what stands between the last string and the next.
func (l *layout) step(text string, start, dir point, size float64) {
	if l.dir.x*dir.x+l.dir.y*dir.y < sameHeading {
		l.closeBlock()
		l.open(start, dir)
		return
	}
	em := max(size, l.size)
	if l.size == 0 {
		em = size
	}
	gap := (along(start, dir) - along(l.last, dir)) / em
	across := math.Abs(acrossLine(start, dir)-acrossLine(l.last, dir)) / em
	switch {
	case across > blockGap:
		l.closeBlock()
		l.open(start, dir)
	case across > lineGap || gap < -backGap:
		l.closeLine()
		l.open(start, dir)
	default:
		l.space(text, gap)
	}
}

func (l *layout) space(text string, gap float64) {
	before, _ := utf8.DecodeLastRuneInString(l.line.String())
	after, _ := utf8.DecodeRuneInString(text)
	need := spaceGap
	if wide(before) && wide(after) {
		need = cjkGap
	}
	switch {
	case gap > columnGap:
		l.line.WriteString("  ")
	case gap > need && !unicode.IsSpace(before) && !unicode.IsSpace(after):
		l.line.WriteByte(' ')
	}
}

func (l *layout) open(start, dir point) {
	l.begin = along(start, dir)
	l.end = l.begin
}

// closeLine ends the line; a change of size against the block so far starts another block.
func (l *layout) closeLine() {
	text := strings.TrimSpace(l.line.String())
	line := Line{Text: text, Size: finite(l.size), Width: finite(l.end - l.begin)}
	l.line.Reset()
	l.size = 0
	if text == "" {
		return
	}
	if n := len(l.lines); n > 0 {
		if above := l.lines[n-1].Size; line.Size > above*sizeChange || line.Size*sizeChange < above {
			l.blocks = append(l.blocks, Block{Lines: l.lines})
			l.lines = nil
		}
	}
	l.lines = append(l.lines, line)
}

func (l *layout) closeBlock() {
	l.closeLine()
	if len(l.lines) > 0 {
		l.blocks = append(l.blocks, Block{Lines: l.lines})
		l.lines = nil
	}
}

func (l *layout) finish() []Block {
	l.closeBlock()
	return l.blocks
}

// finite rounds to a tenth and keeps what JSON cannot hold away.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*10) / 10
}

func along(p, dir point) float64      { return p.x*dir.x + p.y*dir.y }
func acrossLine(p, dir point) float64 { return p.y*dir.x - p.x*dir.y }

// wide reports characters that are written without spaces between them.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60
}
