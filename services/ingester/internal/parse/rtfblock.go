package parse

import "strings"

func (r *rtfReader) endCell() {
	if r.now.dest != destBody {
		return
	}
	if len(r.row) < r.limits.TableColumns*10 {
		r.row = append(r.row, collapse(r.text.String()))
	}
	r.text.Reset()
	r.paragraph.mark = ""
}

func (r *rtfReader) endRow() {
	if len(r.row) > 0 {
		r.table = append(r.table, r.row)
	}
	r.row = nil
	r.text.Reset()
}

// endParagraph emits the open paragraph; inside a table it only ends a line of the cell.
func (r *rtfReader) endParagraph() error {
	p := r.paragraph
	if p.table || len(r.row) > 0 {
		r.text.WriteByte(' ')
		return nil
	}
	text := r.text.String()
	r.text.Reset()
	r.paragraph.mark = ""
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := r.endTable(); err != nil {
		return err
	}
	if err := r.emit(p, text); err != nil {
		return err
	}
	notes := r.notes
	r.notes = nil
	for _, note := range notes {
		if err := r.b.add(part{kind: KindParagraph, text: note}); err != nil {
			return err
		}
	}
	return nil
}

func (r *rtfReader) emit(p rtfParagraph, text string) error {
	style := r.styles[p.style]
	level := max(p.outline, style.level)
	switch {
	case style.code:
		return r.item(KindCode, text)
	case level > 0 || style.title:
		if err := r.flushRun(); err != nil {
			return err
		}
		if r.b.title == "" && level < 2 {
			r.b.title = collapse(text)
		}
		return r.b.add(part{kind: KindHeading, level: level, text: text})
	case p.list:
		mark := "- "
		if hasWord(p.mark) {
			mark = p.mark + " "
		}
		return r.item(KindList, strings.Repeat("  ", p.level)+mark+collapse(text))
	}
	if err := r.flushRun(); err != nil {
		return err
	}
	return r.b.add(part{kind: KindParagraph, text: text})
}

// item joins neighbouring list items, or code lines, into one block.
func (r *rtfReader) item(kind Kind, text string) error {
	if r.run.kind != kind {
		if err := r.flushRun(); err != nil {
			return err
		}
		r.run = wordRun{kind: kind}
	}
	r.run.lines = append(r.run.lines, text)
	return nil
}

func (r *rtfReader) flushRun() error {
	run := r.run
	r.run = wordRun{}
	if run.kind == "" {
		return nil
	}
	return r.b.add(part{kind: run.kind, text: strings.Join(run.lines, "\n")})
}

// endTable emits the rows gathered so far.
func (r *rtfReader) endTable() error {
	rows := r.table
	r.table = nil
	if len(rows) == 0 {
		return nil
	}
	if err := r.flushRun(); err != nil {
		return err
	}
	return r.b.add(tablePart(rows))
}
