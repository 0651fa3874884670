package parse

import (
	"context"
	"encoding/xml"
	"strings"
)

// drawingTexts gives the texts of a SmartArt drawing, a chart or the shapes of a sheet as a list, each
// once; "" when there are none. Of charts these are names of series and categories, not the numbers.
func (a *archive) drawingTexts(ctx context.Context, part string) (string, error) {
	d := &drawingReader{most: a.limits.TextBytes, seen: map[string]bool{}}
	err := a.walk(ctx, part, d.start, d.end, d.take)
	return strings.Join(d.items, "\n"), ignoreMissing(err)
}

type drawingReader struct {
	items   []string
	seen    map[string]bool
	text    strings.Builder
	inText  bool
	numbers int // depth inside the numbers of a chart
	skip    int
	bytes   int
	most    int
}

func (d *drawingReader) start(e xml.StartElement) error {
	name := e.Name.Local
	switch {
	case d.skip > 0 || name == "Fallback":
		d.skip++
	case name == "t", name == "v":
		d.inText = d.numbers == 0
	case name == "numRef", name == "numLit", name == "numCache":
		d.numbers++
	}
	return nil
}

func (d *drawingReader) take(t []byte) {
	if d.inText && d.skip == 0 && d.bytes < d.most {
		d.bytes += len(t)
		d.text.Write(t)
	}
}

func (d *drawingReader) end(name string) error {
	if d.skip > 0 {
		d.skip--
		return nil
	}
	switch name {
	case "t":
		d.inText = false
	case "v", "p":
		d.inText = false
		d.item()
	case "numRef", "numLit", "numCache":
		d.numbers = max(0, d.numbers-1)
	}
	return nil
}

func (d *drawingReader) item() {
	item := collapse(d.text.String())
	d.text.Reset()
	if hasWord(item) && !d.seen[item] {
		d.seen[item] = true
		d.items = append(d.items, "- "+item)
	}
}
