package parse

import (
	"encoding/xml"
	"strings"
)

type wordTable struct {
	rows  [][]string
	bytes int // of all cells, repeated ones counted again
	cell  strings.Builder
	span  int
	merge bool // the cell continues the one above
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
	if err := w.b.add(p); err != nil {
		return err
	}
	return w.emitNotes()
}
