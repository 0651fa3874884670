package parse

import "strings"

// tablePart renders rows, the first as header. A table of one column is running text. Rows without text
// are left out.
func tablePart(rows [][]string) part {
	var lines []string
	single := true
	for _, cells := range rows {
		if row := renderRow(cells); row != "" {
			lines = append(lines, row)
			single = single && len(cells) < 2
		}
	}
	p := part{kind: KindTable, text: strings.Join(lines, "\n")}
	if single {
		p.kind = KindParagraph
	} else if len(lines) > 1 {
		p.header = lines[0] + "\n"
	}
	return p
}

// numberedRow is a row of a sheet or of a delimited file.
type numberedRow struct {
	text       string
	line, last int // lines of the source
}

// rowBlocks appends rows as table blocks in which text lines and source lines go together, so that every
// chunk of them knows its lines: a block ends where lines are missing, but not below minRows. Blocks
// behind the first carry the header rows as context.
type rowBlocks struct {
	b       *builder
	header  string // header rows, each with its line end; empty: none
	heads   int    // header rows at the beginning of the first block
	started bool
	rows    []numberedRow
	bytes   int
}

const (
	minRows     = 40
	maxRowBytes = 256 << 10 // text of a block
)

func (t *rowBlocks) add(r numberedRow) error {
	if n := len(t.rows); n > 0 {
		before := t.rows[n-1]
		exact := before.last+1 == r.line && before.last == before.line && r.last == r.line
		if n >= minRows && !exact || t.bytes > maxRowBytes {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	t.rows = append(t.rows, r)
	t.bytes += len(r.text) + 1
	return nil
}

func (t *rowBlocks) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	lines := make([]string, len(t.rows))
	for i, r := range t.rows {
		lines[i] = r.text
	}
	p := part{kind: KindTable, text: strings.Join(lines, "\n"), line: t.rows[0].line, end: t.rows[len(t.rows)-1].last}
	switch {
	case t.started:
		p.over = clipHeader(t.header)
	case t.heads > 0 && t.heads < len(lines):
		t.header = strings.Join(lines[:t.heads], "\n") + "\n"
		p.header = t.header
	}
	t.started, t.rows, t.bytes = true, t.rows[:0], 0
	return t.b.add(p)
}

// clipHeader bounds header rows that are repeated with every block.
func clipHeader(header string) string {
	const most = 2 << 10
	if len(header) <= most {
		return header
	}
	return strings.TrimSuffix(clip(header, most), "…")
}
