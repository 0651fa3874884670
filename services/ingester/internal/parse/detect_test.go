package parse_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/pdf/pdftest"
)

// archiveOf makes a zip of name, content pairs.
func archiveOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(pairs); i += 2 {
		f, err := w.Create(pairs[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const wordNS = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`

func wordFile(t testing.TB, body string, more ...string) []byte {
	t.Helper()
	return archiveOf(t, append([]string{"word/document.xml", "<w:document " + wordNS + "><w:body>" + body + "</w:body></w:document>"}, more...)...)
}

func TestContentDecidesTheFormat(t *testing.T) {
	t.Parallel()
	page := pdftest.Pages("BT /F1 12 Tf (words) Tj ET")
	word := wordFile(t, "<w:p><w:r><w:t>words</w:t></w:r></w:p>")
	parser := reader(t)
	for name, test := range map[string]struct {
		in      parse.Input
		format  string
		warning string
	}{
		"pdf without a type":        {parse.Input{Data: page}, "pdf", ""},
		"pdf called text":           {parse.Input{Data: page, ContentType: "text/plain"}, "pdf", "declared as txt, the content is pdf"},
		"pdf called an image":       {parse.Input{Data: page, ContentType: "image/png"}, "pdf", "declared as image, the content is pdf"},
		"docx called pdf":           {parse.Input{Data: word, ContentType: "application/pdf"}, "docx", "declared as pdf, the content is docx"},
		"text called pdf":           {parse.Input{Data: []byte("words"), ContentType: "application/pdf"}, "txt", "declared as pdf, the content is txt"},
		"declared html":             {parse.Input{Data: []byte("words"), ContentType: "text/html; charset=utf-8"}, "html", ""},
		"html called text":          {parse.Input{Data: []byte("<html>words"), ContentType: "text/plain"}, "html", "declared as txt, the content is html"},
		"html in markdown":          {parse.Input{Data: []byte("<html>words"), ContentType: "text/markdown"}, "md", ""},
		"mail called text":          {parse.Input{Data: []byte("From: a\nSubject: b\n\nwords"), ContentType: "text/plain"}, "eml", "declared as txt, the content is eml"},
		"settings like a mail":      {parse.Input{Data: []byte("from: a\nsubject: b\nbody: words\n"), Name: "a.yaml"}, "yaml", ""},
		"text like a mail":          {parse.Input{Data: []byte("from: a\nsubject: b\nbody: words\n")}, "txt", ""},
		"text about PDFs":           {parse.Input{Data: []byte("A file begins with %PDF-1.7 words"), Name: "a.md"}, "md", ""},
		"rtf called Word":           {parse.Input{Data: []byte(`{\rtf1 words}`), Name: "a.docx"}, "rtf", "declared as docx, the content is rtf"},
		"xml by content":            {parse.Input{Data: []byte(`<?xml version="1.0"?><a>words</a>`)}, "xml", ""},
		"xhtml":                     {parse.Input{Data: []byte("<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC \"x\">\n<html><p>words")}, "html", ""},
		"any type of XML":           {parse.Input{Data: []byte(`<a>words</a>`), ContentType: "application/soap+xml"}, "xml", ""},
		"any type of JSON":          {parse.Input{Data: []byte(`{"a": "words"}`), ContentType: "application/ld+json"}, "json", ""},
		"notebook by content":       {parse.Input{Data: []byte(`{"cells": [{"cell_type": "raw", "source": "words"}], "nbformat": 4}`)}, "ipynb", ""},
		"code by name, called text": {parse.Input{Data: []byte("words"), ContentType: "text/plain", Name: "a.go"}, "code", ""},
		"code by its first line":    {parse.Input{Data: []byte("#!/bin/sh\nwords")}, "code", ""},
		"a log":                     {parse.Input{Data: []byte("words"), Name: "a.log"}, "log", ""},
		"markdown by name":          {parse.Input{Data: []byte("words"), Name: `a\b.MD`}, "md", ""},
		"type before name":          {parse.Input{Data: []byte("words"), ContentType: "text/csv", Name: "a.md"}, "csv", ""},
		"generic type, name":        {parse.Input{Data: []byte("words"), ContentType: "application/octet-stream", Name: "a.md"}, "md", ""},
		"html by content":           {parse.Input{Data: []byte("\n<!DOCTYPE HTML><p>words")}, "html", ""},
		"json by content":           {parse.Input{Data: []byte(`{"a": "words"}`)}, "json", ""},
		"json lines by content":     {parse.Input{Data: []byte("{\"a\": 1}\n{\"a\": 2}\n")}, "jsonl", ""},
		"text by default":           {parse.Input{Data: []byte("words")}, "txt", ""},
		"any other text type":       {parse.Input{Data: []byte("words"), ContentType: "text/x-other"}, "txt", ""},
		"title without text":        {parse.Input{Title: "words"}, "txt", ""},
		"UTF-8 despite its charset": {parse.Input{Data: []byte("中文"), ContentType: "text/plain; charset=big5"}, "txt", "the content is UTF-8, not the declared charset"},
	} {
		doc, err := parser.Parse(t.Context(), test.in)
		if err != nil || doc.Format != test.format {
			t.Errorf("%s: got format %q, error %v, want %s", name, doc.Format, err, test.format)
			continue
		}
		if test.warning != "" && (len(doc.Warnings) == 0 || doc.Warnings[0] != test.warning) {
			t.Errorf("%s: warnings %q, want %q", name, doc.Warnings, test.warning)
		}
		checkDocument(t, doc)
	}
}

// compound begins as the old Office formats do and holds the name of a stream.
func compound(stream string) []byte {
	out := []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....")
	for _, c := range stream {
		out = append(out, byte(c), 0)
	}
	return out
}

func TestBadInputIsRefusedWithItsCode(t *testing.T) {
	t.Parallel()
	small := parse.Limits{FileBytes: 1 << 20, TextFile: 1000, MarkupFile: 1000, TextBytes: 4000, ZipEntries: 5, ZipPart: 1000, RecordBytes: 100}
	for name, test := range map[string]struct {
		in   parse.Input
		code messages.Code
		says string
	}{
		"nothing":               {parse.Input{}, messages.CodeEmptyDocument, ""},
		"white space":           {parse.Input{Data: []byte(" \n\t")}, messages.CodeEmptyDocument, ""},
		"marks only":            {parse.Input{Data: []byte("-- ++ --"), Title: "!"}, messages.CodeEmptyDocument, ""},
		"html without text":     {parse.Input{Data: []byte("<html><script>x</script>")}, messages.CodeEmptyDocument, ""},
		"no charset fits":       {parse.Input{Data: []byte("a\xff\xffb")}, messages.CodeInvalidEncoding, "byte 1"},
		"not what it declares":  {parse.Input{Data: []byte("a\xff\xffb"), ContentType: "text/plain; charset=gbk"}, messages.CodeInvalidEncoding, "gbk"},
		"unknown charset":       {parse.Input{Data: []byte("a\xff\xffb"), ContentType: "text/plain; charset=x-nix"}, messages.CodeInvalidEncoding, "x-nix"},
		"a NUL in a text":       {parse.Input{Data: []byte("some \x00 words")}, messages.CodeInvalidEncoding, "byte 5"},
		"binary":                {parse.Input{Data: bytes.Repeat([]byte("ab\x00\x01"), 100)}, messages.CodeUnsupportedMediaType, "binary"},
		"image":                 {parse.Input{Data: []byte("\x89PNG\r\n\x1a\n...."), ContentType: "text/plain"}, messages.CodeNoText, "OCR"},
		"unknown type":          {parse.Input{Data: []byte("words"), ContentType: "application/x-words"}, messages.CodeUnsupportedMediaType, "application/x-words"},
		"no media type at all":  {parse.Input{Data: []byte("words"), ContentType: ";;"}, messages.CodeUnsupportedMediaType, ""},
		"zip that is no docx":   {parse.Input{Data: archiveOf(t, "a.txt", "words"), Name: "a.docx"}, messages.CodeUnsupportedMediaType, "unpack it"},
		"tar":                   {parse.Input{Data: []byte(strings.Repeat("a", 257) + "ustar\x0000 words")}, messages.CodeUnsupportedMediaType, "tar archive; unpack it"},
		"gzip":                  {parse.Input{Data: []byte("\x1f\x8b\x08\x00words")}, messages.CodeUnsupportedMediaType, "gzip"},
		"binary workbook":       {parse.Input{Data: archiveOf(t, "xl/workbook.bin", "")}, messages.CodeUnsupportedMediaType, "save it as .xlsx"},
		"old Word":              {parse.Input{Data: compound("WordDocument")}, messages.CodeUnsupportedMediaType, "save it as .docx"},
		"old Excel":             {parse.Input{Data: compound("Workbook")}, messages.CodeUnsupportedMediaType, "save it as .xlsx"},
		"old PowerPoint":        {parse.Input{Data: compound("PowerPoint Document")}, messages.CodeUnsupportedMediaType, "save it as .pptx"},
		"Outlook message":       {parse.Input{Data: compound("__properties_version1.0")}, messages.CodeUnsupportedMediaType, "save it as .eml"},
		"protected docx":        {parse.Input{Data: compound("EncryptedPackage"), Name: "a.docx"}, messages.CodePasswordRequired, "without one"},
		"protected odt":         {parse.Input{Data: archiveOf(t, "mimetype", "application/vnd.oasis.opendocument.text", "META-INF/manifest.xml", "<m><encryption-data/></m>", "content.xml", "x")}, messages.CodePasswordRequired, ""},
		"slides cut short":      {parse.Input{Data: archiveOf(t, "ppt/presentation.xml", "<p><sldId/>")}, messages.CodeDamagedDocument, "too early"},
		"xml that ends early":   {parse.Input{Data: []byte("<?xml version='1.0'?><a><b>words</b>")}, messages.CodeDamagedDocument, "element a"},
		"rtf too deep":          {parse.Input{Data: []byte(`{\rtf1 ` + strings.Repeat("{", 1001))}, messages.CodeParseLimit, "1000 levels"},
		"notebook cut short":    {parse.Input{Data: []byte(`{"nbformat": 4, "cells": [`), Name: "a.ipynb"}, messages.CodeDamagedDocument, ""},
		"old Office file":       {parse.Input{Data: []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1...")}, messages.CodeUnsupportedMediaType, "password"},
		"docx cut short":        {parse.Input{Data: wordFile(t, "<w:p/>")[:150]}, messages.CodeDamagedDocument, ""},
		"docx of broken XML":    {parse.Input{Data: wordFile(t, "<w:p>&nope;")}, messages.CodeDamagedDocument, "line 1"},
		"declared pdf, garbage": {parse.Input{Data: []byte("\xff\xff\xff"), ContentType: "application/pdf"}, messages.CodeDamagedDocument, "signature"},
		"json broken":           {parse.Input{Data: []byte(`{"a": `), ContentType: "application/json"}, messages.CodeDamagedDocument, ""},
		"json and more":         {parse.Input{Data: []byte(`{"a": 1} x`), ContentType: "application/json"}, messages.CodeDamagedDocument, "byte"},
		"jsonl without JSON":    {parse.Input{Data: []byte("a\nb\n"), Name: "a.jsonl"}, messages.CodeDamagedDocument, ""},
		"json too deep":         {parse.Input{Data: []byte(strings.Repeat("[", 65) + "1" + strings.Repeat("]", 65))}, messages.CodeParseLimit, "64 levels"},
		"xml too deep":          {parse.Input{Data: wordFile(t, strings.Repeat("<w:i>", 1001)+strings.Repeat("</w:i>", 1001))}, messages.CodeParseLimit, ""},
		"file too large":        {parse.Input{Data: make([]byte, 1<<20+1)}, messages.CodeParseLimit, "1048576 bytes"},
		"text file too large":   {parse.Input{Data: bytes.Repeat([]byte("a"), 1001)}, messages.CodeParseLimit, "txt"},
		"markup too large":      {parse.Input{Data: bytes.Repeat([]byte("a"), 1001), Name: "a.html"}, messages.CodeParseLimit, "html"},
		"json names too long": {
			parse.Input{Data: []byte(`{"` + strings.Repeat("n", 500) + `": {` + strings.Repeat(`"a": 1, `, 60) + `"b": 2}}`)}, messages.CodeParseLimit, "text",
		},
		"too many entries": {
			parse.Input{Data: wordFile(t, "", "1", "", "2", "", "3", "", "4", "", "5", "")}, messages.CodeParseLimit, "entries",
		},
		"part too large": {
			parse.Input{Data: wordFile(t, "<w:p><w:t>"+strings.Repeat("a", 2000)+"</w:t></w:p>")}, messages.CodeParseLimit, "word/document.xml",
		},
		"spans too large": {
			parse.Input{Data: []byte("<html><table><tr><td colspan=90 rowspan=90>" + strings.Repeat("w", 150) + strings.Repeat("<tr><td>x", 60))}, messages.CodeParseLimit, "table",
		},
	} {
		limits := small
		if strings.HasSuffix(name, "too deep") {
			limits = parse.Limits{}
		}
		doc, err := parse.Parser{Limits: limits}.Parse(t.Context(), test.in)
		got, ok := messages.AsError(err)
		if !ok || got.Code != test.code || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: got %q, error %v, want %s saying %q", name, doc.Text, err, test.code, test.says)
		}
	}
}

func TestFrontMatterGivesTheTitle(t *testing.T) {
	t.Parallel()
	for source, text := range map[string]string{
		"---\ntitle: 'The pump'\n---\nwords\n":             "words\n",
		"+++\ntitle = \"The pump\"\n+++\nwords\n":          "words\n",
		"---\ntitle: The pump\ntags: a\n---\n\n# H\nwords": "---\ntitle: The pump\ntags: a\n---\n\n# H\nwords\n",
	} {
		doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(source), Name: "a.md"})
		if err != nil || doc.Title != "The pump" || doc.Text != text {
			t.Errorf("%q: title %q, text %q, %v", source, doc.Title, doc.Text, err)
		}
	}
}

func TestZipBombIsStoppedByItsRatio(t *testing.T) {
	t.Parallel()
	bomb := wordFile(t, "<w:p><w:t>"+strings.Repeat("a", 11<<20)+"</w:t></w:p>")
	_, err := reader(t).Parse(t.Context(), parse.Input{Data: bomb})
	if got, ok := messages.AsError(err); !ok || got.Code != messages.CodeParseLimit || !strings.Contains(got.Message, "ratio") {
		t.Errorf("got %v", err)
	}
}

func TestEndedContextIsNotTheDocumentsFault(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := parse.Parse(ctx, parse.Input{Data: []byte("words")})
	if _, permanent := messages.AsError(err); permanent || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDeepHTMLIsReadFromItsTokens(t *testing.T) {
	t.Parallel()
	page := "<html><title>Deep</title><h2>Head</h2>" + strings.Repeat("<div>", 600) + "words<script>no</script><pre>a\n  b</pre>" + strings.Repeat("</div>", 600) + "end"
	doc, err := reader(t).Parse(t.Context(), parse.Input{Data: []byte(page)})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	if want := "Head\n\nwords\n\na\n  b\n\nend\n"; doc.Text != want || doc.Title != "Deep" || len(doc.Warnings) != 1 {
		t.Errorf("got %q, title %q, warnings %q, want %q", doc.Text, doc.Title, doc.Warnings, want)
	}
}

func TestWordStructure(t *testing.T) {
	t.Parallel()
	styles := `<w:styles ` + wordNS + `>
		<w:style w:styleId="T"><w:name w:val="Title"/></w:style>
		<w:style w:styleId="H"><w:name w:val="heading 1"/></w:style>
		<w:style w:styleId="Own"><w:name w:val="Mine"/><w:basedOn w:val="H"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
		<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
		<w:style w:styleId="Code"><w:name w:val="Source Code"/></w:style></w:styles>`
	p := func(style, text string) string {
		return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	item := func(level, text string) string {
		return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="3"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	cell := func(props, text string) string {
		return `<w:tc><w:tcPr>` + props + `</w:tcPr><w:p><w:r><w:t>` + text + `</w:t></w:r></w:p></w:tc>`
	}
	body := p("T", "Guide") + p("H", "One") + p("Own", "Two") + p("Loop", "Loops.") +
		item("0", "first") + item("1", "inner") + p("Code", "x := 1") + p("Code", "y := 2") +
		`<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:del><w:delText>gone</w:delText></w:del></w:r></w:p>` +
		`<w:tbl><w:tr>` + cell("", "k") + cell("", "v") + `</w:tr><w:tr>` + cell(`<w:vMerge w:val="restart"/>`, "same") + cell("", "1") +
		`</w:tr><w:tr>` + cell(`<w:vMerge/>`, "") + cell("", "2") + `</w:tr><w:tr>` + cell(`<w:gridSpan w:val="2"/>`, "wide") + `</w:tr></w:tbl>` +
		`<w:p><w:r><AlternateContent><Choice><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></Choice>` +
		`<Fallback><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></Fallback></AlternateContent><w:t>around</w:t><w:footnoteReference w:id="2"/></w:r></w:p>`
	notes := `<w:footnotes ` + wordNS + `><w:footnote w:type="separator"><w:p><w:r><w:t>no</w:t></w:r></w:p></w:footnote>` +
		`<w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>`
	doc, err := reader(t).Parse(t.Context(), parse.Input{Data: wordFile(t, body, "word/styles.xml", styles, "word/footnotes.xml", notes)})
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	var got []string
	for _, b := range doc.Blocks {
		got = append(got, string(b.Kind)+" "+strings.Join(b.HeadingPath, "/")+" "+strings.ReplaceAll(strings.TrimSpace(doc.Text[b.Start:b.End]), "\n", "; "))
	}
	want := []string{
		"heading Guide Guide", "heading Guide/One One", "heading Guide/One/Two Two", "paragraph Guide/One/Two Loops.",
		"list Guide/One/Two - first;   - inner", "code Guide/One/Two x := 1; y := 2", "paragraph Guide/One/Two a\tb",
		"table Guide/One/Two k | v; same | 1; same | 2; wide | wide", "paragraph Guide/One/Two in a box",
		"paragraph Guide/One/Two around", "paragraph Guide/One/Two A note.",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || doc.Title != "Guide" {
		t.Errorf("title %q, got\n%s\nwant\n%s", doc.Title, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
