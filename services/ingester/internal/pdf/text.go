package pdf

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Page is one page as an engine read it.
type Page struct {
	Number int    // physical, from 1
	Lines  []Line // in the order of the content
	Fields []Field
	Fault  string // why the page or part of it is missing, in plain words; empty when it was read whole
	// Unmapped counts characters whose font has no Unicode mapping.
	Unmapped int
	Bytes    int // of all text
}

// Line is one line of text. Places are in points along the direction of reading: X grows with the text,
// Y against the order of lines. Zero where the engine knows none.
type Line struct {
	Text   string
	Start  float64 // X of the first character
	End    float64 // X of the last character's end
	Y      float64 // of the baseline
	Size   float64 // of the font as drawn; 0 when not known
	Angle  float64 // of the baseline to the page, in radians
	Bold   bool
	Hyphen bool // ends with a hyphen that was put in to break a word
}

// Field is a form field with a value.
type Field struct{ Name, Value string }

// Page reads page number, from 1, with at most most bytes of text. An error is the end of the file; damage
// to the page alone is its Fault.
func (f *File) Page(number, most int) (Page, error) {
	out := Page{Number: number}
	if err := f.refresh(); err != nil {
		return out, err
	}
	loaded, err := f.engine.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: f.page(number)})
	if err != nil {
		return out, f.pageFault(&out, err)
	}
	t := &textPage{file: f, ref: loaded.TextPage, most: most, page: &out}
	if err := t.read(); err != nil {
		return out, f.pageFault(&out, err)
	}
	if _, err := f.engine.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: t.ref}); err != nil {
		return out, f.pageFault(&out, err)
	}
	return out, nil
}

// pageFault is nil when only this page is lost.
func (f *File) pageFault(p *Page, err error) error {
	fault := f.runtime.fault(err, fmt.Sprintf("read page %d", p.Number))
	if _, broken := fault.(brokenError); broken { //nolint:errorlint // fault makes it, nothing wraps it
		return fault
	}
	p.Fault = "its content is damaged"
	return nil
}

// textPage turns the characters of a page into lines.
type textPage struct {
	file *File
	ref  references.FPDF_TEXTPAGE
	most int
	page *Page

	text  strings.Builder
	first int // index of the line's first and last visible character; -1: none yet
	last  int
	space int // index of the last visible character before a space; -1: none
}

// Characters that PDFium puts in or passes on.
const (
	softBreak = 0x02   // a hyphen at the end of a line
	noChar    = 0xfffe // marks of broken fonts, with 0xffff
)

func (t *textPage) read() error {
	count, err := t.file.engine.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: t.ref})
	if err != nil {
		return err
	}
	t.reset()
	for i := range count.Count {
		got, err := t.file.engine.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: t.ref, Index: i})
		if err != nil {
			return err
		}
		if err := t.take(i, rune(got.Unicode)); err != nil {
			return err
		}
		if t.page.Bytes+t.text.Len() > t.most {
			break // the caller refuses the file
		}
	}
	return t.close(false)
}

func (t *textPage) take(i int, r rune) error {
	switch {
	case r == '\r' || r == '\n':
		return t.close(false)
	case r == softBreak:
		return t.close(true)
	case r == 0 || r == unicode.ReplacementChar || r >= noChar && r <= 0xffff || unicode.Is(unicode.Co, r):
		t.page.Unmapped++
		return nil
	case r == ' ' || r == '\u00a0' || r == '\t':
		if t.space < 0 {
			t.space = t.last
		}
		return nil
	case r < ' ':
		return nil
	}
	if t.space >= 0 && t.last >= 0 {
		gap, err := t.gap(t.space, i)
		if err != nil {
			return err
		}
		t.text.WriteString(gap)
	}
	if t.first < 0 {
		t.first = i
	}
	t.last, t.space = i, -1
	t.text.WriteRune(r)
	return nil
}

// columnGap, in font sizes, is written as two spaces so that columns stay apart.
const columnGap = 1.5

func (t *textPage) gap(before, after int) (string, error) {
	if after-before > 2 { // several spaces: somebody lined something up
		return "  ", nil
	}
	left, err := t.box(before)
	if err != nil {
		return "", err
	}
	right, err := t.box(after)
	if err != nil {
		return "", err
	}
	height := max(left.top-left.bottom, right.top-right.bottom)
	if wide := right.left - left.right; wide > 2*columnGap*height && height > 0 {
		return "  ", nil
	}
	return " ", nil
}

type box struct{ left, right, bottom, top float64 }

func (t *textPage) box(i int) (box, error) {
	b, err := t.file.engine.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: t.ref, Index: i})
	if err != nil {
		return box{}, err
	}
	return box{b.Left, b.Right, b.Bottom, b.Top}, nil
}

func (t *textPage) reset() {
	t.text.Reset()
	t.first, t.last, t.space = -1, -1, -1
}

// close ends the line.
func (t *textPage) close(hyphen bool) error {
	defer t.reset()
	if t.first < 0 {
		return nil
	}
	line := Line{Text: t.text.String(), Hyphen: hyphen}
	if err := t.measure(&line); err != nil {
		return err
	}
	t.page.Bytes += len(line.Text)
	t.page.Lines = append(t.page.Lines, line)
	return nil
}

// measure finds where a line stands from its first, middle and last character.
func (t *textPage) measure(line *Line) error {
	middle := (t.first + t.last) / 2
	angle, err := t.file.engine.FPDFText_GetCharAngle(&requests.FPDFText_GetCharAngle{TextPage: t.ref, Index: t.first})
	if err == nil && angle.CharAngle > 0 {
		line.Angle = float64(angle.CharAngle)
	}
	origin, err := t.file.engine.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: t.ref, Index: t.first})
	if err != nil {
		return err
	}
	end, err := t.box(t.last)
	if err != nil {
		return err
	}
	sin, cos := math.Sincos(line.Angle)
	along := func(x, y float64) float64 { return x*cos - y*sin }
	line.Start, line.Y = along(origin.X, origin.Y), origin.X*sin+origin.Y*cos
	line.End = max(along(end.right, end.bottom), along(end.left, end.top))
	if line.Size, err = t.size(t.first); err != nil {
		return err
	}
	other, err := t.size(middle)
	if err != nil {
		return err
	}
	line.Size = max(line.Size, other)
	weight, err := t.file.engine.FPDFText_GetFontWeight(&requests.FPDFText_GetFontWeight{TextPage: t.ref, Index: middle})
	const bold = 600
	line.Bold = err == nil && weight.FontWeight >= bold
	return nil
}

// size is the font size of a character as drawn; 0 when PDFium does not know it.
func (t *textPage) size(i int) (float64, error) {
	size, err := t.file.engine.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: t.ref, Index: i})
	if err != nil {
		return 0, err
	}
	m, err := t.file.engine.FPDFText_GetMatrix(&requests.FPDFText_GetMatrix{TextPage: t.ref, Index: i})
	if err != nil {
		return 0, nil //nolint:nilerr // generated characters have none
	}
	drawn := size.FontSize * math.Hypot(float64(m.Matrix.C), float64(m.Matrix.D))
	if math.IsNaN(drawn) || math.IsInf(drawn, 0) {
		return 0, nil
	}
	return math.Round(drawn*10) / 10, nil
}
