package pdf

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Block is a run of lines that stand together, with its page.
type Block struct {
	Page  int
	Lines []Line
}

// Layout joins the lines of pages into blocks. Order is that of the content. Lines that recur on most
// pages at one height, as running headers and page numbers do, are kept once; dropped counts the rest.
func Layout(pages []Page) (blocks []Block, dropped int) {
	rows := make([][]Line, len(pages))
	for i, p := range pages {
		rows[i] = rowsOf(p.Lines)
	}
	dropped = dropRunning(rows)
	leading := commonLeading(rows)
	for i, p := range pages {
		for _, lines := range blocksOf(rows[i], leading) {
			blocks = append(blocks, Block{Page: p.Number, Lines: lines})
		}
	}
	return blocks, dropped
}

const (
	sameRow    = 0.4  // of the size, between baselines
	spaceGap   = 0.17 // of the size, along the baseline: a space
	sizeChange = 1.15 // a line this much larger or smaller than the one above starts a block
	sameAngle  = 0.05 // radians
)

// rowsOf joins pieces that stand on one baseline: raised signs and cells of a table cut lines apart.
func rowsOf(lines []Line) []Line {
	var out []Line
	for _, l := range lines {
		if n := len(out); n > 0 {
			if glue, ok := onRow(out[n-1], l); ok {
				joinRow(&out[n-1], l, glue)
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

func onRow(a, b Line) (glue string, ok bool) {
	size := max(a.Size, b.Size)
	if size == 0 || a.Hyphen || math.Abs(a.Angle-b.Angle) > sameAngle || math.Abs(a.Y-b.Y) > sameRow*size || b.Start < a.End-size/2 {
		return "", false
	}
	switch gap := (b.Start - a.End) / size; {
	case gap > columnGap:
		return "  ", true
	case gap > spaceGap:
		return " ", true
	}
	return "", true
}

func joinRow(a *Line, b Line, glue string) {
	if b.Size > a.Size {
		a.Y, a.Size = b.Y, b.Size
	}
	a.Text += glue + b.Text
	a.End, a.Hyphen, a.Bold = b.End, b.Hyphen, a.Bold && b.Bold
}

// Bounds of what counts as running.
const (
	runningPages = 5
	runningShare = 0.6
	runningEdge  = 3 // rows from the top or the bottom
	runningBody  = 3 // rows a page has besides, on average
)

type runningLine struct {
	text   string // digits masked
	height int
}

// dropRunning takes lines that recur at the edge of most pages off all but the first of them.
func dropRunning(rows [][]Line) int {
	if len(rows) < runningPages {
		return 0
	}
	seen, total := map[runningLine]int{}, 0
	for _, page := range rows {
		total += len(page)
		for key := range edges(page) {
			seen[key]++
		}
	}
	if total < (runningBody+1)*len(rows) {
		return 0 // what recurs is all there is
	}
	dropped := 0
	kept := map[runningLine]bool{}
	for i, page := range rows {
		for key, at := range edges(page) {
			if float64(seen[key]) <= runningShare*float64(len(rows)) {
				continue
			}
			if kept[key] {
				page[at].Text = ""
				dropped++
			}
			kept[key] = true
		}
		rows[i] = withText(page)
	}
	return dropped
}

func withText(rows []Line) []Line {
	out := rows[:0]
	for _, l := range rows {
		if l.Text != "" {
			out = append(out, l)
		}
	}
	return out
}

// edges are the rows at the top and the bottom of a page, by height.
func edges(rows []Line) map[runningLine]int {
	top, bottom := math.Inf(-1), math.Inf(1)
	for _, l := range rows {
		top, bottom = max(top, l.Y), min(bottom, l.Y)
	}
	out := map[runningLine]int{}
	for i, l := range rows {
		reach := runningEdge * max(l.Size, 1)
		if l.Y >= top-reach || l.Y <= bottom+reach {
			out[runningLine{masked(l.Text), int(math.Round(l.Y / 2))}] = i
		}
	}
	return out
}

// masked writes runs of digits as one sign.
func masked(text string) string {
	var out strings.Builder
	digit := false
	for _, r := range text {
		if unicode.IsDigit(r) {
			if !digit {
				out.WriteByte('#')
			}
			digit = true
			continue
		}
		digit = false
		out.WriteRune(r)
	}
	return out.String()
}

// commonLeading is the usual distance between lines of a paragraph, in font sizes.
func commonLeading(rows [][]Line) float64 {
	const usual, least, most, bins = 1.2, 0.9, 2.6, 20
	count := map[int]int{}
	for _, page := range rows {
		for i := 1; i < len(page); i++ {
			if step := leadingOf(page[i-1], page[i]); step > least && step < most {
				count[int(math.Round(step*bins))]++
			}
		}
	}
	best, times := 0, 0
	for step, n := range count {
		if n > times || n == times && step < best {
			best, times = step, n
		}
	}
	if times < 3 {
		return usual
	}
	return float64(best) / bins
}

func leadingOf(above, below Line) float64 {
	size := max(above.Size, below.Size)
	if size == 0 {
		return 1
	}
	return (above.Y - below.Y) / size
}

// blocksOf cuts the rows of a page where the distance, the size or the direction changes.
func blocksOf(rows []Line, leading float64) (out [][]Line) {
	begin := 0
	for i := 1; i <= len(rows); i++ {
		if i < len(rows) && together(rows[i-1], rows[i], leading) {
			continue
		}
		if rows[begin].Text != "" {
			out = append(out, rows[begin:i:i])
		}
		begin = i
	}
	return out
}

func together(above, below Line, leading float64) bool {
	const wider = 1.3                         // of the usual distance: a paragraph's end
	if above.Text == "" || below.Text == "" { // of OCR, which says where paragraphs end
		return false
	}
	if above.Hyphen {
		return true
	}
	if math.Abs(above.Angle-below.Angle) > sameAngle || above.Bold != below.Bold {
		return false
	}
	if above.Size > below.Size*sizeChange || below.Size > above.Size*sizeChange {
		return false
	}
	step := leadingOf(above, below)
	return step >= -0.01 && step <= leading*wider+0.1 || above.Size == 0
}

// Text joins the lines of a block: a hyphen at a line's end joins Latin letters, CJK characters meet
// without a space. A line much shorter than the widest ends something (an item, an address) and a line
// with column gaps is a row: both keep their line end.
func (b Block) Text() string {
	widest := 0.0
	for _, l := range b.Lines {
		widest = max(widest, l.End-l.Start)
	}
	var out strings.Builder
	for i, l := range b.Lines {
		text := l.Text
		if i+1 == len(b.Lines) {
			out.WriteString(text)
			break
		}
		glue := ""
		if !l.Hyphen {
			glue = lineGlue(text, b.Lines[i+1].Text, l.End-l.Start < widest*0.6)
			if glue == "" && strings.HasSuffix(text, "-") {
				text = strings.TrimSuffix(text, "-")
			}
		}
		out.WriteString(text)
		out.WriteString(glue)
	}
	return out.String()
}

func lineGlue(text, next string, short bool) string {
	last, size := utf8.DecodeLastRuneInString(text)
	first, _ := utf8.DecodeRuneInString(next)
	if short || strings.Contains(text, "  ") || strings.Contains(next, "  ") || Bullet(next) {
		return "\n"
	}
	if last == '-' {
		before, _ := utf8.DecodeLastRuneInString(text[:len(text)-size])
		if unicode.Is(unicode.Latin, before) && unicode.IsLower(first) {
			return ""
		}
	}
	if wide(last) && wide(first) {
		return ""
	}
	return " "
}

// Bullet reports a line that begins a list item.
func Bullet(text string) bool {
	for _, mark := range []string{"•", "◦", "▪", "‣", "·", "– ", "- ", "* ", "●", "○"} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	number, rest, ok := strings.Cut(text, ". ")
	return ok && rest != "" && len(number) <= 2 && number != "" && strings.Trim(number, "0123456789") == ""
}

// wide reports characters that are written without spaces between them.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60
}
