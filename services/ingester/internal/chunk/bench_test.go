package chunk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// prose is plain English text of about n bytes.
func prose(n int) parse.Document {
	const paragraph = "The pump moves water from the tank to the boiler at a steady pressure. When the float drops, " +
		"a switch stops the motor and the display shows a code. Clean the filter once a month, or sooner if the flow " +
		"gets weak. Most faults come from scale, and scale comes from hard water that stood for too long.\n\n"
	var text strings.Builder
	doc := parse.Document{}
	for text.Len() < n {
		b := parse.Block{Kind: parse.KindParagraph, Start: text.Len()}
		text.WriteString(paragraph)
		b.End = text.Len()
		doc.Blocks = append(doc.Blocks, b)
	}
	doc.Text = text.String()
	return doc
}

func BenchmarkSplitEnglishEstimated(b *testing.B) {
	doc := prose(1 << 20)
	b.SetBytes(int64(len(doc.Text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Split(doc, Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplitEnglishTiktoken(b *testing.B) {
	counter, err := CounterFor("text-embedding-3-small")
	if err != nil {
		b.Fatal(err)
	}
	doc := prose(1 << 18)
	b.SetBytes(int64(len(doc.Text)))
	for b.Loop() {
		if _, _, err := Split(doc, Config{Counter: counter}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplitChineseEstimated(b *testing.B) {
	text := strings.Repeat("水泵把水从水箱送到锅炉。浮子落下时，开关停止电机，屏幕显示故障代码。每月清洗一次滤网。\n\n", 4000)
	doc := parse.Document{Text: text}
	b.SetBytes(int64(len(doc.Text)))
	for b.Loop() {
		if _, _, err := Split(doc, Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEstimator(b *testing.B) {
	text := prose(1 << 20).Text
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Estimator{}.Count(text)
	}
}

// sections is a document of n headings, each followed by 180 words that are one paragraph without an end.
func sections(n int) parse.Document {
	var text strings.Builder
	doc := parse.Document{}
	for i := range n {
		heading := fmt.Sprintf("Section %d of %d", i, n)
		text.WriteString(heading + "\n\n")
		path := []string{heading}
		at := text.Len()
		doc.Blocks = append(doc.Blocks, parse.Block{
			Kind: parse.KindHeading, Level: 1, HeadingPath: path, Start: at - len(heading) - 2, End: at,
			Line: 4*i + 1, LineEnd: 4*i + 1,
		})
		for k := range 180 {
			text.WriteByte('w')
			for m := 26 + (i*180+k)*7919%40_000; m > 0; m /= 26 {
				text.WriteByte(byte('a' + m%26))
			}
			text.WriteByte(' ')
		}
		text.WriteString("\n\n")
		doc.Blocks = append(doc.Blocks, parse.Block{
			Kind: parse.KindParagraph, HeadingPath: path, Start: at, End: text.Len(), Line: 4*i + 3, LineEnd: 4*i + 3,
		})
	}
	doc.Text = text.String()
	return doc
}

func BenchmarkSplitSections(b *testing.B) {
	const n = 10
	doc := sections(n)
	b.SetBytes(int64(len(doc.Text)))
	b.ReportAllocs()
	for b.Loop() {
		chunks, _, err := Split(doc, Config{})
		if err != nil || len(chunks) != n {
			b.Fatalf("got %d chunks, %v, want %d", len(chunks), err, n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/chunk")
}
