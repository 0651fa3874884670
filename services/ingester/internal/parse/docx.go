package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/weir-project/weir/pkg/messages"
)

func docxFormat() format {
	return format{
		name:       "docx",
		mediaTypes: []string{"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		extensions: []string{".docx"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      func(data []byte) bool { return zipKind(data) == "docx" },
		parse:      parseDOCX,
	}
}

// parseDOCX reads the body, each note behind the paragraph that refers to it, then headers and footers,
// the same text once. Names are matched without their namespace: strict and transitional files differ
// only there.
func parseDOCX(ctx context.Context, s source, b *builder) error {
	archive, err := openArchive(s.data, s.limits)
	if err != nil {
		return err
	}
	if b.title, err = coreTitle(archive, s.limits); err != nil {
		return err
	}
	w := &wordReader{b: b, limits: s.limits}
	if w.styles, err = readStyles(archive, s.limits); err != nil {
		return err
	}
	if w.numbering, err = readNumbering(ctx, archive, w.styles); err != nil {
		return err
	}
	if w.notes, err = readNotes(ctx, archive, w.styles); err != nil {
		return err
	}
	const main = "word/document.xml"
	if w.relations, err = archive.relations(ctx, main); err != nil {
		return err
	}
	w.include = func(r relation) error { return includePart(ctx, s, archive, w, r) }
	err = archive.walk(ctx, main, w.start, w.end, w.text)
	if errors.Is(err, errNoEntry) {
		return damaged("the file holds no %s", main)
	}
	if err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	return wordFurniture(ctx, archive, w)
}

// includePart reads another part in the place where the text refers to it: a drawing, a chart, or a
// chunk in another format.
func includePart(ctx context.Context, s source, a *archive, w *wordReader, r relation) error {
	if err := w.flushRunOutside(); err != nil {
		return err
	}
	if r.kind != "aFChunk" {
		text, err := a.drawingTexts(ctx, r.target)
		if err != nil {
			return err
		}
		return w.b.add(part{kind: KindList, text: text})
	}
	data, err := a.content(r.target)
	if err != nil {
		return ignoreMissing(err)
	}
	title := w.b.title
	in := Input{Data: data, Name: r.target}
	found, err := s.parser.formats.detect(in)
	if err == nil && s.depth < attachDepth {
		err = s.parser.read(ctx, in, found, s.depth+1, w.b)
	}
	w.b.title = title
	if e, ok := messages.AsError(err); ok && e.Code != messages.CodeParseLimit {
		w.b.warn("a part of another format was not read: " + e.Message)
		return nil
	}
	return err
}

// readNotes gives the text of footnotes and endnotes by the key that references have.
func readNotes(ctx context.Context, a *archive, styles map[string]wordStyle) (map[string]string, error) {
	out := map[string]string{}
	for _, kind := range []string{"footnote", "endnote"} {
		inner := &builder{limits: a.limits}
		w := &wordReader{b: inner, styles: styles, limits: a.limits}
		id, from := "", 0
		err := a.walk(ctx, "word/"+kind+"s.xml", func(e xml.StartElement) error {
			if e.Name.Local == kind && w.skip == 0 {
				id, from = local(e, "id"), inner.text.Len()
			}
			return w.start(e)
		}, func(name string) error {
			if err := w.end(name); err != nil {
				return err
			}
			if name != kind || w.skip > 0 {
				return nil
			}
			err := w.flushRun()
			out[kind+" "+id] = inner.text.String()[from:]
			return err
		}, w.text)
		if ignoreMissing(err) != nil {
			return nil, err
		}
	}
	return out, nil
}

// wordFurniture reads headers and footers. Those that say nothing but a page number are left out.
func wordFurniture(ctx context.Context, a *archive, w *wordReader) error {
	relations, err := a.relations(ctx, "word/document.xml")
	if err != nil {
		return err
	}
	var parts []string
	for _, r := range relations {
		if r.kind == "header" || r.kind == "footer" {
			parts = append(parts, r.target)
		}
	}
	sort.Strings(parts)
	seen := map[string]bool{}
	w.b.path = headingPath{}
	for _, name := range slices.Compact(parts) {
		inner := &builder{limits: a.limits}
		r := &wordReader{b: inner, styles: w.styles, limits: a.limits}
		if err := a.walk(ctx, name, r.start, r.end, r.text); ignoreMissing(err) != nil {
			return err
		}
		if err := r.finish(); err != nil {
			return err
		}
		text := strings.TrimSpace(inner.text.String())
		key := strings.Map(func(r rune) rune { // the number of a page makes no other text
			if unicode.IsDigit(r) || unicode.IsSpace(r) {
				return -1
			}
			return r
		}, text)
		if seen[key] || strings.IndexFunc(key, unicode.IsLetter) < 0 {
			continue
		}
		seen[key] = true
		if err := w.b.add(part{kind: KindParagraph, text: text}); err != nil {
			return err
		}
	}
	return nil
}
