package parse

import (
	"encoding/xml"
	"strings"
)

// wordReader gathers paragraphs and tables from the tokens of a WordprocessingML part.
type wordReader struct {
	b      *builder
	styles map[string]wordStyle
	limits Limits

	skip       int // depth inside a subtree that is not read
	inText     bool
	paragraphs []*wordParagraph // open ones; a text box nests one in another
	tables     []*wordTable     // open ones
	run        wordRun          // consecutive list items or code lines
}

type wordParagraph struct {
	text    strings.Builder
	style   string
	outline int // direct formatting, as in wordStyle
	list    bool
	level   int // of a list item, from 0
}

type wordRun struct {
	kind  Kind
	lines []string
}

type wordTable struct {
	rows  [][]string
	bytes int // of all cells, repeated ones counted again
	cell  strings.Builder
	span  int
	merge bool // the cell continues the one above
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
		w.paragraphs = append(w.paragraphs, &wordParagraph{})
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
		p.list = value != "0" // 0 takes the numbering of the style away
	}
}

func (w *wordReader) tableStart(e xml.StartElement) {
	if len(w.tables) == 0 {
		return
	}
	t := w.tables[len(w.tables)-1]
	switch e.Name.Local {
	case "tr":
		t.rows = append(t.rows, nil)
	case "tc":
		t.cell.Reset()
		t.span, t.merge = 1, false
	case "gridSpan":
		t.span = max(1, min(number(local(e, "val"), 1), w.limits.TableColumns))
	case "vMerge":
		t.merge = local(e, "val") != "restart"
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
	if w.inText && w.skip == 0 {
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
	return w.emit(p, text)
}

func (w *wordReader) emit(p *wordParagraph, text string) error {
	style := resolveStyle(w.styles, p.style)
	heading := style.heading
	if p.outline != 0 {
		heading = max(p.outline, 0)
	}
	switch {
	case strings.TrimSpace(text) == "" && !style.code:
		return w.flushRun()
	case style.code:
		return w.addRun(KindCode, text)
	case heading > 0 || style.title:
		if err := w.flushRun(); err != nil {
			return err
		}
		if w.b.title == "" && (style.title || heading == 1) {
			w.b.title = collapse(text)
		}
		return w.b.add(part{kind: KindHeading, level: heading, text: text})
	case p.list || style.list:
		return w.addRun(KindList, strings.Repeat("  ", p.level)+"- "+collapse(text))
	}
	if err := w.flushRun(); err != nil {
		return err
	}
	return w.b.add(part{kind: KindParagraph, text: text})
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

// endCell puts the cell into its row, once for every column it spans; a cell that continues the one
// above repeats it.
func (w *wordReader) endCell() error {
	if len(w.tables) == 0 {
		return nil
	}
	t := w.tables[len(w.tables)-1]
	if len(t.rows) == 0 {
		return nil
	}
	row := &t.rows[len(t.rows)-1]
	text := t.cell.String()
	t.cell.Reset()
	for i := range t.span {
		if t.merge && len(t.rows) > 1 {
			if above := t.rows[len(t.rows)-2]; len(*row) < len(above) {
				text = repeated(above[len(*row)])
			}
		}
		if i == 1 {
			text = repeated(text)
		}
		*row = append(*row, text)
		if t.bytes += len(text) + 16; t.bytes > 2*w.limits.TextBytes {
			return limitError("a table's text", 2*w.limits.TextBytes, "bytes")
		}
	}
	return nil
}

// endTable emits a table, or gives a nested one's text to the cell around it.
func (w *wordReader) endTable() error {
	n := len(w.tables)
	if n == 0 {
		return nil
	}
	t := w.tables[n-1]
	w.tables = w.tables[:n-1]
	var rows []string
	single := true
	for _, cells := range t.rows {
		if row := renderRow(cells); row != "" {
			rows = append(rows, row)
			single = single && len(cells) < 2
		}
	}
	if n > 1 {
		w.tables[n-2].cell.WriteString(" " + strings.Join(rows, "; ") + " ")
		return nil
	}
	p := part{kind: KindTable, text: strings.Join(rows, "\n")}
	if single {
		p.kind = KindParagraph
	} else if len(rows) > 1 {
		p.header = rows[0] + "\n"
	}
	return w.b.add(p)
}
