package parse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// Input is one document as it was submitted.
type Input struct {
	Data        []byte // not changed
	ContentType string // declared media type, with its charset parameter; may be empty
	Name        string // file name, object key or similar; only its extension is used; may be empty
	Title       string // the caller's title; wins over the one found inside; may be empty
}

// Parser reads documents, in this process: package worker puts one into a process for each document.
// The zero value works, with default limits. For one goroutine at a time.
type Parser struct {
	Limits Limits
	// Recognise gives the text that an image shows (OCR), "" when it sees none. nil: images end NO_TEXT.
	Recognise func(ctx context.Context, image []byte) (string, error)
	// Password opens a protected document; it goes into no error and no warning.
	Password string
	// Progress is called when something was read: a page, some blocks. nil: nobody wants to know.
	Progress func()
	// PDF holds the loaded PDF engine. nil: it is loaded for each PDF.
	PDF *PDFEngine

	formats table // Parse sets it: readers of documents with others in them stand in the table themselves
}

func (p Parser) progress() {
	if p.Progress != nil {
		p.Progress()
	}
}

// source is what a format's reader gets.
type source struct {
	data    []byte
	text    string // decoded, not normalised; empty for binary formats
	name    string // of the file; may be empty
	media   string // declared; may be empty
	depth   int    // of attachments inside attachments
	limits  Limits
	charset string
	parser  Parser
}

// format is one line of the table.
type format struct {
	name       string
	mediaTypes []string
	extensions []string // with the dot, lower case
	binary     bool     // recognised by content alone; the others are text
	maxBytes   func(Limits) int
	firm       bool // content that looks like another text format does not overrule a declaration of this one
	strong     bool // what sniff finds overrules the declaration of another text format
	// sniff reports that the content is surely this format. Text formats without a sure sign have none.
	sniff func(data []byte) bool
	// charset finds a charset declared inside the content; nil when the format has no such thing.
	charset func(data []byte) string
	parse   func(ctx context.Context, s source, b *builder) error
}

// table is formats in the order in which sniffing asks.
type table []format

// formats is what can be read.
var formats = table{
	pdfFormat(),
	docxFormat(),
	pptxFormat(),
	xlsxFormat(),
	odtFormat(),
	odsFormat(),
	odpFormat(),
	epubFormat(),
	rtfFormat(),
	imageFormat(),
	htmlFormat(),
	mhtmlFormat(),
	emlFormat(),
	notebookFormat(),
	xmlFormat(),
	jsonlFormat(),
	jsonFormat(),
	markdownFormat(),
	csvFormat(),
	yamlFormat(),
	logFormat(),
	codeFormat(),
	textFormat(),
}

// FormatInfo describes one readable format, for validation, help and documentation.
type FormatInfo struct {
	Name       string
	MediaTypes []string
	Extensions []string
}

// Formats lists the readable formats.
func Formats() []FormatInfo {
	out := make([]FormatInfo, len(formats))
	for i, f := range formats {
		out[i] = FormatInfo{Name: f.name, MediaTypes: slices.Clone(f.mediaTypes), Extensions: slices.Clone(f.extensions)}
	}
	return out
}

// Light reports that a document was a textual format, read by simple loops of ours: what the process
// that read it may do again. Anything with engines, archives or attachments is not.
func (d Document) Light() bool {
	if d.Engine != "" {
		return false
	}
	for i := range d.Blocks {
		if d.Blocks[i].Attachment != "" {
			return false
		}
	}
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == d.Format })
	return i >= 0 && !formats[i].binary
}

// Parse reads a document with the zero Parser.
func Parse(ctx context.Context, in Input) (Document, error) { return Parser{}.Parse(ctx, in) }

// Parse reads a document. Errors that belong to the document are *messages.Error; any other error
// (the context ended, the child could not be started) is worth a retry.
func (p Parser) Parse(ctx context.Context, in Input) (Document, error) {
	p.Limits, p.formats = p.Limits.withDefaults(), formats
	if len(in.Data) > p.Limits.FileBytes {
		return Document{}, limitError("the file", p.Limits.FileBytes, "bytes")
	}
	if len(in.Data) == 0 && !hasWord(in.Title) {
		return Document{}, emptyError()
	}
	found, err := p.formats.detect(in)
	if err != nil {
		return Document{}, err
	}
	b := &builder{limits: p.Limits, warnings: found.warnings, progress: p.progress}
	if err := p.read(ctx, in, found, 0, b); err != nil {
		return Document{}, err
	}
	if err := ctx.Err(); err != nil {
		return Document{}, fmt.Errorf("parse %s: %w", found.format.name, err)
	}
	return finish(in, found.format.name, b)
}

func (p Parser) read(ctx context.Context, in Input, found detected, depth int, b *builder) error {
	f := found.format
	s := source{data: in.Data, name: in.Name, media: found.media, depth: depth, limits: p.Limits, charset: found.charset, parser: p}
	if most := f.maxBytes(p.Limits); len(in.Data) > most {
		return limitError("the "+f.name+" file", most, "bytes")
	}
	if !f.binary {
		if s.charset == "" && f.charset != nil {
			s.charset = f.charset(in.Data)
		}
		text, err := readable(in.Data, s.charset)
		if err != nil {
			return err
		}
		b.warnings = append(b.warnings, text.warnings...)
		s.text, b.charset = text.text, text.charset
	}
	return f.parse(ctx, s, b)
}

// readable decodes text and refuses what is none.
func readable(data []byte, charset string) (decoded, error) {
	d, err := decode(data, charset)
	switch {
	case err != nil:
		return d, err
	case looksBinary(d.text):
		return d, messages.Errorf(messages.CodeUnsupportedMediaType, "the content is binary, not text")
	}
	if at := strings.IndexByte(d.text, 0); at >= 0 {
		return d, messages.Errorf(messages.CodeInvalidEncoding, "the text holds U+0000 at byte %d", at)
	}
	return d, nil
}

// finish settles the title and refuses a document that says nothing.
func finish(in Input, name string, b *builder) (Document, error) {
	title := collapse(normalise(in.Title))
	if title == "" {
		title = collapse(normalise(b.title))
	}
	if !hasWord(b.text.String()) {
		if !hasWord(title) {
			return Document{}, emptyError()
		}
		*b = builder{limits: b.limits, warnings: b.warnings, pages: b.pages, engine: b.engine, progress: b.progress}
		if err := b.add(part{kind: KindParagraph, text: title}); err != nil {
			return Document{}, err
		}
		b.warn("the document has a title but no text")
	}
	doc := b.document()
	doc.Title, doc.Format, doc.Charset, doc.Engine = strings.TrimSpace(title), name, b.charset, b.engine
	return doc, nil
}

func emptyError() error {
	return messages.Errorf(messages.CodeEmptyDocument, "title and text hold no letter or digit")
}
