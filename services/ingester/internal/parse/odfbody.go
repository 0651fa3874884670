package parse

import (
	"encoding/xml"
	"strings"
)

// odfReader gathers paragraphs, lists, tables, sheets and slides from the tokens of OpenDocument content.
type odfReader struct {
	b      *builder
	limits Limits
	styles map[string]odfStyle
	style  string // being read

	skip       int // depth inside a subtree that is not read
	paragraphs []*odfParagraph
	lists      int  // open ones
	fresh      bool // the list item has no line yet
	tables     []*odfTable
	run        wordRun
	notes      []string // of the open paragraph
	inNote     int
	inSheets   bool // the content is a spreadsheet
	sheet      *odfSheet
	sheets     int
	slides     int
	class      string // of the frame: title, footer …
	inSlide    bool
	slide      odfSlide
	hidden     []string
	once       map[string]bool // footers that were read
	bytes      int
}

type odfParagraph struct {
	text  strings.Builder
	level int // of a heading
	style string
	list  int  // depth
	first bool // of its list item
	note  bool
}

// odfSlide holds what stands before the title in the file until the title is known.
type odfSlide struct {
	title string
	parts []part
}

// odfSkipped are subtrees that are not text of the document.
func odfSkipped(name string) bool {
	switch name {
	case "tracked-changes", "annotation", "note-citation", "ruby-text", "forms", "title", "desc", "event-listeners",
		"page-thumbnail", "calculation-settings", "content-validations", "named-expressions", "database-ranges",
		"shapes", "sequence-decls", "variable-decls", "script", "notes-configuration":
		return true
	}
	return false
}

func (r *odfReader) start(e xml.StartElement) error {
	name := e.Name.Local
	if r.skip > 0 || odfSkipped(name) {
		r.skip++
		return nil
	}
	switch name {
	case "style", "table-properties":
		return r.styleStart(e)
	case "p", "h":
		r.open(e)
	case "s":
		r.write(strings.Repeat(" ", max(1, min(number(local(e, "c"), 1), 100))))
	case "tab":
		r.write("\t")
	case "line-break":
		r.write("\n")
	case "list":
		r.lists++
	case "list-item", "list-header":
		r.fresh = true
	case "note-body":
		r.inNote++
	case "spreadsheet":
		r.inSheets = true
	case "page":
		return r.slideStart()
	case "frame", "custom-shape":
		r.class = local(e, "class")
	case "table", "table-row", "table-cell", "covered-table-cell":
		return r.tableStart(e)
	}
	return nil
}

func (r *odfReader) open(e xml.StartElement) {
	p := &odfParagraph{style: local(e, "style-name"), list: r.lists, first: r.fresh, note: r.inNote > 0}
	if e.Name.Local == "h" {
		p.level = max(1, min(number(local(e, "outline-level"), 1), 9))
	}
	r.fresh = false
	r.paragraphs = append(r.paragraphs, p)
}

// text takes characters inside a paragraph. White space runs are one space, as the format says.
func (r *odfReader) text(t []byte) {
	if r.skip > 0 || len(r.paragraphs) == 0 {
		return
	}
	text := string(t)
	if strings.ContainsAny(text, "\n\t\r") || strings.Contains(text, "  ") {
		joined := strings.Join(strings.Fields(text), " ")
		if joined == "" || strings.TrimLeft(text, " \n\t\r") != text {
			joined = " " + joined
		}
		if joined != " " && strings.TrimRight(text, " \n\t\r") != text {
			joined += " "
		}
		text = joined
	}
	r.write(text)
}

func (r *odfReader) write(text string) {
	r.bytes += len(text)
	if n := len(r.paragraphs); n > 0 && r.bytes <= 4*r.limits.TextBytes {
		r.paragraphs[n-1].text.WriteString(text)
	}
}

func (r *odfReader) end(name string) error {
	if r.skip > 0 {
		r.skip--
		return nil
	}
	if r.bytes > 4*r.limits.TextBytes {
		return limitError("extracted text", r.limits.TextBytes, "bytes")
	}
	switch name {
	case "style":
		return r.styleEnd(name)
	case "p", "h":
		return r.close()
	case "list":
		r.lists = max(0, r.lists-1)
	case "note-body":
		r.inNote = max(0, r.inNote-1)
	case "frame", "custom-shape":
		r.class = ""
	case "page":
		return r.slideEnd()
	case "table", "table-row", "table-cell", "covered-table-cell":
		return r.tableEnd(name)
	case "text", "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
		return r.flush()
	}
	return nil
}

// close ends a paragraph: it goes to the note, cell, sheet or slide around it, or into the text.
func (r *odfReader) close() error {
	n := len(r.paragraphs)
	if n == 0 {
		return nil
	}
	p := r.paragraphs[n-1]
	r.paragraphs = r.paragraphs[:n-1]
	text := p.text.String()
	switch {
	case p.note:
		r.notes = append(r.notes, text)
		return nil
	case r.sheet != nil:
		r.sheet.cell(text)
		return nil
	case len(r.tables) > 0:
		r.tables[len(r.tables)-1].cell(text)
		return nil
	}
	if err := r.emit(p, text); err != nil || len(r.paragraphs) > 0 {
		return err
	}
	return r.emitNotes()
}

// emitNotes puts footnotes behind the paragraph or table that refers to them.
func (r *odfReader) emitNotes() error {
	notes := r.notes
	r.notes = nil
	for _, note := range notes {
		if err := r.add(part{kind: KindParagraph, text: note}); err != nil {
			return err
		}
	}
	return nil
}

func (r *odfReader) emit(p *odfParagraph, text string) error {
	role := r.role(p.style)
	switch {
	case strings.TrimSpace(text) == "" && role != "code":
		return nil
	case r.inSlide && r.class == "title":
		r.slide.title = strings.TrimSpace(r.slide.title + " " + collapse(text))
		return nil
	case r.class == "footer" || r.class == "header":
		if r.once[text] {
			return nil
		}
		r.once[text] = true
	case r.class == "date-time" || r.class == "page-number":
		return nil
	case p.level > 0 || role == "title":
		if r.b.title == "" && p.level < 2 {
			r.b.title = collapse(text)
		}
		return r.add(part{kind: KindHeading, level: p.level, text: text})
	case p.list > 0:
		mark := "- "
		if !p.first {
			mark = "  "
		}
		return r.item(KindList, strings.Repeat("  ", min(p.list-1, 8))+mark+collapse(text))
	case role == "code":
		return r.item(KindCode, text)
	}
	return r.add(part{kind: KindParagraph, text: text})
}

// item joins neighbouring list items, or code lines, into one block.
func (r *odfReader) item(kind Kind, text string) error {
	if r.run.kind != kind {
		if err := r.flush(); err != nil {
			return err
		}
		r.run = wordRun{kind: kind}
	}
	r.run.lines = append(r.run.lines, text)
	return nil
}

func (r *odfReader) flush() error {
	run := r.run
	r.run = wordRun{}
	if run.kind == "" {
		return nil
	}
	return r.put(part{kind: run.kind, text: strings.Join(run.lines, "\n")})
}

func (r *odfReader) add(p part) error {
	if err := r.flush(); err != nil {
		return err
	}
	return r.put(p)
}

// put appends to the slide, whose title comes first, or to the document.
func (r *odfReader) put(p part) error {
	if r.inSlide {
		r.slide.parts = append(r.slide.parts, p)
		return nil
	}
	return r.b.add(p)
}

func (r *odfReader) slideStart() error {
	if err := r.flush(); err != nil {
		return err
	}
	r.slides++
	r.inSlide, r.slide = true, odfSlide{}
	r.b.move(Place{Slide: r.slides})
	return nil
}

func (r *odfReader) slideEnd() error {
	err := r.flush()
	r.inSlide = false
	slide := r.slide
	r.slide = odfSlide{}
	if err != nil {
		return err
	}
	if r.b.title == "" {
		r.b.title = slide.title
	}
	if err := r.b.add(part{kind: KindHeading, level: 1, text: slide.title}); err != nil {
		return err
	}
	for _, p := range slide.parts {
		if err := r.b.add(p); err != nil {
			return err
		}
	}
	return nil
}
