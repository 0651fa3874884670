package corpus_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/corpus"
)

const (
	examples = "../../../../examples/"
	testdata = "../../../../services/ingester/internal/parse/testdata/"
)

// sample is a folder of files of ours with what they must hold.
func sample(t *testing.T) (dir string, expected []corpus.Expectation) {
	t.Helper()
	dir = t.TempDir()
	add := func(e corpus.Expectation, data []byte) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, e.File)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.File), data, 0o600); err != nil {
			t.Fatal(err)
		}
		expected = append(expected, e)
	}
	for source, e := range map[string]corpus.Expectation{
		examples + "espresso-machine-handbook.pdf": {
			File: "pdf/handbook.pdf", Pages: 3, Must: []string{"Espresso Machine Handbook"}, MustNot: []string{"no such words"},
		},
		examples + "search-service-runbook.md": {File: "md/runbook.md"},
		examples + "garden-drip-line.docx":     {File: "docx/garden.docx"},
		testdata + "md/structure.md":           {File: "md/structure.md"},
		testdata + "csv/stock.csv": {
			File: "csv/stock.csv", Must: []string{"BRK-2093-X"}, Where: []corpus.Fact{{Phrase: "BRK-2093-X", Block: "table"}},
		},
		testdata + "csv/open-quote.csv": {File: "csv/open-quote.csv", Kind: corpus.KindDamaged},
	} {
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "" {
			e.Kind = corpus.KindOK
		}
		add(e, data)
	}
	add(corpus.Expectation{File: "hostile/spaces.txt", Kind: corpus.KindDamaged}, []byte(" \n "))
	add(corpus.Expectation{File: "hostile/broken.pdf", Kind: corpus.KindDamaged}, []byte("%PDF-1.7\nnothing"))
	return dir, expected
}

// TestASampleIsReadWholeAndDamageIsHarmless runs the whole path on files of ours.
func TestASampleIsReadWholeAndDamageIsHarmless(t *testing.T) {
	dir, expected := sample(t)
	l := newLab(t, workers())
	report := l.all(dir, expected, 0)
	for _, o := range report.Outcomes {
		if !o.Passed() || o.Verdict.Places.Right != o.Verdict.Places.All {
			o.Line(t.Output())
			t.Errorf("%s: %v %v", o.Expect.File, o.Faults, o.Verdict.Misses)
		}
	}
	if !report.Summary(t.Output()) {
		t.Error("a bar is not met")
	}
	if !l.harm(dir, expected, 24) {
		t.Error("damage did harm")
	}
}

// TestWhatIsWrongIsSeen gives the judge wrong outcomes.
func TestWhatIsWrongIsSeen(t *testing.T) {
	l := newLab(t, workers())
	dir, expected := sample(t)
	for i := range expected {
		expected[i].Must = append(expected[i].Must, "a phrase that stands nowhere")
		if expected[i].Kind == corpus.KindDamaged {
			expected[i].Kind = corpus.KindScanned
		}
		expected[i].Where = []corpus.Fact{{Phrase: "BRK-2093-X", Page: 7}}
	}
	report := l.all(dir, expected, 0)
	for _, o := range report.Outcomes {
		if o.Passed() || o.Verdict.Places.Right != 0 {
			t.Errorf("%s passed: %+v", o.Expect.File, o.Verdict)
		}
	}
	if report.Summary(t.Output()) || report.Last() != "0 passed, 8 failed" {
		t.Errorf("last line %q", report.Last())
	}
}

func TestExpectationsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line, err := json.Marshal(corpus.Expectation{File: "pdf/a.pdf", Kind: corpus.KindOK, Order: [][2]string{{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "expect.jsonl"), append(line, "\n{"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := corpus.Load(dir); err == nil {
		t.Error("a broken line was read")
	}
	if err := os.WriteFile(filepath.Join(dir, "expect.jsonl"), line, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := corpus.Load(dir)
	if err != nil || len(got) != 1 || got[0].Format() != "pdf" || got[0].Order[0][1] != "b" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTextsAreComparedByWhatTheySay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" a\u00ad b\n\nc ": "a b c", "知 识\n库": "知识库", "ﬁne Ａ": "fine A", "a 知 b": "a 知 b", "": "",
	} {
		if got := corpus.Plain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
