package parse

import "strings"

// Kind is what a block is.
type Kind string

// Kinds of blocks.
const (
	KindHeading   = Kind("heading")
	KindParagraph = Kind("paragraph")
	KindList      = Kind("list")
	KindTable     = Kind("table")
	KindCode      = Kind("code")
)

// Document is the text of one document and where its parts come from.
type Document struct {
	Title    string   // the caller's, else the one found inside; empty when there is none
	Text     string   // normalised
	Blocks   []Block  // in order; their ranges partition Text
	Warnings []string // for people; never document text
	Pages    int      // physical pages, 0 for formats without pages
	Format   string   // name of the format that was read, as in Formats
	Charset  string   // of a text format, as it was decoded, in the IANA spelling; empty for the others
	Engine   string   // that read the pages, where there is a choice: see EnginePDFium; empty for the others
}

// Place is the part of its source that a block stands in. A zero field: the source has no such part.
// Chunks never reach from one place into another.
type Place struct {
	Slide      int    `json:"slide,omitempty"`      // physical, from 1
	Sheet      string `json:"sheet,omitempty"`      // name
	Chapter    string `json:"chapter,omitempty"`    // title in the book's table of contents
	Attachment string `json:"attachment,omitempty"` // file name; of one inside another: outer/inner
}

// Block is one structural part. Text[Start:End] includes the white space up to the next block.
type Block struct {
	Kind        Kind     `json:"kind"`
	Place                // JSON has its fields beside the others
	Level       int      `json:"level,omitempty"` // of a heading, from 1; 0 otherwise
	Start       int      `json:"start"`           // bytes into Text
	End         int      `json:"end"`             // bytes into Text, exclusive
	HeadingPath []string `json:"headingPath,omitempty"`
	Page        int      `json:"page,omitempty"`      // physical, from 1; 0 without pages
	Line        int      `json:"line,omitempty"`      // first line in the source, or row of the sheet, from 1; 0 when unknown
	LineEnd     int      `json:"lineEnd,omitempty"`   // last one; 0 when unknown
	HeaderEnd   int      `json:"headerEnd,omitempty"` // of a table: Text[Start:HeaderEnd] are its header rows; 0 without
	Header      string   `json:"header,omitempty"`    // of a table that goes on from the block before: its header rows
	Lang        string   `json:"lang,omitempty"`      // of code, when the source says so
}

// part is what a reader emits: one block before it has a place in the text.
type part struct {
	kind   Kind
	level  int
	text   string // not yet normalised
	title  string // of a heading, for paths, where the text shows more; empty: as the text
	header string // leading rows of text that are the table's header, with their line end
	lang   string
	page   int
	line   int
	end    int    // last line; 0: as many lines as text has, when line is known
	over   string // header rows of the table that this part continues
}

// builder joins parts into a Document. Readers use add and warn; done gives the result.
type builder struct {
	limits   Limits
	text     strings.Builder
	blocks   []Block
	path     headingPath
	at       Place  // of the parts that follow; move changes it
	within   string // attachment that is being read, see Place
	title    string
	charset  string
	engine   string
	progress func()
	warnings []string
	pages    int
}

// add appends a block with an empty line after it. Blank parts are dropped. It fails when the text
// grows over the limit.
func (b *builder) add(p part) error {
	header := ""
	if p.header != "" {
		header = normalise(p.header)
	}
	text := strings.Trim(normalise(p.text), "\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if p.kind != KindCode && p.kind != KindList && p.kind != KindTable { // an empty first cell is white space
		text = strings.TrimSpace(text)
	}
	if p.kind == KindHeading {
		text = strings.Join(strings.Fields(text), " ")
	}
	return b.place(p, text, header, "\n\n")
}

// move makes p, within the attachment being read, the place of the parts that follow. Headings of
// another place do not stand above them.
func (b *builder) move(p Place) {
	p.Attachment = b.within
	if p != b.at {
		b.at, b.path = p, headingPath{}
	}
}

// place appends text as it is, then gap. The text must be normalised.
func (b *builder) place(p part, text, header, gap string) error {
	if b.text.Len()+len(text)+len(gap) > b.limits.TextBytes {
		return limitError("extracted text", b.limits.TextBytes, "bytes")
	}
	start := b.text.Len()
	b.text.WriteString(text)
	b.text.WriteString(gap)
	block := Block{
		Kind: p.kind, Place: b.at, Start: start, End: b.text.Len(), Page: p.page, Line: p.line, LineEnd: p.end, Lang: p.lang,
		Header: normalise(p.over),
	}
	if p.line > 0 && p.end == 0 {
		block.LineEnd = p.line + strings.Count(text, "\n")
	}
	if header != "" && strings.HasPrefix(text, header) && len(header) < len(text) {
		block.HeaderEnd = start + len(header)
	}
	if p.kind == KindHeading {
		block.Level = max(p.level, 1) // level 0 is a document's title: above all headings
		title := headingText(text)
		if p.title != "" {
			title = collapse(normalise(p.title))
		}
		b.path = b.path.enter(p.level, title)
	}
	block.HeadingPath = b.path.titles
	b.blocks = append(b.blocks, block)
	const often = 64
	if b.progress != nil && len(b.blocks)%often == 0 {
		b.progress()
	}
	return nil
}

func (b *builder) warn(text string) {
	const most = 50
	if len(b.warnings) < most {
		b.warnings = append(b.warnings, text)
	}
}

func (b *builder) document() Document {
	text := b.text.String()
	if n := len(b.blocks); n > 0 { // the last block ends with one line end, not with a gap
		end := len(strings.TrimRight(text, "\n \t"))
		if end < len(text) && text[end] == '\n' {
			text = text[:end+1]
		} else {
			text = text[:end] + "\n"
		}
		b.blocks[n-1].End = len(text)
	}
	return Document{Title: b.title, Text: text, Blocks: b.blocks, Warnings: b.warnings, Pages: b.pages}
}

// titleBytes bounds a title in a heading path; the heading itself stays whole in the text.
const titleBytes = 300

// headingPath is the open headings, outermost first. It is never changed in place: blocks share it.
type headingPath struct {
	titles []string
	levels []int
}

func (h headingPath) enter(level int, title string) headingPath {
	keep := 0
	for keep < len(h.levels) && h.levels[keep] < level {
		keep++
	}
	return headingPath{
		titles: append(h.titles[:keep:keep], clip(title, titleBytes)),
		levels: append(h.levels[:keep:keep], level),
	}
}

// headingText strips Markdown marks from a heading's source.
func headingText(source string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(source), "\n")
	trimmed := strings.TrimLeft(line, "#")
	if trimmed == line || !strings.HasPrefix(trimmed, " ") && !strings.HasPrefix(trimmed, "\t") {
		return strings.TrimSpace(line)
	}
	trimmed = strings.TrimSpace(trimmed)
	if closed := strings.TrimRight(trimmed, "#"); closed == "" || strings.HasSuffix(closed, " ") {
		trimmed = strings.TrimSpace(closed)
	}
	return trimmed
}
