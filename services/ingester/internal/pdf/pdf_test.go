package pdf_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/pdf"
	"github.com/weir-project/weir/services/ingester/internal/pdf/pdftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func engine(t testing.TB) *pdf.Runtime {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	r, err := pdf.NewRuntime(t.Context(), filepath.Join(dir, "weir", "parse"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func open(t testing.TB, r *pdf.Runtime, data []byte, password string) *pdf.File {
	t.Helper()
	f, err := r.Open(bytes.NewReader(data), int64(len(data)), password)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func pages(t testing.TB, f *pdf.File) []pdf.Page {
	t.Helper()
	var out []pdf.Page
	for n := 1; n <= f.Count(); n++ {
		p, err := f.Page(n, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestAPasswordOpensAndUnlocks(t *testing.T) {
	t.Parallel()
	r := engine(t)
	data := pdftest.Locked("BT /F1 12 Tf 72 700 Td (Behind the lock) Tj ET", "sesame")
	for _, password := range []string{"", "wrong"} {
		_, err := r.Open(bytes.NewReader(data), int64(len(data)), password)
		if e, ok := messages.AsError(err); !ok || e.Code != messages.CodePasswordRequired || strings.Contains(e.Message, "wrong") {
			t.Errorf("password %q: got %v", password, err)
		}
	}
	var unlocked [2]bytes.Buffer
	for i := range unlocked {
		if err := open(t, engine(t), data, "sesame").Unlocked(&unlocked[i]); err != nil { // a process each, as in use
			t.Fatal(err)
		}
	}
	if !bytes.Equal(unlocked[0].Bytes(), unlocked[1].Bytes()) {
		t.Error("unlocked twice, it is not the same: a submit again would make a new version")
	}
	p := pages(t, open(t, r, unlocked[0].Bytes(), ""))
	if len(p) != 1 || len(p[0].Lines) != 1 || p[0].Lines[0].Text != "Behind the lock" {
		t.Errorf("got %+v", p)
	}
}

func TestFieldsOfAForm(t *testing.T) {
	t.Parallel()
	f := open(t, engine(t), pdftest.Form(map[string]string{"city": "Uppsala", "street": " ", "name": "Ada"}), "")
	got, err := f.Fields(1)
	slices.SortFunc(got, func(a, b pdf.Field) int { return strings.Compare(a.Name, b.Name) })
	if want := []pdf.Field{{Name: "city", Value: "Uppsala"}, {Name: "name", Value: "Ada"}}; err != nil || !f.HasForm() || !slices.Equal(got, want) {
		t.Errorf("got %+v, error %v, want %+v", got, err, want)
	}
	if open(t, engine(t), pdftest.Pages("q Q"), "").HasForm() {
		t.Error("a file without a form has one")
	}
}

func TestTheOutlineNamesHeadings(t *testing.T) {
	t.Parallel()
	page := func(title string) string {
		return "BT /F1 12 Tf 72 700 Td (" + title + ") Tj 0 -40 Td (Text below it, of the same size.) Tj ET"
	}
	f := open(t, engine(t), pdftest.Outlined([]string{page("Opening"), page("Closing")}, []string{"Opening", "Closing"}), "")
	want := []pdf.Entry{{Title: "Opening", Level: 1, Page: 1}, {Title: "Closing", Level: 1, Page: 2}}
	if got := f.Outline(); !slices.Equal(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	blocks, _ := pdf.Layout(pages(t, f))
	levels := pdf.Levels(blocks, f.Outline())
	if !slices.Equal(levels, []int{1, 0, 1, 0}) {
		t.Errorf("levels %v of %+v", levels, blocks)
	}
}

func TestBoldLinesAboveTextAreHeadings(t *testing.T) {
	t.Parallel()
	line := func(text string, bold bool) pdf.Block {
		return pdf.Block{Page: 1, Lines: []pdf.Line{{Text: text, Size: 10, Bold: bold}}}
	}
	body := line("Running text of a paragraph that goes on for a while and a while and longer.", false)
	blocks := []pdf.Block{
		line("A heading", true), body, line("Note:", true), body, line("Name  Value", true), body,
		line("Total", true), line("12", false), line("2.1 Scope", true), line("Bold again, above bold", true), line("And more", true), body,
	}
	want := []int{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0}
	if got := pdf.Levels(blocks, nil); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRunningLinesAreKeptOnce(t *testing.T) {
	t.Parallel()
	var contents []string
	for i := range 6 {
		contents = append(contents, fmt.Sprintf(
			"BT /F1 10 Tf 72 760 Td (Annual report) Tj 0 -60 Td (First line of %d) Tj 0 -12 Td (second line) Tj 0 -12 Td (third line) Tj 0 -12 Td (fourth) Tj 0 -600 Td (Page %d of 6) Tj ET", i, i+1))
	}
	blocks, dropped := pdf.Layout(pages(t, open(t, engine(t), pdftest.Pages(contents...), "")))
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(b.Text() + "\n")
	}
	for phrase, times := range map[string]int{"Annual report": 1, "Page ": 1, "Page 1 of 6": 1, "First line of": 6, "fourth": 6} {
		if n := strings.Count(text.String(), phrase); n != times {
			t.Errorf("%q is there %d times, want %d", phrase, n, times)
		}
	}
	if dropped != 10 {
		t.Errorf("%d dropped, want 10", dropped)
	}
	if _, dropped := pdf.Layout(pages(t, open(t, engine(t), pdftest.Pages(slices.Repeat([]string{"BT /F1 10 Tf 72 700 Td (Ticket 7) Tj ET"}, 9)...), ""))); dropped != 0 {
		t.Errorf("lines that are all a page has: %d dropped", dropped)
	}
}

func TestATrapIsToldAndEndsTheFile(t *testing.T) {
	t.Parallel()
	r := engine(t)
	f := open(t, r, pdftest.FlateBomb(), "")
	_, err := f.Page(1, 100<<20)
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeParseLimit || !errors.Is(err, pdf.ErrBroken) {
		t.Errorf("got %v", err)
	}
}

func TestAPageIsDrawn(t *testing.T) {
	t.Parallel()
	f := open(t, engine(t), pdftest.Pages("0 0 10 10 re f"), "")
	image, err := f.Image(1, 100)
	if err != nil || !bytes.HasPrefix(image, []byte("\x89PNG")) {
		t.Errorf("got %d bytes, error %v", len(image), err)
	}
}

// TestTheGateSeesWrongText: files that the light engine reads wrong are not believed, plain ones are.
func TestTheGateSeesWrongText(t *testing.T) {
	t.Parallel()
	plain := "BT /F1 12 Tf 72 700 Td (Plain words that anybody can read in a line) Tj ET"
	two := bytes.Replace(pdftest.Pages(plain, plain), []byte("/F1 3 0 R >> >> /Contents 5"), []byte("/F1 9 0 R >> >> /Contents 5"), 1)
	for name, test := range map[string]struct {
		data []byte
		ok   bool
	}{
		"plain":            {pdftest.Pages(plain), true},
		"no text":          {pdftest.Pages("q Q"), false},
		"no spaces":        {pdftest.Pages("BT /F1 12 Tf 72 700 Td (Plainwordswithoutanyspacebetweenthemasofkerning) Tj ET"), false},
		"font of the name": {two, false},
		"broken":           {[]byte("%PDF-1.4\nnothing"), false},
		"too many pages":   {pdftest.Pages(slices.Repeat([]string{plain}, 11)...), false},
	} {
		if got, _, ok := pdf.Light(test.data, 10); ok != test.ok {
			t.Errorf("%s: believed: %v, want %v: %+v", name, ok, test.ok, got)
		}
	}
}

// FuzzLayout joins lines anywhere: no letter is lost and none is made up.
func FuzzLayout(f *testing.F) {
	f.Add("a line|another|- item", int16(700), int16(12))
	f.Add("知识|库", int16(-3), int16(0))
	f.Fuzz(func(t *testing.T, text string, step, size int16) {
		var all []pdf.Page
		want := ""
		for n, line := range strings.Split(text, "|") {
			page := pdf.Page{Number: n/3 + 1}
			l := pdf.Line{Text: line, Y: float64(step) * float64(n), Size: float64(size), End: float64(len(line)), Hyphen: n%5 == 4}
			if len(all) > 0 && all[len(all)-1].Number == page.Number {
				all[len(all)-1].Lines = append(all[len(all)-1].Lines, l)
			} else {
				page.Lines = []pdf.Line{l}
				all = append(all, page)
			}
			want += line
		}
		blocks, dropped := pdf.Layout(all)
		got := ""
		for i, level := range pdf.Levels(blocks, nil) {
			if level < 0 || level > 3 {
				t.Errorf("level %d", level)
			}
			got += blocks[i].Text()
		}
		if letters := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "-", "")), "") }; dropped == 0 && letters(got) != letters(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
