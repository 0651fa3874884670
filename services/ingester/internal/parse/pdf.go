package parse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/pdf"
)

func pdfFormat() format {
	return format{
		name:       "pdf",
		mediaTypes: []string{"application/pdf", "application/x-pdf"},
		extensions: []string{".pdf"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      IsPDF,
		parse:      parsePDF,
	}
}

// IsPDF reports that content is a PDF, by its header.
func IsPDF(data []byte) bool {
	return bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-"))
}

// PDFEngine is how PDFs are read. The zero value works, without a cache. For one goroutine.
type PDFEngine struct {
	// CacheDir keeps PDFium's machine code; see pdf.NewRuntime.
	CacheDir string
	// Light asks the light engine first, and PDFium where its text is in doubt.
	Light bool
	// Loading is called every second while PDFium is being loaded, from another goroutine; nil: nobody wants to
	// know. Without a cache that takes seconds, and on a busy machine a minute.
	Loading func()

	runtime *pdf.Runtime
}

// load gives PDFium, which stays loaded until Close.
func (e *PDFEngine) load(ctx context.Context) (*pdf.Runtime, error) {
	if e.runtime != nil {
		return e.runtime, nil
	}
	defer e.ticking()()
	r, err := pdf.NewRuntime(ctx, e.CacheDir)
	if _, permanent := messages.AsError(err); err != nil && !permanent && e.CacheDir != "" { // a cache that went away costs time, not documents
		r, err = pdf.NewRuntime(ctx, "")
	}
	if err == nil {
		e.runtime = r
	}
	return r, err
}

// ticking calls Loading now and then until it is stopped.
func (e *PDFEngine) ticking() (stop func()) {
	if e.Loading == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		const often = time.Second
		ticker := time.NewTicker(often)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				e.Loading()
			}
		}
	}()
	return func() { close(done); <-ended }
}

// Load loads PDFium now, and so fills the cache; it fails when the cache cannot be used.
func (e *PDFEngine) Load(ctx context.Context) (err error) {
	e.runtime, err = pdf.NewRuntime(ctx, e.CacheDir)
	return err
}

// Close frees it.
func (e *PDFEngine) Close() error {
	if e.runtime == nil {
		return nil
	}
	r := e.runtime
	e.runtime = nil
	return r.Close()
}

// Names of the engines, as Document.Engine has them.
const (
	EnginePDFium = "pdfium"
	EngineLight  = "ledongthuc"
	EngineOCR    = "ocr"
)

// parsePDF makes blocks of a file's lines.
func parsePDF(ctx context.Context, s source, b *builder) error {
	engine := s.parser.PDF
	if engine == nil {
		engine = &PDFEngine{}
		defer engine.Close() //nolint:errcheck // it was only read from
	}
	if engine.Light {
		if pages, title, ok := pdf.Light(s.data, s.limits.Pages); ok {
			b.engine = EngineLight
			return emitPDF(s, b, pdfContent{title: title, pages: pages})
		}
	}
	r, err := engine.load(ctx)
	if err != nil {
		return err
	}
	b.engine = EnginePDFium
	content, err := readPDF(ctx, r, s)
	if errors.Is(err, pdf.ErrBroken) {
		engine.runtime = nil // it trapped: its memory is in no state to go on with
	}
	if err != nil {
		return err
	}
	if content.seen > 0 {
		b.engine = EnginePDFium + "+" + EngineOCR
	}
	return emitPDF(s, b, content)
}

// pdfContent is what a file gave.
type pdfContent struct {
	title   string
	pages   []pdf.Page
	outline []pdf.Entry
	seen    int // pages read by OCR
}

func readPDF(ctx context.Context, r *pdf.Runtime, s source) (pdfContent, error) {
	var out pdfContent
	f, err := r.Open(bytes.NewReader(s.data), int64(len(s.data)), s.parser.Password)
	if err != nil {
		return out, err
	}
	defer f.Close()
	switch n := f.Count(); {
	case n == 0:
		return out, damaged("the PDF has no pages")
	case n > s.limits.Pages:
		return out, limitError("the PDF's number of pages", s.limits.Pages, "pages")
	}
	out.title = f.Title()
	form, bytesLeft := f.HasForm(), s.limits.TextBytes
	for number := 1; number <= f.Count(); number++ {
		page, err := readPage(ctx, f, s, number, form, bytesLeft)
		if err != nil {
			return out, err
		}
		if bytesLeft -= page.Bytes; bytesLeft < 0 {
			return out, limitError("extracted text", s.limits.TextBytes, "bytes")
		}
		if len(page.Lines) == 0 && s.parser.Recognise != nil && out.seen < s.limits.OCRPages {
			if err := recognisePage(ctx, f, s, &page); err != nil {
				return out, err
			}
			out.seen++
		}
		out.pages = append(out.pages, page)
		s.parser.progress()
	}
	out.outline = f.Outline()
	return out, nil
}

func readPage(ctx context.Context, f *pdf.File, s source, number int, form bool, most int) (pdf.Page, error) {
	if err := ctx.Err(); err != nil {
		return pdf.Page{}, fmt.Errorf("read PDF: %w", err)
	}
	page, err := f.Page(number, most)
	if err != nil || !form {
		return page, err
	}
	page.Fields, err = f.Fields(number)
	for _, field := range page.Fields {
		page.Bytes += len(field.Name) + len(field.Value)
	}
	return page, err
}

// recognisePage has the picture of a page without text read.
func recognisePage(ctx context.Context, f *pdf.File, s source, page *pdf.Page) error {
	const dpi = 300
	image, err := f.Image(page.Number, dpi)
	if err != nil {
		return err
	}
	text, err := s.parser.Recognise(ctx, image)
	if err != nil {
		return err
	}
	page.Bytes += len(text)
	for line := range strings.Lines(text) {
		page.Lines = append(page.Lines, pdf.Line{Text: strings.TrimSpace(line)})
	}
	return nil
}

// emitPDF lays pages out and adds their blocks.
func emitPDF(s source, b *builder, c pdfContent) error {
	if b.within == "" {
		b.pages, b.title = len(c.pages), c.title
	}
	if err := judge(c.pages, s.parser.Recognise != nil, b); err != nil {
		return err
	}
	blocks, dropped := pdf.Layout(c.pages)
	if dropped > 0 {
		b.warn(fmt.Sprintf("%d repeated headers and footers of pages are left out", dropped))
	}
	levels := pdf.Levels(blocks, c.outline)
	next := 0
	for _, page := range c.pages {
		for ; next < len(blocks) && blocks[next].Page == page.Number; next++ {
			if err := emitBlock(b, blocks[next], levels[next]); err != nil {
				return err
			}
		}
		if err := emitFields(b, page); err != nil {
			return err
		}
	}
	return nil
}

func emitBlock(b *builder, block pdf.Block, level int) error {
	p := part{kind: KindParagraph, level: level, text: block.Text(), page: block.Page}
	if level > 0 {
		p.kind = KindHeading
	} else if pdf.Bullet(block.Lines[0].Text) {
		p.kind = KindList
	}
	return b.add(p)
}

// emitFields adds the values of a page's form, a line each.
func emitFields(b *builder, page pdf.Page) error {
	if len(page.Fields) == 0 {
		return nil
	}
	var out strings.Builder
	for _, f := range page.Fields {
		if f.Name != "" {
			out.WriteString(collapse(f.Name) + ": ")
		}
		out.WriteString(collapse(f.Value) + "\n")
	}
	return b.add(part{kind: KindList, text: out.String(), page: page.Number})
}
