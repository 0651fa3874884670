package parse

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse/pdfworker"
)

func pdfFormat() format {
	return format{
		name:       "pdf",
		mediaTypes: []string{"application/pdf", "application/x-pdf"},
		extensions: []string{".pdf"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff: func(data []byte) bool {
			return bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-"))
		},
		parse: parsePDF,
	}
}

// parsePDF has the file read in a child process and makes blocks of its lines. Headings are short
// lines set larger than the body text.
func parsePDF(ctx context.Context, s source, b *builder) error {
	l := s.limits
	doc, err := pdfworker.Extract(ctx, s.parser.Worker, s.data, pdfworker.Limits{
		Wall: l.PDFWall, Stall: l.PDFStall, MemoryBytes: l.PDFMemory,
		FileBytes: int64(l.FileBytes), Pages: l.PDFPages, TextBytes: l.TextBytes,
	})
	if err != nil {
		return err
	}
	if len(doc.Missing) > 0 && s.parser.Logger != nil {
		s.parser.Logger.WarnContext(ctx, "PDF worker runs without some limits on this system", "missing", doc.Missing)
	}
	b.pages, b.title = len(doc.Pages), doc.Title
	if err := judge(doc.Pages, b); err != nil {
		return err
	}
	sizes := measureSizes(doc.Pages)
	for _, p := range doc.Pages {
		for _, block := range p.Blocks {
			if err := sizes.emit(b, block, p.Number); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge warns about pages without text or with damage, and refuses a file without any text.
func judge(pages []pdfworker.Page, b *builder) error {
	var silent, damagedPages, unmapped []int
	faults := map[string]bool{}
	for _, p := range pages {
		letters := 0
		for _, block := range p.Blocks {
			for _, l := range block.Lines {
				letters += utf8.RuneCountInString(l.Text)
			}
		}
		if letters == 0 {
			silent = append(silent, p.Number)
		}
		if p.Fault != "" {
			damagedPages = append(damagedPages, p.Number)
			faults[p.Fault] = true
		}
		if p.Unmapped*100 > 3*(letters+p.Unmapped) {
			unmapped = append(unmapped, p.Number)
		}
	}
	if len(silent) == len(pages) {
		return silentError(len(damagedPages) > 0, len(unmapped) > 0, faults)
	}
	if len(silent) > 0 {
		b.warn("PDF page has no text: " + pageList(silent))
	}
	if len(damagedPages) > 0 {
		b.warn(fmt.Sprintf("PDF page could not be read whole: %s (%s)", pageList(damagedPages), oneOf(faults)))
	}
	if len(unmapped) > 0 {
		b.warn("PDF page has characters without a Unicode mapping, left out: " + pageList(unmapped))
	}
	return nil
}

func silentError(broken, unmapped bool, faults map[string]bool) error {
	switch {
	case broken:
		return damaged("no page of the PDF could be read: %s", oneOf(faults))
	case unmapped:
		return messages.Errorf(messages.CodeNoText, "the fonts of the PDF do not say which characters they show")
	}
	return messages.Errorf(messages.CodeNoText, "the PDF has no text on any page; it may be a scan")
}

func oneOf(faults map[string]bool) string {
	all := make([]string, 0, len(faults))
	for f := range faults {
		all = append(all, f)
	}
	sort.Strings(all)
	return strings.Join(all, "; ")
}

// pageList writes numbers, the first twenty of them.
func pageList(pages []int) string {
	const most = 20
	words := make([]string, 0, most)
	for _, p := range pages[:min(len(pages), most)] {
		words = append(words, strconv.Itoa(p))
	}
	out := strings.Join(words, ", ")
	if len(pages) > most {
		out += fmt.Sprintf(" and %d more", len(pages)-most)
	}
	return out
}

// sizeTable knows the body size of a document and ranks the larger ones.
type sizeTable struct {
	body   float64
	larger []float64 // sizes of heading lines, largest first, at most three
}

const (
	headingRatio = 1.15 // to the body size
	headingRunes = 120  // a heading is short
	headingLines = 2
)

// measureSizes takes the size most characters have as the body, and the three commonest larger ones
// as heading levels.
func measureSizes(pages []pdfworker.Page) sizeTable {
	runes, lines := map[float64]int{}, map[float64]int{}
	for _, p := range pages {
		for _, b := range p.Blocks {
			for _, l := range b.Lines {
				runes[rounded(l.Size)] += utf8.RuneCountInString(l.Text)
				lines[rounded(l.Size)]++
			}
		}
	}
	out := sizeTable{}
	for size, n := range runes {
		if n > runes[out.body] || n == runes[out.body] && size < out.body {
			out.body = size
		}
	}
	for size := range lines {
		if size > out.body*headingRatio {
			out.larger = append(out.larger, size)
		}
	}
	slices.SortFunc(out.larger, func(a, b float64) int { return lines[b]*1000 - lines[a]*1000 + int(b-a) })
	out.larger = out.larger[:min(len(out.larger), 3)]
	slices.SortFunc(out.larger, func(a, b float64) int { return int((b - a) * 10) })
	return out
}

func rounded(size float64) float64 { return float64(int(size*2+0.5)) / 2 }

// level is the heading level of a size, 0 for body text.
func (t sizeTable) level(size float64) int {
	if size <= t.body*headingRatio {
		return 0
	}
	for i, s := range t.larger {
		if size >= s {
			return i + 1
		}
	}
	return len(t.larger)
}

func (t sizeTable) emit(b *builder, block pdfworker.Block, page int) error {
	text := joinedLines(block.Lines)
	level := t.level(rounded(block.Lines[0].Size))
	short := len(block.Lines) <= headingLines && utf8.RuneCountInString(text) <= headingRunes
	if level > 0 && short && hasWord(text) {
		return b.add(part{kind: KindHeading, level: level, text: text, page: page})
	}
	return b.add(part{kind: KindParagraph, text: text, page: page})
}

// joinedLines joins the lines of a paragraph: a hyphen at a line's end joins Latin letters, CJK
// characters meet without a space. A line much shorter than the widest ends something (an item, an
// address) and a line with column gaps is a row: both keep their line end.
func joinedLines(lines []pdfworker.Line) string {
	widest := 0.0
	for _, l := range lines {
		widest = max(widest, l.Width)
	}
	var out strings.Builder
	for i, l := range lines {
		text := l.Text
		if i+1 == len(lines) {
			out.WriteString(text)
			break
		}
		next := lines[i+1].Text
		glue := lineGlue(text, next, l.Width < widest*0.6)
		if glue == "" && strings.HasSuffix(text, "-") {
			text = strings.TrimSuffix(text, "-")
		}
		out.WriteString(text)
		out.WriteString(glue)
	}
	return out.String()
}

func lineGlue(text, next string, short bool) string {
	last, size := utf8.DecodeLastRuneInString(text)
	first, _ := utf8.DecodeRuneInString(next)
	if short || strings.Contains(text, "  ") || strings.Contains(next, "  ") || bullet(next) {
		return "\n"
	}
	if last == '-' {
		before, _ := utf8.DecodeLastRuneInString(text[:len(text)-size])
		if unicode.Is(unicode.Latin, before) && unicode.IsLower(first) {
			return ""
		}
	}
	if cjk(last) && cjk(first) {
		return ""
	}
	return " "
}

// bullet reports a line that begins a list item.
func bullet(text string) bool {
	for _, mark := range []string{"•", "◦", "▪", "‣", "·", "– ", "- ", "* ", "●", "○"} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	number, rest, ok := strings.Cut(text, ". ")
	if !ok || rest == "" || len(number) > 2 {
		return false
	}
	_, err := strconv.Atoi(number)
	return err == nil
}

func cjk(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60
}
