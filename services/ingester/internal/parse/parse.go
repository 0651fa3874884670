package parse

import (
	"context"
	"fmt"
	"log/slog"
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

// Parser reads documents. The zero value works: default limits, no log. Safe for concurrent use; every
// PDF takes one child process, so the caller bounds how many run at once.
type Parser struct {
	Limits Limits
	Logger *slog.Logger // told when this system lacks one of the child's limits; nil: silent
	// Worker is the program that reads PDFs, one whose main starts with parseworker.Main. Empty: this one.
	Worker string
	// Recognise gives the text that an image shows (OCR), "" when it sees none. nil: images end NO_TEXT.
	Recognise func(ctx context.Context, image []byte) (string, error)
}

// source is what a format's reader gets.
type source struct {
	data    []byte
	text    string // decoded, not normalised; empty for binary formats
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
	// sniff reports that the content is surely this format. Text formats without a sure sign have none.
	sniff func(data []byte) bool
	// charset finds a charset declared inside the content; nil when the format has no such thing.
	charset func(data []byte) string
	parse   func(ctx context.Context, s source, b *builder) error
}

// formats is the table of what can be read. Sniffing asks in this order.
func formats() []format {
	return []format{
		pdfFormat(),
		docxFormat(),
		htmlFormat(),
		markdownFormat(),
		jsonlFormat(),
		jsonFormat(),
		csvFormat(),
		textFormat(),
	}
}

// FormatInfo describes one readable format, for validation, help and documentation.
type FormatInfo struct {
	Name       string
	MediaTypes []string
	Extensions []string
}

// Formats lists the readable formats.
func Formats() []FormatInfo {
	table := formats()
	out := make([]FormatInfo, len(table))
	for i, f := range table {
		out[i] = FormatInfo{Name: f.name, MediaTypes: f.mediaTypes, Extensions: f.extensions}
	}
	return out
}

// Parse reads a document with the zero Parser.
func Parse(ctx context.Context, in Input) (Document, error) { return Parser{}.Parse(ctx, in) }

// Parse reads a document. Errors that belong to the document are *messages.Error; any other error
// (the context ended, the child could not be started) is worth a retry.
func (p Parser) Parse(ctx context.Context, in Input) (Document, error) {
	p.Limits = p.Limits.withDefaults()
	if len(in.Data) > p.Limits.FileBytes {
		return Document{}, limitError("the file", p.Limits.FileBytes, "bytes")
	}
	if len(in.Data) == 0 && !hasWord(in.Title) {
		return Document{}, emptyError()
	}
	found, err := detect(in)
	if err != nil {
		return Document{}, err
	}
	b := &builder{limits: p.Limits, warnings: found.warnings}
	if err := p.read(ctx, in, found, b); err != nil {
		return Document{}, err
	}
	if err := ctx.Err(); err != nil {
		return Document{}, fmt.Errorf("parse %s: %w", found.format.name, err)
	}
	return finish(in, found.format.name, b)
}

func (p Parser) read(ctx context.Context, in Input, found detected, b *builder) error {
	f := found.format
	s := source{data: in.Data, limits: p.Limits, charset: found.charset, parser: p}
	if most := f.maxBytes(p.Limits); len(in.Data) > most {
		return limitError("the "+f.name+" file", most, "bytes")
	}
	if !f.binary {
		if s.charset == "" && f.charset != nil {
			s.charset = f.charset(in.Data)
		}
		text, warnings, err := decode(in.Data, s.charset)
		if err != nil {
			return err
		}
		if looksBinary(text) {
			return messages.Errorf(messages.CodeUnsupportedMediaType, "the content is binary, not text")
		}
		if at := strings.IndexByte(text, 0); at >= 0 {
			return messages.Errorf(messages.CodeInvalidEncoding, "the text holds U+0000 at byte %d", at)
		}
		b.warnings = append(b.warnings, warnings...)
		s.text = text
	}
	return f.parse(ctx, s, b)
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
		*b = builder{limits: b.limits, warnings: b.warnings, pages: b.pages}
		if err := b.add(part{kind: KindParagraph, text: title}); err != nil {
			return Document{}, err
		}
		b.warn("the document has a title but no text")
	}
	doc := b.document()
	doc.Title, doc.Format = strings.TrimSpace(title), name
	return doc, nil
}

func emptyError() error {
	return messages.Errorf(messages.CodeEmptyDocument, "title and text hold no letter or digit")
}
