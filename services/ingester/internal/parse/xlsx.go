package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func xlsxFormat() format {
	return format{
		name: "xlsx",
		mediaTypes: []string{
			"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
			"application/vnd.ms-excel.sheet.macroenabled.12",
		},
		extensions: []string{".xlsx", ".xlsm", ".xltx"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      func(data []byte) bool { return zipKind(data) == "xlsx" },
		parse:      parseXLSX,
	}
}

// parseXLSX reads the sheets in order, values as the workbook shows them: numbers and dates in their
// format, formulas by their stored result. Hidden sheets are left out with a warning. The sheet is the
// place of each block, its rows are the lines.
func parseXLSX(ctx context.Context, s source, b *builder) error {
	a, err := openArchive(s.data, s.limits)
	if err != nil {
		return err
	}
	if b.title, err = coreTitle(a, s.limits); err != nil {
		return err
	}
	book := &workbook{ctx: ctx, archive: a, b: b}
	sheets, err := book.sheets()
	if err != nil {
		return err
	}
	if err := book.styles(); err != nil {
		return err
	}
	if err := book.strings(); err != nil {
		return err
	}
	var hidden []string
	for _, sheet := range sheets {
		if sheet.hidden {
			hidden = append(hidden, clip(sheet.name, 40))
			continue
		}
		b.move(Place{Sheet: sheet.name})
		if err := book.sheet(sheet); err != nil {
			return err
		}
	}
	if len(hidden) > 0 {
		b.warn("hidden sheets were left out: " + clip(strings.Join(hidden, ", "), 400))
	}
	b.move(Place{})
	return nil
}

type workbook struct {
	ctx     context.Context
	archive *archive
	b       *builder
	epoch   bool // days are counted from 1904
	shared  []string
	formats []*numberFormat // by cell style
}

type sheetEntry struct {
	name, part string
	hidden     bool
}

const maxSheetName = 100 // bytes; programs allow 31 characters

func (w *workbook) sheets() ([]sheetEntry, error) {
	const main = "xl/workbook.xml"
	relations, err := w.archive.relations(w.ctx, main)
	if err != nil {
		return nil, err
	}
	var out []sheetEntry
	err = w.archive.walk(w.ctx, main, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			w.epoch = truth(local(e, "date1904"))
		case "sheet":
			r, ok := relations[relationID(e)]
			if state := local(e, "state"); ok && r.kind == "worksheet" {
				out = append(out, sheetEntry{
					name: clip(collapse(local(e, "name")), maxSheetName), part: r.target, hidden: state == "hidden" || state == "veryHidden",
				})
			}
		}
		return nil
	}, ignoreEnd, ignoreText)
	if errors.Is(err, errNoEntry) {
		return nil, damaged("the file holds no %s", main)
	}
	return out, err
}

// styles reads the number format of each cell style.
func (w *workbook) styles() error {
	codes := map[string]string{}
	known := map[string]*numberFormat{}
	inCells := false
	err := w.archive.walk(w.ctx, "xl/styles.xml", func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			codes[local(e, "numFmtId")] = local(e, "formatCode")
		case "cellXfs":
			inCells = true
		case "xf":
			const most = 100_000
			if !inCells || len(w.formats) >= most {
				return nil
			}
			id := local(e, "numFmtId")
			if known[id] == nil {
				code, ok := codes[id]
				if !ok {
					code = builtinFormat(number(id, 0))
				}
				known[id] = newNumberFormat(code, w.epoch)
			}
			w.formats = append(w.formats, known[id])
		}
		return nil
	}, func(name string) error {
		inCells = inCells && name != "cellXfs"
		return nil
	}, ignoreText)
	return ignoreMissing(err)
}

// strings reads the table of shared strings, without the readings of East Asian names.
func (w *workbook) strings() error {
	relations, err := w.archive.relations(w.ctx, "xl/workbook.xml")
	if err != nil {
		return err
	}
	part := "xl/sharedStrings.xml"
	if r, ok := relationOf(relations, "sharedStrings"); ok {
		part = r.target
	}
	var text strings.Builder
	inText, phonetic := false, false
	err = w.archive.walk(w.ctx, part, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "si":
			text.Reset()
		case "rPh":
			phonetic = true
		case "t":
			inText = !phonetic
		}
		return nil
	}, func(name string) error {
		switch name {
		case "si":
			w.shared = append(w.shared, text.String())
		case "rPh":
			phonetic = false
		case "t":
			inText = false
		}
		return nil
	}, func(t []byte) {
		if inText {
			text.Write(t)
		}
	})
	return ignoreMissing(err)
}

func (w *workbook) sheet(s sheetEntry) error {
	r := &sheetReader{book: w, grid: newGrid(w.b)}
	err := w.archive.walk(w.ctx, s.part, r.start, r.end, r.text)
	if errors.Is(err, errNoEntry) {
		w.b.warn(fmt.Sprintf("sheet %s is missing from the file", clip(s.name, 40)))
		return nil
	}
	if err != nil {
		return err
	}
	if r.unknown > 0 {
		w.b.warn(fmt.Sprintf("sheet %s: %d formulas have no stored result", clip(s.name, 40), r.unknown))
	}
	if err := r.grid.finish(); err != nil {
		return err
	}
	return w.drawings(s)
}

// drawings reads the texts of the shapes and charts of a sheet.
func (w *workbook) drawings(s sheetEntry) error {
	relations, err := w.archive.relations(w.ctx, s.part)
	if err != nil {
		return err
	}
	drawing, ok := relationOf(relations, "drawing")
	if !ok {
		return nil
	}
	parts := []string{drawing.target}
	inside, err := w.archive.relations(w.ctx, drawing.target)
	if err != nil {
		return err
	}
	for _, r := range inside {
		if r.kind == "chart" || r.kind == "diagramData" {
			parts = append(parts, r.target)
		}
	}
	slices.Sort(parts[1:])
	for _, part := range parts {
		if err := w.drawing(part); err != nil {
			return err
		}
	}
	return nil
}

func (w *workbook) drawing(entry string) error {
	text, err := w.archive.drawingTexts(w.ctx, entry)
	if err != nil {
		return err
	}
	return w.b.add(part{kind: KindList, text: text})
}

// value gives what a cell shows.
func (w *workbook) value(kind, text string, style int) string {
	switch kind {
	case "s":
		if i := number(text, -1); i >= 0 && i < len(w.shared) {
			return w.shared[i]
		}
		return ""
	case "b":
		return map[bool]string{true: "TRUE", false: "FALSE"}[truth(text)]
	case "", "n":
		return w.numeric(text, style)
	}
	return text // str, inlineStr, e, d
}
