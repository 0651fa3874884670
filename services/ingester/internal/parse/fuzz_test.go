package parse_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// fuzzFormat feeds a reader with anything: it must end in time with a sound document or a permanent
// error, the same one twice.
func fuzzFormat(f *testing.F, name string) {
	f.Helper()
	var media string
	for _, info := range parse.Formats() {
		if info.Name == name {
			media = info.MediaTypes[0]
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds for %s: %v", name, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if filepath.Ext(file) != ".golden" {
			f.Add(data)
		}
	}
	parser := reader(f)
	parser.Limits = parse.Limits{TextBytes: 1 << 20, ZipPart: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := parse.Input{Data: data, ContentType: media}
		start := time.Now()
		doc, err := parser.Parse(t.Context(), in)
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("%d bytes took %v", len(data), took)
		}
		if err != nil {
			if _, ok := messages.AsError(err); !ok {
				t.Fatalf("error without a code: %v", err)
			}
			return
		}
		checkDocument(t, doc)
		if again, err := parser.Parse(t.Context(), in); err != nil || !reflect.DeepEqual(again, doc) {
			t.Errorf("the second time: %v, %q, want %q", err, again.Text, doc.Text)
		}
	})
}

func FuzzText(f *testing.F)     { fuzzFormat(f, "txt") }
func FuzzMarkdown(f *testing.F) { fuzzFormat(f, "md") }
func FuzzHTML(f *testing.F)     { fuzzFormat(f, "html") }
func FuzzDOCX(f *testing.F)     { fuzzFormat(f, "docx") }
func FuzzCSV(f *testing.F)      { fuzzFormat(f, "csv") }
func FuzzJSON(f *testing.F)     { fuzzFormat(f, "json") }
func FuzzJSONL(f *testing.F)    { fuzzFormat(f, "jsonl") }
func FuzzPDF(f *testing.F)      { fuzzFormat(f, "pdf") }
func FuzzPPTX(f *testing.F)     { fuzzFormat(f, "pptx") }
func FuzzXLSX(f *testing.F)     { fuzzFormat(f, "xlsx") }
func FuzzODT(f *testing.F)      { fuzzFormat(f, "odt") }
func FuzzODS(f *testing.F)      { fuzzFormat(f, "ods") }
func FuzzODP(f *testing.F)      { fuzzFormat(f, "odp") }
func FuzzEPUB(f *testing.F)     { fuzzFormat(f, "epub") }
func FuzzRTF(f *testing.F)      { fuzzFormat(f, "rtf") }
func FuzzEML(f *testing.F)      { fuzzFormat(f, "eml") }
func FuzzMHTML(f *testing.F)    { fuzzFormat(f, "mhtml") }
func FuzzNotebook(f *testing.F) { fuzzFormat(f, "ipynb") }
func FuzzXML(f *testing.F)      { fuzzFormat(f, "xml") }
func FuzzYAML(f *testing.F)     { fuzzFormat(f, "yaml") }
func FuzzLog(f *testing.F)      { fuzzFormat(f, "log") }
func FuzzCode(f *testing.F)     { fuzzFormat(f, "code") }
