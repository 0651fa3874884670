package parse

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// sheetReader turns the tokens of a worksheet into rows.
type sheetReader struct {
	book    *workbook
	grid    *grid
	row     int // from 1
	column  int // from 0, of the open cell
	cells   []gridCell
	kind    string
	style   int
	value   strings.Builder
	inValue bool
	phon    bool // inside a reading, see workbook.strings
	formula bool
	got     bool // the cell has a value
	unknown int  // formulas without a stored result
}

func (r *sheetReader) start(e xml.StartElement) error {
	switch e.Name.Local {
	case "row":
		r.row = number(local(e, "r"), r.row+1)
		r.column = -1
	case "c":
		r.column = columnOf(local(e, "r"), r.column+1)
		r.kind, r.style = local(e, "t"), number(local(e, "s"), 0)
		r.formula, r.got = false, false
		r.value.Reset()
	case "f":
		r.formula = true
	case "v":
		r.inValue, r.got = true, true
	case "rPh":
		r.phon = true
	case "t":
		r.inValue, r.got = r.kind == "inlineStr" && !r.phon, true
	}
	return nil
}

func (r *sheetReader) text(t []byte) {
	if r.inValue {
		r.value.Write(t)
	}
}

func (r *sheetReader) end(name string) error {
	switch name {
	case "v", "t":
		r.inValue = false
	case "rPh":
		r.phon = false
	case "c":
		if r.formula && !r.got {
			r.unknown++
		}
		if text := collapse(r.book.value(r.kind, r.value.String(), r.style)); text != "" {
			r.cells = append(r.cells, gridCell{r.column, text, r.kind == "" || r.kind == "n"})
		}
	case "row":
		cells := r.cells
		r.cells = nil
		return r.grid.row(r.row, cells)
	}
	return nil
}

func (w *workbook) numeric(text string, style int) string {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || style < 0 || style >= len(w.formats) {
		return text
	}
	return w.formats[style].format(v)
}

// columnOf reads the letters of a cell's name, as in BC12, into a number from 0.
func columnOf(name string, standard int) int {
	column := 0
	for i := 0; i < len(name) && i < 4; i++ {
		c := name[i] &^ 0x20
		if c < 'A' || c > 'Z' {
			break
		}
		column = column*26 + int(c-'A') + 1
	}
	if column == 0 {
		return standard
	}
	return column - 1
}
