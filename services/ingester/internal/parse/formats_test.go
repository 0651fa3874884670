package parse_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

const png = "\x89PNG\r\n\x1a\n...."

func TestImages(t *testing.T) {
	t.Parallel()
	seen := ""
	p := parse.Parser{Recognise: func(_ context.Context, image []byte) (string, error) {
		seen = string(image)
		return "first words\nof a sign\n\nsecond words\n", nil
	}}
	doc, err := p.Parse(t.Context(), parse.Input{Data: []byte(png)})
	if err != nil || len(doc.Blocks) != 2 || doc.Text != "first words\nof a sign\n\nsecond words\n" || seen != png {
		t.Errorf("got %q, image %q, error %v", doc.Text, seen, err)
	}
	p.Recognise = func(context.Context, []byte) (string, error) { return " \n", nil }
	_, err = p.Parse(t.Context(), parse.Input{Data: []byte(png)})
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeNoText {
		t.Errorf("nothing recognised: got %v", err)
	}
	p.Recognise = func(context.Context, []byte) (string, error) { return "", context.DeadlineExceeded }
	_, err = p.Parse(t.Context(), parse.Input{Data: []byte(png)})
	if _, permanent := messages.AsError(err); permanent || err == nil {
		t.Errorf("recognition failed: got %v, want an error worth a retry", err)
	}
}

// sample reads a file of testdata.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatIsNotShownIsNotRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"docx/review.docx", "xlsx/stock.xlsx", "odt/report.odt", "ods/levels.ods", "rtf/letter.rtf", "xml/stations.xml", "eml/order.eml",
	} {
		doc, err := parse.Parse(t.Context(), parse.Input{Data: sample(t, name), Name: name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, secret := range []string{"DELETED", "MOVED", "HIDDEN", "COMMENT", "IGNORED", "NOBODY", "READING", "bad()"} {
			if strings.Contains(doc.Text, secret) {
				t.Errorf("%s: %q was read", name, secret)
			}
		}
	}
	page := `<html><p hidden>NO 1</p><div style="display: none">NO 2</div><ul><li aria-hidden="true">NO 3</li><li>yes</li></ul>` +
		`<table><tr><td>a</td><td style="visibility:hidden">NO 4</td></tr></table>`
	doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(page)})
	if err != nil || strings.Contains(doc.Text, "NO") || !strings.Contains(doc.Text, "yes") {
		t.Errorf("got %q, %v", doc.Text, err)
	}
}

func mail(boundary, name, media, body string) string {
	mark := "\n--" + boundary
	return "From: a\nSubject: outer\nContent-Type: multipart/mixed; boundary=" + boundary + "\n" + mark + "\n\nHello." + mark + "\nContent-Type: " + media +
		"\nContent-Disposition: attachment; filename=\"" + name + "\"\n\n" + body + mark + "--\n"
}

func TestAttachmentsStandInTheMail(t *testing.T) {
	t.Parallel()
	inner := mail("c", "../a/notes.md", "application/x-unknown-type", "# Head\n\nInner words.")
	doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(mail("b", "inner.eml", "message/rfc822", inner))})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	if doc.Title != "outer" || doc.Format != "eml" || len(doc.Warnings) != 0 {
		t.Errorf("title %q, format %q, warnings %q", doc.Title, doc.Format, doc.Warnings)
	}
	last := doc.Blocks[len(doc.Blocks)-1]
	if last.Attachment != "inner.eml/notes.md" || strings.Join(last.HeadingPath, "/") != "Head" || last.Line != 3 {
		t.Errorf("got %+v", last)
	}
}

func TestAttachmentsAreBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	many.WriteString("From: a\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n")
	for i := range 60 {
		fmt.Fprintf(&many, "--b\nContent-Disposition: attachment; filename=f%d.txt\n\nwords %d\n", i, i)
	}
	doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(many.String())})
	if err != nil || !strings.Contains(doc.Text, "words 49") || strings.Contains(doc.Text, "words 50") ||
		len(doc.Warnings) != 1 || !strings.Contains(doc.Warnings[0], "10 attachments more") {
		t.Errorf("got %q, warnings %q, %v", doc.Text, doc.Warnings, err)
	}

	deep := "From: z\nSubject: s\n\nThe innermost words."
	for i := range 8 {
		b := fmt.Sprintf("b%d", i)
		deep = "From: a\nSubject: s\nContent-Type: multipart/mixed; boundary=" + b + "\n\n--" + b + "\nContent-Type: message/rfc822\n\n" + deep + "\n--" + b + "--\n"
	}
	doc, err = parse.Parse(t.Context(), parse.Input{Data: []byte(deep)})
	if err != nil || strings.Contains(doc.Text, "innermost") || len(doc.Warnings) != 1 || !strings.Contains(doc.Warnings[0], "5 levels") {
		t.Errorf("got %q, warnings %q, %v", doc.Text, doc.Warnings, err)
	}
}

// TestBombsEnd holds each reader of ours against input that grows.
func TestBombsEnd(t *testing.T) {
	t.Parallel()
	limits := parse.Limits{TextBytes: 1 << 20, ZipPart: 4 << 20, ZipTotal: 6 << 20}
	odf := func(kind, content string) []byte {
		return archiveOf(t, "mimetype", "application/vnd.oasis.opendocument."+kind, "content.xml", "<c><"+kind+">"+content+"</"+kind+"></c>")
	}
	long := strings.Repeat("w", 2<<10)
	for name, test := range map[string]struct {
		data []byte
		code messages.Code
		says string
	}{
		"repeated rows": {
			odf("spreadsheet", `<table name="s"><table-row number-rows-repeated="1000000"><table-cell><p>`+long+`</p></table-cell><table-cell><p>b</p></table-cell></table-row></table>`),
			messages.CodeParseLimit, "text",
		},
		"repeated spaces":  {odf("text", "<p>"+strings.Repeat(`<s c="100000"/>`, 60_000)+"x</p>"), messages.CodeParseLimit, "text"},
		"deep content":     {odf("text", strings.Repeat("<p>", 1100)), messages.CodeParseLimit, "levels"},
		"a part of a deck": {archiveOf(t, "ppt/presentation.xml", "<p>"+strings.Repeat(" ", 5<<20)+"</p>"), messages.CodeParseLimit, "ppt/presentation.xml"},
		"all parts of a workbook": {
			archiveOf(t, "xl/workbook.xml", "<w>"+strings.Repeat(" ", 3<<20)+"</w>", "xl/styles.xml", "<w>"+strings.Repeat(" ", 3<<20)+"</w>", "xl/sharedStrings.xml", "<w>"+strings.Repeat(" ", 3<<20)+"</w>"),
			messages.CodeParseLimit, "the archive",
		},
		"a shared string in many cells": {
			archiveOf(t, "xl/workbook.xml", `<w xmlns:r="r"><sheet name="s" r:id="1"/></w>`,
				"xl/_rels/workbook.xml.rels", `<r><Relationship Id="1" Type="x/worksheet" Target="s.xml"/></r>`, "xl/sharedStrings.xml", "<sst><si><t>"+long+"</t></si></sst>",
				"xl/s.xml", "<s>"+strings.Repeat(`<row><c t="s"><v>0</v></c><c t="s"><v>0</v></c></row>`, 1000)+"</s>"),
			messages.CodeParseLimit, "text",
		},
		"rtf of text": {[]byte(`{\rtf1 ` + strings.Repeat("w", 2<<20) + "}"), messages.CodeParseLimit, "text"},
		"multiparts":  {[]byte("From: a\nSubject: b\n" + nestedParts(40)), messages.CodeParseLimit, "levels"},
		"xml of text": {[]byte("<?xml version='1.0'?><a><b>" + strings.Repeat("w", 2<<20) + "</b></a>"), messages.CodeParseLimit, "text"},
		"nested XML":  {[]byte("<?xml version='1.0'?>" + strings.Repeat("<a>", 2000)), messages.CodeParseLimit, "levels"},
		"a page of a book": {
			archiveOf(t, "mimetype", "application/epub+zip", "META-INF/container.xml", `<c><rootfile full-path="o"/></c>`,
				"o", `<p><item id="a" href="a"/><itemref idref="a"/></p>`, "a", "<p>"+strings.Repeat("w ", 600<<10)+"</p>"),
			messages.CodeParseLimit, "text",
		},
	} {
		doc, err := parse.Parser{Limits: limits}.Parse(t.Context(), parse.Input{Data: test.data})
		got, ok := messages.AsError(err)
		if !ok || got.Code != test.code || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: got %.80q, error %v, want %s saying %q", name, doc.Text, err, test.code, test.says)
		}
	}
}

func nestedParts(depth int) string {
	if depth == 0 {
		return "\nwords"
	}
	b := fmt.Sprintf("b%02d", depth)
	return "Content-Type: multipart/mixed; boundary=" + b + "\n\n--" + b + "\n" + nestedParts(depth-1) + "\n--" + b + "--\n"
}

func TestBookEntriesAreWalkedOnce(t *testing.T) {
	t.Parallel()
	spine := strings.Repeat(`<itemref idref="a"/>`, 100_000)
	book := archiveOf(t, "mimetype", "application/epub+zip", "META-INF/container.xml", `<c><rootfile full-path="o"/></c>`,
		"o", `<p><item id="a" href="a"/>`+spine+`</p>`, "a", "<p>words</p>")
	doc, err := parse.Parse(t.Context(), parse.Input{Data: book})
	if err != nil || strings.Count(doc.Text, "words") != 1 {
		t.Errorf("got %d copies, %v", strings.Count(doc.Text, "words"), err)
	}
}
