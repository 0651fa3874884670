package parse

import (
	"encoding/xml"
	"strings"
)

// wordReader gathers paragraphs and tables from the tokens of a WordprocessingML part.
type wordReader struct {
	b         *builder
	styles    map[string]wordStyle
	numbering *wordNumbering    // nil: none
	notes     map[string]string // see readNotes
	limits    Limits
	relations map[string]relation
	include   func(relation) error // reads another part; nil: left out

	skip       int // depth inside a subtree that is not read
	inText     bool
	paragraphs []*wordParagraph // open ones; a text box nests one in another
	tables     []*wordTable     // open ones
	run        wordRun          // consecutive list items or code lines
	inRun      int              // depth of runs of characters
	hidden     bool             // the run is not shown
	pending    []string         // notes that the open paragraph or table refers to
}

type wordParagraph struct {
	text    strings.Builder
	style   string
	outline int // direct formatting, as in wordStyle
	list    bool
	num     string // numbering by direct formatting; "0" takes that of the style away
	level   int    // of a list item, from 0; -1: that of the style
}

type wordRun struct {
	kind  Kind
	lines []string
}

// skipped subtrees: the second form of a drawing, text that was moved away, separators of notes.
func skipped(e xml.StartElement) bool {
	switch e.Name.Local {
	case "Fallback", "moveFrom", "del":
		return true
	case "footnote", "endnote":
		kind := local(e, "type")
		return kind != "" && kind != "normal"
	}
	return false
}

func (w *wordReader) start(e xml.StartElement) error {
	if w.skip > 0 || skipped(e) {
		w.skip++
		return nil
	}
	switch e.Name.Local {
	case "p":
		w.paragraphs = append(w.paragraphs, &wordParagraph{level: -1})
	case "r":
		w.inRun++
		w.hidden = false
	case "vanish":
		w.hidden = w.inRun > 0 && local(e, "val") != "0" && local(e, "val") != "false"
	case "altChunk", "chart", "relIds":
		return w.other(e)
	case "footnoteReference", "endnoteReference":
		if note := w.notes[strings.TrimSuffix(e.Name.Local, "Reference")+" "+local(e, "id")]; note != "" {
			w.pending = append(w.pending, note)
		}
	case "t":
		w.inText = true
	case "tab", "ptab":
		w.write("\t")
	case "br", "cr":
		w.write("\n")
	case "noBreakHyphen":
		w.write("-")
	case "pStyle", "outlineLvl", "numPr", "ilvl", "numId":
		w.property(e)
	case "tbl":
		if err := w.flushRunOutside(); err != nil {
			return err
		}
		w.tables = append(w.tables, &wordTable{})
	case "tr", "tc", "gridSpan", "vMerge":
		w.tableStart(e)
	}
	return nil
}

// other reads the part that an element refers to.
func (w *wordReader) other(e xml.StartElement) error {
	id := relationID(e)
	for _, a := range e.Attr {
		if a.Name.Local == "dm" { // the data of a SmartArt drawing
			id = a.Value
		}
	}
	r, ok := w.relations[id]
	if !ok || w.include == nil || len(w.tables) > 0 {
		return nil
	}
	delete(w.relations, id) // once, however often it is referred to
	return w.include(r)
}

func (w *wordReader) property(e xml.StartElement) {
	if len(w.paragraphs) == 0 {
		return
	}
	p, value := w.paragraphs[len(w.paragraphs)-1], local(e, "val")
	switch e.Name.Local {
	case "pStyle":
		p.style = value
	case "outlineLvl":
		p.outline = outlineLevel(value)
	case "numPr":
		p.list = true
	case "ilvl":
		p.level = max(0, min(number(value, 0), 8))
	case "numId":
		p.num = value
		p.list = value != "0" // 0 takes the numbering of the style away
	}
}

func (w *wordReader) end(name string) error {
	if w.skip > 0 {
		w.skip--
		return nil
	}
	switch name {
	case "t":
		w.inText = false
	case "r":
		w.inRun, w.hidden = max(0, w.inRun-1), false
	case "p":
		return w.endParagraph()
	case "tc":
		return w.endCell()
	case "tbl":
		return w.endTable()
	}
	return nil
}

func (w *wordReader) text(t []byte) {
	if w.inText && w.skip == 0 && !w.hidden {
		w.write(string(t))
	}
}

func (w *wordReader) write(text string) {
	if n := len(w.paragraphs); n > 0 {
		w.paragraphs[n-1].text.WriteString(text)
	}
}

func (w *wordReader) endParagraph() error {
	n := len(w.paragraphs)
	if n == 0 {
		return nil
	}
	p := w.paragraphs[n-1]
	w.paragraphs = w.paragraphs[:n-1]
	text := p.text.String()
	if len(w.tables) > 0 {
		if text = collapse(text); text != "" {
			cell := &w.tables[len(w.tables)-1].cell
			if cell.Len() > 0 {
				cell.WriteByte(' ')
			}
			cell.WriteString(text)
		}
		return nil
	}
	if err := w.emit(p, text); err != nil || len(w.paragraphs) > 0 {
		return err
	}
	return w.emitNotes()
}

// emitNotes puts notes behind the paragraph or table that refers to them.
func (w *wordReader) emitNotes() error {
	notes := w.pending
	w.pending = nil
	for _, note := range notes {
		if err := w.flushRun(); err != nil {
			return err
		}
		if err := w.b.add(part{kind: KindParagraph, text: note}); err != nil {
			return err
		}
	}
	return nil
}

// finish emits what is still open.
func (w *wordReader) finish() error {
	if err := w.flushRun(); err != nil {
		return err
	}
	return w.emitNotes()
}

func (w *wordReader) emit(p *wordParagraph, text string) error {
	style := resolveStyle(w.styles, p.style)
	heading := style.heading
	if p.outline != 0 {
		heading = max(p.outline, 0)
	}
	if strings.TrimSpace(text) == "" && !style.code {
		return w.flushRun()
	}
	mark, listed := w.mark(p, style)
	switch {
	case style.code:
		return w.addRun(KindCode, text)
	case heading > 0 || style.title:
		return w.heading(heading, style.title, mark, text)
	case listed:
		if mark == "" {
			mark = "-"
		}
		return w.addRun(KindList, strings.Repeat("  ", max(p.level, style.level, 0))+mark+" "+collapse(text))
	}
	if err := w.flushRun(); err != nil {
		return err
	}
	return w.b.add(part{kind: KindParagraph, text: text})
}

func (w *wordReader) heading(level int, isTitle bool, mark, text string) error {
	if err := w.flushRun(); err != nil {
		return err
	}
	title := collapse(text)
	if w.b.title == "" && (isTitle || level == 1) {
		w.b.title = title
	}
	return w.b.add(part{kind: KindHeading, level: level, text: mark + " " + title, title: title})
}

// mark is the number that is shown before a paragraph, "" for none or a bullet.
func (w *wordReader) mark(p *wordParagraph, style resolved) (mark string, listed bool) {
	num, level := p.num, p.level
	if num == "" {
		num = style.num
	}
	if level < 0 {
		level = max(style.level, 0)
	}
	listed = p.list || style.list && p.num != "0"
	if w.numbering == nil || num == "" || num == "0" {
		return "", listed
	}
	return w.numbering.next(num, level), listed
}

// addRun joins neighbouring list items, or code lines, into one block.
func (w *wordReader) addRun(kind Kind, text string) error {
	if w.run.kind != kind {
		if err := w.flushRun(); err != nil {
			return err
		}
		w.run = wordRun{kind: kind}
	}
	w.run.lines = append(w.run.lines, text)
	return nil
}

func (w *wordReader) flushRun() error {
	run := w.run
	w.run = wordRun{}
	if run.kind == "" {
		return nil
	}
	return w.b.add(part{kind: run.kind, text: strings.Join(run.lines, "\n")})
}

func (w *wordReader) flushRunOutside() error {
	if len(w.tables) > 0 {
		return nil
	}
	return w.flushRun()
}
