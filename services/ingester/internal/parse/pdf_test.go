package parse_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/pdf/pdftest"
)

// reader is a parser whose PDF engine has a cache, where the services have theirs: making its code takes
// seconds. It is for one goroutine.
func reader(t testing.TB) parse.Parser {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	engine := &parse.PDFEngine{CacheDir: filepath.Join(dir, "weir", "parse")}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return parse.Parser{PDF: engine}
}

func TestPDFGivesPagesHeadingsAndWords(t *testing.T) {
	t.Parallel()
	data := pdftest.Pages(
		"BT /F1 20 Tf 72 700 Td (Care of the pump) Tj /F1 10 Tf 0 -40 Td [(W)80(ater)-300(flows)] TJ 0 -12 Td (through the fil-) Tj "+
			"0 -12 Td (ter and on.) Tj 0 -60 Td (Next para) Tj ET",
		"q Q",
		"BT /F1 10 Tf 14 TL 72 700 Td (First) Tj (second) ' 0 0 (third) \" ET BI /W 1 ID x EI",
	)
	doc, err := reader(t).Parse(t.Context(), parse.Input{Data: data, Name: "x.pdf"})
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
	locked := bytes.Replace(pdftest.Pages("q Q"), []byte("/Root 1 0 R"),
		[]byte("/Root 1 0 R /ID [<00><00>] /Encrypt << /Filter /Standard /V 5 /R 6 /Length 256 /O <00> /U <00> /P -4 >>"), 1)
	for name, test := range map[string]struct {
		data []byte
		code messages.Code
	}{
		"no text":   {pdftest.Pages("q Q", "0 0 10 10 re f"), messages.CodeNoText},
		"encrypted": {locked, messages.CodePasswordRequired},
		"truncated": {pdftest.Pages("q Q")[:200], messages.CodeDamagedDocument},
		"pages":     {pdftest.Pages(strings.Split(strings.Repeat("q Q,", 60), ",")...), messages.CodeParseLimit},
	} {
		parser := reader(t)
		parser.Limits.Pages = 50
		_, err := parser.Parse(t.Context(), parse.Input{Data: test.data})
		if document, ok := messages.AsError(err); !ok || document.Code != test.code {
			t.Errorf("%s: got %v, want %s", name, err, test.code)
		}
	}
}

func TestJunkAroundAPDFIsCutOff(t *testing.T) {
	t.Parallel()
	good := pdftest.Pages("BT /F1 12 Tf 72 700 Td (Still here) Tj ET")
	for name, data := range map[string][]byte{
		"before":      append([]byte("junk\n"), good...),
		"behind":      append(bytes.Clone(good), bytes.Repeat([]byte{0}, 2000)...),
		"version 2":   bytes.Replace(good, []byte("%PDF-1.4"), []byte("%PDF-2.0"), 1),
		"no end mark": bytes.Replace(good, []byte("%%EOF\n"), nil, 1),
	} {
		doc, err := reader(t).Parse(t.Context(), parse.Input{Data: data})
		if err != nil || !strings.Contains(doc.Text, "Still here") {
			t.Errorf("%s: got %q, error %v", name, doc.Text, err)
		}
	}
}
