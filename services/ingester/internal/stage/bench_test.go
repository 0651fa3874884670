package stage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

const benchSections = 10

// benchDocument has a heading and a paragraph of about 180 words a section.
func benchDocument() parse.Document {
	const sentence = "The cover ends with the month in which the pump was sold, whatever the seller said about it. "
	var text strings.Builder
	var doc parse.Document
	for i := range benchSections {
		path := []string{fmt.Sprintf("Section %d", i)}
		add := func(kind parse.Kind, level int, s string) {
			from := text.Len()
			text.WriteString(s + "\n\n")
			doc.Blocks = append(doc.Blocks, parse.Block{Kind: kind, Level: level, Start: from, End: text.Len(), HeadingPath: path, Line: 4 * i, LineEnd: 4*i + 2})
		}
		add(parse.KindHeading, 1, path[0])
		add(parse.KindParagraph, 0, strings.TrimSpace(strings.Repeat(sentence, 10)))
	}
	doc.Text = text.String()
	return doc
}

// BenchmarkHandle is what a parsed document of ten chunks costs beside the database, the bus and the reading
// of it: chunks, their analysis, the messages that follow.
func BenchmarkHandle(b *testing.B) {
	h := newQuick().handler()
	body := parseWork(b)
	b.ReportAllocs()
	for b.Loop() {
		if out, err := h.Handle(b.Context(), body); err != nil || len(out) != 1 {
			b.Fatal(len(out), err)
		}
	}
}
