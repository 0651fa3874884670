package parse

import "strings"

// gridCell is a cell with text of a sheet.
type gridCell struct {
	column int // from 0
	text   string
	number bool // a number or date, whatever it is shown as
}

// grid turns the rows of a sheet into blocks. An empty row ends a table; lines of a single cell above a
// table are its title, the first full row is its header.
type grid struct {
	b      *builder
	table  *rowBlocks
	titles []numberedRow // single cells at the beginning of a table that has not come yet
	left   int           // first column of the table
	last   int           // row that came last
	width  int           // cells of the first row of the table
	header string        // of the table before, which a row without names below an empty one goes on with
}

func newGrid(b *builder) *grid { return &grid{b: b} }

const maxTitles = 3 // single cells above a table; more of them are a table of one column

// row appends a row; rows come in order, empty ones may be left out.
func (g *grid) row(n int, cells []gridCell) error {
	if len(cells) == 0 {
		return nil
	}
	if g.last > 0 && n != g.last+1 {
		if err := g.finish(); err != nil {
			return err
		}
	}
	g.last = n
	if g.table == nil && len(cells) == 1 && len(g.titles) < maxTitles {
		g.titles = append(g.titles, numberedRow{text: cells[0].text, line: n, last: n})
		return nil
	}
	if g.table == nil {
		if err := g.begin(cells); err != nil {
			return err
		}
	}
	return g.table.add(numberedRow{text: g.render(cells), line: n, last: n})
}

// begin opens the table whose first row is cells, below the titles.
func (g *grid) begin(cells []gridCell) error {
	same := g.left == cells[0].column && len(g.titles) == 0 && len(cells) <= g.width
	g.table, g.left = &rowBlocks{b: g.b}, cells[0].column
	switch {
	case len(cells) == 1: // many single cells: a table of one column
		return g.takeTitles(KindTable)
	case namesOnly(cells):
		g.table.heads, g.width = 1, len(cells)
	case same && g.header != "":
		g.table.started, g.table.header = true, g.header
	default:
		g.width = len(cells)
	}
	return g.takeTitles(KindParagraph)
}

func (g *grid) takeTitles(kind Kind) error {
	titles := g.titles
	g.titles = nil
	for _, t := range titles {
		if kind == KindTable {
			if err := g.table.add(t); err != nil {
				return err
			}
			continue
		}
		if err := g.b.add(part{kind: kind, text: t.text, line: t.line, end: t.last}); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the open table.
func (g *grid) finish() error {
	if g.table == nil {
		g.table = &rowBlocks{b: g.b}
		if err := g.takeTitles(KindTable); err != nil {
			return err
		}
	}
	table := g.table
	g.table = nil
	err := table.flush()
	g.header = table.header
	return err
}

// render joins cells, with empty ones in between where columns are skipped.
func (g *grid) render(cells []gridCell) string {
	const most = 50 // empty cells between two
	var out strings.Builder
	at := g.left
	for i, c := range cells {
		if i > 0 {
			out.WriteString(" | ")
			at++
		}
		for skipped := 0; at < c.column && skipped < most; skipped++ {
			out.WriteString(" | ")
			at++
		}
		at = c.column
		out.WriteString(c.text)
	}
	return out.String()
}

// namesOnly reports a row that names columns: several cells, none a number.
func namesOnly(cells []gridCell) bool {
	texts := make([]string, len(cells))
	for i, c := range cells {
		if texts[i] = c.text; c.number {
			return false
		}
	}
	return headerRow(strings.Join(texts, " | "))
}
