package chunk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

func number(n int) *int { return &n }

// markdown parses source, so that blocks are real ones.
func markdown(t *testing.T, source string) parse.Document {
	t.Helper()
	doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(source), ContentType: "text/markdown"})
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return doc
}

func split(t *testing.T, doc parse.Document, c Config) []Chunk {
	t.Helper()
	chunks, warnings, err := Split(doc, c)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Split: %v, warnings %q", err, warnings)
	}
	full := c.withDefaults()
	checkInvariants(t, doc, full.Counter, full.Size, *full.Overlap, chunks)
	return chunks
}

func TestBadSettingsAreRefusedByField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		config Config
		field  string
	}{
		{"unknown strategy", Config{Strategy: "magic"}, "strategy"},
		{"size too small", Config{Size: 31}, "size"},
		{"size negative", Config{Size: -1}, "size"},
		{"size too large", Config{Size: 8193}, "size"},
		{"size over the model", Config{Size: 513, MaxTokens: 512}, "size"},
		{"overlap negative", Config{Overlap: number(-1)}, "overlap"},
		{"overlap over half", Config{Size: 100, Overlap: number(51)}, "overlap"},
		{"overlap at size", Config{Size: 100, Overlap: number(100)}, "overlap"},
	} {
		_, _, err := Split(parse.Document{Text: "text"}, test.config)
		bad, ok := messages.AsError(err)
		if !ok || bad.Code != messages.CodeValidation || bad.Field != "chunkingConfiguration."+test.field {
			t.Errorf("%s: got %v, want a validation error of %s", test.name, err, test.field)
		}
	}
	for _, good := range []Config{{}, {Size: 32}, {Size: 100, Overlap: number(50)}, {Strategy: Whole}, {Size: 8192, Overlap: number(0)}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

func TestBlocksMustPartitionTheText(t *testing.T) {
	t.Parallel()
	for _, blocks := range [][]parse.Block{
		{{Start: 1, End: 4}}, {{End: 3}}, {{End: 5}}, {{End: 2}, {Start: 3, End: 4}}, {{End: 3}, {Start: 2, End: 4}},
	} {
		if _, _, err := Split(parse.Document{Text: "text", Blocks: blocks}, Config{}); err == nil {
			t.Errorf("%v: want an error", blocks)
		}
	}
}

func TestSectionsKeepTheirHeadings(t *testing.T) {
	t.Parallel()
	doc := markdown(t, "# Pump\n\n## Faults\n\nE-4217 means no flow.\n\n## Care\n\nClean it.\n\n```\n# no heading\n```\n\n# End\n")
	chunks := split(t, doc, Config{})
	var got []string
	for _, c := range chunks {
		got = append(got, fmt.Sprintf("%s|%s|%s", strings.Join(c.HeadingPath, "/"), c.Context, strings.Join(strings.Fields(c.Text), " ")))
	}
	want := []string{
		"Pump/Faults||# Pump ## Faults E-4217 means no flow.",
		"Pump/Care|Pump|## Care Clean it. ``` # no heading ```",
		"End||# End",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAHeadingDoesNotStandAlone(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("water flows through the old pipe and ", 40) + "stops."
	for size := MinSize; size < 200; size += 7 {
		for _, c := range split(t, markdown(t, "# A heading of some words\n\n"+long+"\n"), Config{Size: size}) {
			if strings.TrimSpace(c.Text) == "# A heading of some words" {
				t.Errorf("size %d: the heading stands alone", size)
			}
		}
	}
}

func TestTableRowsAndFencesThatFitAreNotCut(t *testing.T) {
	t.Parallel()
	var table, fence strings.Builder
	table.WriteString("| part | stock |\n|---|---|\n")
	for i := range 60 {
		fmt.Fprintf(&table, "| BRK-%04d-X | %d pieces |\n", i, i)
	}
	fence.WriteString("```go\n")
	for i := range 8 {
		fmt.Fprintf(&fence, "\tcall(%d)\n\n", i)
	}
	fence.WriteString("```\n")
	doc := markdown(t, "Some words before.\n\n"+fence.String()+"\nMore words.\n\n"+table.String())
	for size := 100; size < 400; size += 13 {
		chunks := split(t, doc, Config{Size: size, Overlap: number(size / 3)})
		for _, c := range chunks {
			if n := strings.Count(c.Text, "```"); n%2 != 0 {
				t.Errorf("size %d: a fence is cut: %q", size, c.Text)
			}
			for _, row := range strings.Split(c.Text, "\n") {
				if strings.HasPrefix(row, "|") && !strings.HasSuffix(row, "|") {
					t.Errorf("size %d: a row is cut: %q", size, row)
				}
			}
			if strings.HasPrefix(c.Text, "| BRK") && !strings.Contains(c.Context, "| part | stock |") {
				t.Errorf("size %d: rows without their header: context %q", size, c.Context)
			}
		}
	}
}

func TestOverlapIsWholeSentencesOfTheChunkBefore(t *testing.T) {
	t.Parallel()
	chunks := split(t, prose(4000), Config{Size: 120, Overlap: number(40)})
	repeated := 0
	for i, c := range chunks[1:] {
		text := c.Text[:c.CoreStart-c.Start]
		if text == "" {
			continue
		}
		repeated++
		if !strings.Contains(chunks[i].Text, strings.TrimSpace(text)) || !strings.HasSuffix(strings.TrimSpace(text), ".") {
			t.Errorf("chunk %d repeats %q", i+1, text)
		}
	}
	if repeated < len(chunks)/2 {
		t.Errorf("%d of %d chunks repeat anything", repeated, len(chunks))
	}
}

func TestSentencesEndWhereReadersSeeIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"See Dr. Who. Then go.", "See Dr. Who.|Then go."},
		{"As Fig. 3 shows. J. Smith left.", "As Fig. 3 shows.|J. Smith left."},
		{"一句。「二句。」三句！", "一句。|「二句。」|三句！"},
		{"A line\nthat goes on. Next\none.", "A line\nthat goes on.|Next\none."},
	} {
		m := &unitMaker{text: test.text, counter: Estimator{}, bytes: MaxTextBytes}
		m.sentences(0, len(test.text), true, 1000)
		var got []string
		for _, u := range m.out {
			got = append(got, test.text[u.start:u.end])
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("got %q, want %q", strings.Join(got, "|"), test.want)
		}
	}
}

func TestWholeIsOneChunkUpToItsLimit(t *testing.T) {
	t.Parallel()
	const sentence = "知识库 words. "
	text := "Title\n" + strings.Repeat(sentence, MaxTextBytes/len(sentence)-1)
	text += strings.Repeat("a", MaxTextBytes-len(text))
	chunks, warnings, err := Split(parse.Document{Text: text}, Config{Strategy: Whole})
	if err != nil || len(warnings) > 0 || len(chunks) != 1 || chunks[0].Text != text || chunks[0].Context != "" {
		t.Fatalf("64 KiB: %d chunks, warnings %q, error %v", len(chunks), warnings, err)
	}
	chunks, warnings, err = Split(parse.Document{Text: text + " And one more."}, Config{Strategy: Whole})
	if err != nil || len(chunks) != 2 || len(warnings) != 1 {
		t.Fatalf("over 64 KiB: %d chunks, warnings %q, error %v", len(chunks), warnings, err)
	}
	if !strings.HasSuffix(strings.TrimSpace(chunks[0].Text), ".") {
		t.Errorf("not cut at a sentence: %q", chunks[0].Text[len(chunks[0].Text)-40:])
	}
}

func TestWholeCutsWhatHasNoBoundary(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("a", 300_000), strings.Repeat("知", 100_000), strings.Repeat(" \n", 100_000) + "x" + strings.Repeat("\n", 100_000),
		"a" + strings.Repeat("\u0301", 100_000),
	} {
		chunks, _, err := Split(parse.Document{Text: text}, Config{Strategy: Whole})
		if err != nil {
			t.Fatal(err)
		}
		var joined strings.Builder
		for i, c := range chunks {
			end := len(text)
			if i+1 < len(chunks) {
				end = chunks[i+1].CoreStart
			}
			joined.WriteString(text[c.CoreStart:end])
			if len(c.Text) > MaxTextBytes {
				t.Errorf("%.10q: chunk %d has %d bytes", text, i, len(c.Text))
			}
		}
		if joined.String() != text {
			t.Errorf("%.10q: the cores do not give the text back", text)
		}
	}
}

// countedBytes adds up what it is asked to count.
type countedBytes struct {
	Counter
	bytes int
}

func (c *countedBytes) Count(text string) int {
	c.bytes += len(text)
	return c.Counter.Count(text)
}

// TestWorkGrowsWithTheText gives hostile inputs: no byte may be counted more than some times, however long the text.
func TestWorkGrowsWithTheText(t *testing.T) {
	exact, err := CounterFor("text-embedding-3-small")
	if err != nil {
		t.Fatal(err)
	}
	for name, repeat := range map[string]func(int) string{
		"one word":    func(n int) string { return strings.Repeat("a", n) },
		"short lines": func(n int) string { return strings.Repeat("ab\n", n/3) },
		"empty lines": func(n int) string { return "a" + strings.Repeat("\n", n) + "b" },
		"points":      func(n int) string { return strings.Repeat("1. ", n/3) },
		"marks":       func(n int) string { return "a" + strings.Repeat("\u0301", n/2) },
		"no stops":    func(n int) string { return strings.Repeat("知识", n/6) },
		"many blocks": func(n int) string { return strings.Repeat("# h\n\nb\n\n", n/8) },
	} {
		for _, counter := range []Counter{Estimator{}, exact} {
			for _, n := range []int{1 << 12, 1 << 16} {
				doc := markdown(t, repeat(n))
				work := &countedBytes{Counter: counter}
				if _, _, err := Split(doc, Config{Counter: work}); err != nil {
					t.Fatal(err)
				}
				if most := 12 * len(doc.Text); work.bytes > most {
					t.Errorf("%s, %T: %d bytes counted of a text of %d", name, counter, work.bytes, len(doc.Text))
				}
			}
		}
	}
}

func TestCountersKnowTheirModels(t *testing.T) {
	t.Parallel()
	for model, exact := range map[string]bool{
		"text-embedding-3-small": true, "openai/text-embedding-3-large": true, "text-embedding-ada-002": true,
		"multilingual-e5-small": false, "": false,
	} {
		counter, err := CounterFor(model)
		if err != nil {
			t.Fatal(err)
		}
		if _, estimated := counter.(Estimator); estimated == exact {
			t.Errorf("%q: counter is %T", model, counter)
		}
	}
	counter, err := CounterFor("text-embedding-3-small")
	if err != nil {
		t.Fatal(err)
	}
	if got := counter.Count("hello world"); got != 2 {
		t.Errorf("hello world: %d tokens, want 2", got)
	}
}

func TestEstimatorBoundsKnownCounts(t *testing.T) {
	t.Parallel()
	for text, least := range map[string]int{
		"":                       0,
		"知识库是检索":                 6,
		"E-4217":                 4,
		"hello world":            3,
		"water   \n\n   flows":   4,
		"BRK-2093-X":             6,
		"a, b; c: d.":            7,
		"Ünïcödé":                3,
		"1234567890":             6,
		strings.Repeat("ab ", 9): 9,
	} {
		if got := (Estimator{}).Count(text); got < least || got > 3*least {
			t.Errorf("%q: %d tokens, want %d or a little more", text, got, least)
		}
	}
}

func ExampleSplit() {
	doc := parse.Document{Text: "Open the valve. Close the valve."}
	chunks, _, err := Split(doc, Config{})
	fmt.Println(len(chunks), chunks[0].Text, err)
	// Output: 1 Open the valve. Close the valve. <nil>
}
