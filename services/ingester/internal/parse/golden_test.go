package parse_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden reads every file of testdata/<format>/ and of the examples, and compares what comes out.
// A name like x.charset-gb18030.txt declares that charset.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, f := range parse.Formats() {
		files, err := filepath.Glob(filepath.Join("testdata", f.Name, "*"))
		if err != nil {
			t.Fatal(err)
		}
		examples, err := filepath.Glob("../../../../examples/*" + f.Extensions[0])
		if err != nil {
			t.Fatal(err)
		}
		cases := 0
		for _, file := range append(files, examples...) {
			if strings.HasSuffix(file, ".golden") {
				continue
			}
			cases++
			golden := filepath.Join("testdata", f.Name, filepath.Base(file)+".golden")
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				compare(t, file, golden, f)
			})
		}
		if cases == 0 {
			t.Errorf("format %s has no golden test", f.Name)
		}
	}
}

func compare(t *testing.T, file, golden string, f parse.FormatInfo) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	media := f.MediaTypes[0]
	if _, charset, ok := strings.Cut(filepath.Base(file), ".charset-"); ok {
		media += "; charset=" + strings.TrimSuffix(charset, filepath.Ext(charset))
	}
	parser := reader(t)
	if f.Name == "image" {
		parser.Recognise = func(context.Context, []byte) (string, error) {
			return "First paragraph\nof the image.\n\n\fSecond one.\n", nil
		}
	}
	doc, err := parser.Parse(t.Context(), parse.Input{Data: data, ContentType: media, Name: file})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	got := render(doc)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", golden, got)
	}
}

func render(doc parse.Document) string {
	var out strings.Builder
	fmt.Fprintf(&out, "format %s, title %q, pages %d\n", doc.Format, doc.Title, doc.Pages)
	for _, w := range doc.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	for _, b := range doc.Blocks {
		fmt.Fprintf(&out, "\n%s", b.Kind)
		for _, n := range []struct {
			name  string
			value int
		}{{"level", b.Level}, {"page", b.Page}, {"slide", b.Slide}} {
			if n.value > 0 {
				fmt.Fprintf(&out, " %s=%d", n.name, n.value)
			}
		}
		if b.Line > 0 {
			fmt.Fprintf(&out, " lines=%d-%d", b.Line, b.LineEnd)
		}
		for _, place := range []struct{ name, value string }{{"sheet", b.Sheet}, {"chapter", b.Chapter}, {"attachment", b.Attachment}} {
			if place.value != "" {
				fmt.Fprintf(&out, " %s=%q", place.name, place.value)
			}
		}
		if b.Lang != "" {
			fmt.Fprintf(&out, " lang=%s", b.Lang)
		}
		if b.HeaderEnd > 0 {
			fmt.Fprintf(&out, " header=%q", doc.Text[b.Start:b.HeaderEnd])
		}
		if b.Header != "" {
			fmt.Fprintf(&out, " continues=%q", b.Header)
		}
		fmt.Fprintf(&out, " under %q\n%s\n", b.HeadingPath, strings.TrimRight(doc.Text[b.Start:b.End], "\n"))
	}
	return out.String()
}

// checkDocument holds a document against what every reader promises.
func checkDocument(t *testing.T, doc parse.Document) {
	t.Helper()
	if !norm.NFC.IsNormalString(doc.Text) {
		t.Error("text is not NFC")
	}
	for i, r := range doc.Text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			t.Fatalf("control character %U at %d", r, i)
		}
	}
	at, page, attachment := 0, 0, ""
	for i, b := range doc.Blocks {
		if b.Start != at || b.End <= b.Start || b.End > len(doc.Text) {
			t.Fatalf("block %d covers [%d,%d), want it to start at %d of %d", i, b.Start, b.End, at, len(doc.Text))
		}
		if b.HeaderEnd != 0 && (b.HeaderEnd <= b.Start || b.HeaderEnd >= b.End) {
			t.Errorf("block %d [%d,%d): header ends at %d", i, b.Start, b.End, b.HeaderEnd)
		}
		if b.Attachment != attachment {
			page, attachment = 0, b.Attachment
		}
		if (b.Page < page || b.Page > doc.Pages) && attachment == "" || b.Page < page {
			t.Errorf("block %d: page %d behind %d of %d", i, b.Page, page, doc.Pages)
		}
		if b.Slide > doc.Pages && attachment == "" || b.Line > b.LineEnd || b.HeaderEnd > 0 && b.Header != "" {
			t.Errorf("block %d: slide %d of %d, lines %d-%d, headers %d and %q", i, b.Slide, doc.Pages, b.Line, b.LineEnd, b.HeaderEnd, b.Header)
		}
		if (b.Kind == parse.KindHeading) != (b.Level > 0) {
			t.Errorf("block %d: %s of level %d", i, b.Kind, b.Level)
		}
		at, page = b.End, b.Page
	}
	if at != len(doc.Text) {
		t.Errorf("blocks end at %d of %d", at, len(doc.Text))
	}
}
