package parse_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// pdfFile writes objects 1..n with a right cross-reference table; object 1 is the catalogue.
func pdfFile(objects ...string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return out.Bytes()
}

func pdfStream(dict, content string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(content), content)
}

// pdfPages makes a file with one page for each content stream, all in Helvetica.
func pdfPages(contents ...string) []byte {
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}
	var kids strings.Builder
	for _, c := range contents {
		n := len(objects) + 1
		fmt.Fprintf(&kids, "%d 0 R ", n)
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", n+1), pdfStream("", c))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), len(contents))
	return pdfFile(objects...)
}

// selfObjectStream is a file whose cross-reference stream puts object 4, an object stream, into itself.
func selfObjectStream() []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.5\n")
	at := out.Len()
	out.WriteString("3 0 obj\n" + pdfStream("/Type /ObjStm /N 1 /First 4", "4 0 << >>") + "\nendobj\n")
	start := out.Len()
	rows := [][5]byte{{0}, {2, 0, 4, 0}, {2, 0, 4, 0}, {1, byte(at >> 8), byte(at)}, {2, 0, 4, 0}}
	var table bytes.Buffer
	for _, r := range rows {
		table.Write(r[:4])
	}
	out.WriteString("5 0 obj\n" + pdfStream("/Type /XRef /Size 5 /W [1 2 1] /Root 1 0 R", table.String()) + "\nendobj\n")
	fmt.Fprintf(&out, "startxref\n%d\n%%%%EOF\n", start)
	return out.Bytes()
}

// hugeSubsection is a file whose cross-reference table says it begins at object four thousand million.
func hugeSubsection() []byte {
	return bytes.Replace(pdfPages("BT /F1 12 Tf (x) Tj ET"), []byte("xref\n0 "), []byte("xref\n4000000000 "), 1)
}

func kidsCycle() []byte {
	return pdfFile("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R] /Count 1 >>")
}

func flateBomb() []byte {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	chunk := bytes.Repeat([]byte("(A) Tj "), 1<<16)
	w.Write([]byte("BT /F1 12 Tf "))
	for range 200 {
		w.Write(chunk)
	}
	w.Close()
	return pdfFile("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		pdfStream("/Filter /FlateDecode", packed.String()))
}

// TestTheWallClockHoldsWhilePagesCome: every page comes in time, the file does not.
func TestTheWallClockHoldsWhilePagesCome(t *testing.T) {
	t.Parallel()
	page := "BT /F1 12 Tf " + strings.Repeat("(A) Tj ", 2000) + " ET"
	data := pdfPages(slices.Repeat([]string{page}, 4000)...)
	parser := parse.Parser{Limits: parse.Limits{PDFWall: 500 * time.Millisecond, TextBytes: 100 << 20}}
	_, err := parser.Parse(t.Context(), parse.Input{Data: data})
	if got, ok := messages.AsError(err); !ok || got.Code != messages.CodeParseLimit || !strings.Contains(got.Message, "500ms") {
		t.Errorf("got %v, want the wall clock to end it", err)
	}
}

// TestHostilePDFsEndInATypedErrorAndHarmNothing: each of these ends a process, or never ends, when it
// is read in process.
func TestHostilePDFsEndInATypedErrorAndHarmNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data  []byte
		code  messages.Code
		never bool // ends by itself
	}{
		"object stream inside itself":  {selfObjectStream(), messages.CodeParseLimit, false},
		"subsection start 4e9":         {hugeSubsection(), messages.CodeParseLimit, false},
		"kids cycle":                   {kidsCycle(), messages.CodeDamagedDocument, false},
		"content ends in a hex string": {pdfPages("BT /F1 12 Tf <AB"), messages.CodeParseLimit, true},
		"thirteen million operators":   {flateBomb(), messages.CodeParseLimit, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parser := parse.Parser{Limits: parse.Limits{PDFMemory: 512 << 20}}
			if test.never {
				parser.Limits.PDFStall = time.Second
			}
			start := time.Now()
			doc, err := parser.Parse(t.Context(), parse.Input{Data: test.data, ContentType: "application/pdf"})
			document, ok := messages.AsError(err)
			if !ok || document.Code != test.code {
				t.Errorf("got %q, error %v, want %s", doc.Text, err, test.code)
			}
			if took := time.Since(start); took > 20*time.Second { // far over the wall: it was not killed
				t.Errorf("took %v", took)
			}
			t.Logf("%v", err)
		})
	}
	t.Run("and a good file is read meanwhile", func(t *testing.T) {
		t.Parallel()
		doc, err := parse.Parse(t.Context(), parse.Input{Data: pdfPages("BT /F1 12 Tf 72 700 Td (Code E-4217) Tj ET")})
		if err != nil || strings.TrimSpace(doc.Text) != "Code E-4217" {
			t.Errorf("got %q, error %v", doc.Text, err)
		}
	})
}

func TestPDFGivesPagesHeadingsAndWords(t *testing.T) {
	t.Parallel()
	data := pdfPages(
		"BT /F1 20 Tf 72 700 Td (Care of the pump) Tj /F1 10 Tf 0 -40 Td [(W)80(ater)-300(flows)] TJ 0 -12 Td (through the fil-) Tj "+
			"0 -12 Td (ter and on.) Tj 0 -60 Td (Next para) Tj ET",
		"q Q",
		"BT /F1 10 Tf 14 TL 72 700 Td (First) Tj (second) ' 0 0 (third) \" ET BI /W 1 ID x EI",
	)
	doc, err := parse.Parse(t.Context(), parse.Input{Data: data, Name: "x.pdf"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range doc.Blocks {
		got = append(got, fmt.Sprintf("%d %s %s %q", b.Page, b.Kind, strings.Join(b.HeadingPath, "/"), strings.TrimSpace(doc.Text[b.Start:b.End])))
	}
	want := []string{
		`1 heading Care of the pump "Care of the pump"`,
		`1 paragraph Care of the pump "Water flows through the filter and on."`,
		`1 paragraph Care of the pump "Next para"`,
		`3 paragraph Care of the pump "First second third"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if doc.Pages != 3 || len(doc.Warnings) == 0 || doc.Warnings[0] != "PDF page has no text: 2" {
		t.Errorf("%d pages, warnings %q", doc.Pages, doc.Warnings)
	}
}

func TestPDFWithoutTextOrWithAPasswordIsRefused(t *testing.T) {
	t.Parallel()
	locked := bytes.Replace(pdfPages("q Q"), []byte("/Root 1 0 R"),
		[]byte("/Root 1 0 R /ID [<00><00>] /Encrypt << /Filter /Standard /V 5 /R 6 /Length 256 /O <00> /U <00> /P -4 >>"), 1)
	for name, test := range map[string]struct {
		data []byte
		code messages.Code
	}{
		"no text":   {pdfPages("q Q", "0 0 10 10 re f"), messages.CodeNoText},
		"encrypted": {locked, messages.CodePasswordRequired},
		"truncated": {pdfPages("q Q")[:200], messages.CodeDamagedDocument},
		"pages":     {pdfPages(strings.Split(strings.Repeat("q Q,", 60), ",")...), messages.CodeParseLimit},
	} {
		parser := parse.Parser{Limits: parse.Limits{PDFPages: 50}}
		_, err := parser.Parse(t.Context(), parse.Input{Data: test.data})
		if document, ok := messages.AsError(err); !ok || document.Code != test.code {
			t.Errorf("%s: got %v, want %s", name, err, test.code)
		}
	}
}

func TestJunkAroundAPDFIsCutOff(t *testing.T) {
	t.Parallel()
	good := pdfPages("BT /F1 12 Tf 72 700 Td (Still here) Tj ET")
	for name, data := range map[string][]byte{
		"before":      append([]byte("junk\n"), good...),
		"behind":      append(bytes.Clone(good), bytes.Repeat([]byte{0}, 2000)...),
		"version 2":   bytes.Replace(good, []byte("%PDF-1.4"), []byte("%PDF-2.0"), 1),
		"no end mark": bytes.Replace(good, []byte("%%EOF\n"), nil, 1),
	} {
		doc, err := parse.Parse(t.Context(), parse.Input{Data: data})
		if err != nil || !strings.Contains(doc.Text, "Still here") {
			t.Errorf("%s: got %q, error %v", name, doc.Text, err)
		}
	}
}

func TestAWorkerThatCannotStartIsNotTheDocumentsFault(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, run := range map[string]func() error{
		"no program": func() error {
			_, err := parse.Parser{Worker: "/nonexistent"}.Parse(t.Context(), parse.Input{Data: pdfPages("q Q")})
			return err
		},
		"context ended": func() error {
			_, err := parse.Parse(ended, parse.Input{Data: pdfPages("q Q")})
			return err
		},
	} {
		err := run()
		if _, permanent := messages.AsError(err); err == nil || permanent {
			t.Errorf("%s: got %v, want an error worth a retry", name, err)
		}
		if name == "context ended" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestTheWorkerSeesNoEnvironment runs a worker that prints its environment instead of frames.
func TestTheWorkerSeesNoEnvironment(t *testing.T) {
	t.Setenv("WEIR_TEST_SECRET", "secret")
	script := t.TempDir() + "/worker"
	out := t.TempDir() + "/env"
	if err := os.WriteFile(script, []byte("#!/bin/sh\n/usr/bin/env >"+out+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := parse.Parser{Worker: script}.Parse(t.Context(), parse.Input{Data: pdfPages("q Q")})
	if document, ok := messages.AsError(err); !ok || document.Code != messages.CodeDamagedDocument {
		t.Errorf("a worker without a word: got %v", err)
	}
	env, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(env), "secret") || strings.Contains(string(env), "HOME=") {
		t.Errorf("environment %q, error %v", env, err)
	}
}
