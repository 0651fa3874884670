package parse

import (
	"encoding/xml"
	"strings"
)

// odfTable is an open table of a text or a slide.
type odfTable struct {
	rows  [][]string
	open  strings.Builder // text of the open cell
	span  int             // columns of the open cell, spanned and repeated
	down  map[int]spanCell
	depth int // rows spanned below
	bytes int
}

func (t *odfTable) cell(text string) {
	if text = collapse(text); text != "" {
		if t.open.Len() > 0 {
			t.open.WriteByte(' ')
		}
		t.open.WriteString(text)
	}
}

// odfSheet is an open sheet.
type odfSheet struct {
	grid   *grid
	row    int // from 1
	repeat int // of the open row
	column int // from 0, of the open cell
	count  int // columns that the open cell stands for
	open   strings.Builder
	value  string // of a cell without text
	number bool   // the cell is a number or a date
	cells  []gridCell
}

func (s *odfSheet) cell(text string) {
	if s.open.Len() > 0 {
		s.open.WriteByte(' ')
	}
	s.open.WriteString(text)
}

func (r *odfReader) tableStart(e xml.StartElement) error {
	if e.Name.Local == "table" {
		if err := r.flush(); err != nil {
			return err
		}
		if r.inSheets && len(r.tables) == 0 && len(r.paragraphs) == 0 && r.sheet == nil {
			r.sheetStart(e)
			return nil
		}
		if r.sheet == nil {
			r.tables = append(r.tables, &odfTable{down: map[int]spanCell{}})
		}
		return nil
	}
	if r.sheet != nil {
		r.sheetCell(e)
		return nil
	}
	n := len(r.tables)
	if n == 0 {
		return nil
	}
	t := r.tables[n-1]
	switch e.Name.Local {
	case "table-row":
		t.rows = append(t.rows, nil)
	case "table-cell":
		t.span = max(1, min(number(local(e, "number-columns-spanned"), 1), r.limits.TableColumns))
		t.depth = max(1, min(number(local(e, "number-rows-spanned"), 1), 1000)) - 1
	case "covered-table-cell":
		t.span = 0
	}
	return nil
}

func (r *odfReader) sheetStart(e xml.StartElement) {
	name := clip(collapse(local(e, "name")), maxSheetName)
	r.sheets++
	if r.styles[local(e, "style-name")].hidden {
		r.hidden = append(r.hidden, clip(name, 40))
		r.skip = 1
		return
	}
	r.b.move(Place{Sheet: name})
	r.sheet = &odfSheet{grid: newGrid(r.b)}
}

// Repetitions up to these are written out; more of them is how programs fill the rest of a sheet.
const (
	maxRepeatedRows    = 10_000
	maxRepeatedColumns = 256
)

func (r *odfReader) sheetCell(e xml.StartElement) {
	s := r.sheet
	switch e.Name.Local {
	case "table-row":
		s.repeat = max(1, number(local(e, "number-rows-repeated"), 1))
		s.column, s.cells = 0, nil
	case "table-cell", "covered-table-cell":
		s.count = max(1, number(local(e, "number-columns-repeated"), 1))
		s.open.Reset()
		s.value = local(e, "value")
		kind := local(e, "value-type")
		s.number = s.value != "" || kind == "date" || kind == "time"
		for _, name := range []string{"date-value", "time-value", "boolean-value", "string-value"} {
			if v := local(e, name); v != "" {
				s.value = v
			}
		}
	}
}

func (r *odfReader) tableEnd(name string) error {
	if r.sheet != nil {
		return r.sheetEnd(name)
	}
	n := len(r.tables)
	if n == 0 {
		return nil
	}
	t := r.tables[n-1]
	switch name {
	case "table-cell", "covered-table-cell":
		return t.endCell(r.limits)
	case "table-row":
		t.carry(r.limits)
	case "table":
		return r.endTable(t)
	}
	return nil
}

// endCell puts a cell into its row, once for each column it spans; covered cells come from above.
func (t *odfTable) endCell(l Limits) error {
	if len(t.rows) == 0 {
		return nil
	}
	row := &t.rows[len(t.rows)-1]
	text := t.open.String()
	t.open.Reset()
	if t.span == 0 {
		t.carry(l)
		return nil
	}
	for i := range t.span {
		if i == 1 {
			text = repeated(text)
		}
		if t.depth > 0 && len(*row) < l.TableColumns {
			t.down[len(*row)] = spanCell{text: repeated(text), rows: t.depth}
		}
		*row = append(*row, text)
		if t.bytes += len(text) + 16; t.bytes > 2*l.TextBytes {
			return limitError("a table's text", 2*l.TextBytes, "bytes")
		}
	}
	return nil
}

// carry appends the cells that reach down from rows above, as far as they stand next.
func (t *odfTable) carry(l Limits) {
	if len(t.rows) == 0 {
		return
	}
	row := &t.rows[len(t.rows)-1]
	for len(*row) < l.TableColumns {
		cell, ok := t.down[len(*row)]
		if !ok {
			return
		}
		if cell.rows--; cell.rows == 0 {
			delete(t.down, len(*row))
		} else {
			t.down[len(*row)] = cell
		}
		*row = append(*row, cell.text)
		t.bytes += len(cell.text)
	}
}

// endTable emits a table, or gives a nested one's text to the cell around it.
func (r *odfReader) endTable(t *odfTable) error {
	r.tables = r.tables[:len(r.tables)-1]
	p := tablePart(t.rows)
	if n := len(r.tables); n > 0 {
		r.tables[n-1].cell(strings.ReplaceAll(p.text, "\n", "; "))
		return nil
	}
	if err := r.add(p); err != nil {
		return err
	}
	return r.emitNotes()
}

func (r *odfReader) sheetEnd(name string) error {
	s := r.sheet
	switch name {
	case "table-cell", "covered-table-cell":
		text := collapse(s.open.String())
		if text == "" {
			text = s.value
		}
		for i := 0; text != "" && i < min(s.count, maxRepeatedColumns); i++ {
			s.cells = append(s.cells, gridCell{s.column + i, text, s.number})
		}
		s.column += s.count
	case "table-row":
		for i := 0; len(s.cells) > 0 && i < min(s.repeat, maxRepeatedRows); i++ {
			if err := s.grid.row(s.row+1+i, s.cells); err != nil {
				return err
			}
		}
		s.row += s.repeat
	case "table":
		r.sheet = nil
		return s.grid.finish()
	}
	return nil
}
