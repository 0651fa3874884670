package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
)

func pptxFormat() format {
	return format{
		name: "pptx",
		mediaTypes: []string{
			"application/vnd.openxmlformats-officedocument.presentationml.presentation",
			"application/vnd.openxmlformats-officedocument.presentationml.slideshow",
			"application/vnd.ms-powerpoint.presentation.macroenabled.12",
		},
		extensions: []string{".pptx", ".ppsx", ".pptm", ".potx"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      func(data []byte) bool { return zipKind(data) == "pptx" },
		parse:      parsePPTX,
	}
}

// parsePPTX reads the slides in the order of the presentation: title, shapes in reading order, speaker
// notes. The slide is the place of each block. Running footers are read once, numbers and dates never.
func parsePPTX(ctx context.Context, s source, b *builder) error {
	a, err := openArchive(s.data, s.limits)
	if err != nil {
		return err
	}
	if b.title, err = coreTitle(a, s.limits); err != nil {
		return err
	}
	if programTitle(b.title) {
		b.title = ""
	}
	deck := &deckReader{ctx: ctx, archive: a, b: b, layouts: map[string]layout{}, footers: map[string]bool{}}
	slides, err := deck.slides()
	if err != nil {
		return err
	}
	b.pages = len(slides)
	for i, part := range slides {
		b.move(Place{Slide: i + 1})
		if err := deck.slide(part); errors.Is(err, errNoEntry) {
			b.warn(fmt.Sprintf("slide %d is missing from the file", i+1))
		} else if err != nil {
			return err
		}
	}
	b.move(Place{})
	return nil
}

type deckReader struct {
	ctx     context.Context
	archive *archive
	b       *builder
	layouts map[string]layout
	footers map[string]bool // that were read
}

// slides lists the slides' entries in order.
func (d *deckReader) slides() ([]string, error) {
	const main = "ppt/presentation.xml"
	relations, err := d.archive.relations(d.ctx, main)
	if err != nil {
		return nil, err
	}
	var out []string
	err = d.archive.walk(d.ctx, main, func(e xml.StartElement) error {
		if e.Name.Local == "sldId" {
			if r, ok := relations[relationID(e)]; ok {
				out = append(out, r.target)
			}
		}
		return nil
	}, ignoreEnd, ignoreText)
	if errors.Is(err, errNoEntry) {
		return nil, damaged("the file holds no %s", main)
	}
	return out, err
}

func (d *deckReader) slide(part string) error {
	shapes, err := d.shapes(part)
	if err != nil {
		return err
	}
	relations, err := d.archive.relations(d.ctx, part)
	if err != nil {
		return err
	}
	if r, ok := relationOf(relations, "slideLayout"); ok {
		known, err := d.layout(r.target)
		if err != nil {
			return err
		}
		known.complete(shapes)
	}
	for _, s := range readingOrder(shapes) {
		if err := d.emit(s, relations); err != nil {
			return err
		}
	}
	if r, ok := relationOf(relations, "notesSlide"); ok {
		return d.notes(r.target)
	}
	return nil
}

// shapes reads a slide, a layout or a notes page.
func (d *deckReader) shapes(part string) ([]*shape, error) {
	r := &slideReader{limits: d.archive.limits}
	err := d.archive.walk(d.ctx, part, r.start, r.end, r.text)
	return r.shapes, err
}

func (d *deckReader) emit(s *shape, relations map[string]relation) error {
	switch s.holder {
	case "title", "ctrTitle":
		title := collapse(strings.ReplaceAll(s.joined(), "\n", " "))
		if d.b.title == "" {
			d.b.title = title
		}
		return d.b.add(part{kind: KindHeading, level: 1, text: title})
	case "sldNum", "dt":
		return nil
	case "ftr", "hdr":
		text := collapse(s.joined())
		if d.footers[text] || text == "" {
			return nil
		}
		d.footers[text] = true
	}
	if s.rows != nil {
		return d.b.add(tablePart(s.rows))
	}
	if s.diagram != "" {
		return d.diagram(relations[s.diagram])
	}
	return d.paragraphs(s)
}

// paragraphs emits a shape's text: list items that follow each other are one block.
func (d *deckReader) paragraphs(s *shape) error {
	var items []string
	flush := func() error {
		text := strings.Join(items, "\n")
		items = nil
		return d.b.add(part{kind: KindList, text: text})
	}
	for i, p := range s.paragraphs {
		if strings.TrimSpace(p.text.String()) == "" {
			continue
		}
		if s.item(i) {
			items = append(items, strings.Repeat("  ", p.level)+"- "+collapse(p.text.String()))
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if err := d.b.add(part{kind: KindParagraph, text: p.text.String()}); err != nil {
			return err
		}
	}
	return flush()
}

// notes emits what the speaker wrote below the slide.
func (d *deckReader) notes(part string) error {
	shapes, err := d.shapes(part)
	if errors.Is(err, errNoEntry) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range shapes {
		if s.holder != "body" {
			continue
		}
		s.free = true // running text, not a list
		if err := d.paragraphs(s); err != nil {
			return err
		}
	}
	return nil
}

// programTitle reports what programs write when nobody gave a title.
func programTitle(title string) bool {
	switch title {
	case "PowerPoint Presentation", "PowerPoint-Präsentation", "Présentation PowerPoint", "Presentación de PowerPoint", "PowerPoint 演示文稿",
		"PowerPoint プレゼンテーション", "Slide 1", "Folie 1", "Diapositive 1", "Diapositiva 1", "幻灯片 1", "スライド 1":
		return true
	}
	return false
}

// diagram emits the texts of a SmartArt drawing or a chart as a list.
func (d *deckReader) diagram(r relation) error {
	text, err := d.archive.drawingTexts(d.ctx, r.target)
	if err != nil {
		return err
	}
	return d.b.add(part{kind: KindList, text: text})
}
