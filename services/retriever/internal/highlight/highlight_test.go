package highlight_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/highlight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wanted(tb testing.TB, query string) highlight.Wanted {
	tb.Helper()
	a, err := lexical.Lookup(lexical.Default)
	if err != nil {
		tb.Fatal(err)
	}
	w := highlight.Wanted{Analyzer: a}
	q := a.Query(query)
	for _, t := range q.Terms {
		w.Terms = append(w.Terms, t.Term)
	}
	for _, t := range q.Second {
		w.Second = append(w.Second, t.Term)
	}
	return w
}

// marked is what the marks of pieces cover, after a look at everything that always holds.
func marked(tb testing.TB, text string, pieces []messages.Highlight) []string {
	tb.Helper()
	runes := []rune(text)
	out := []string{}
	end := 0
	for _, p := range pieces {
		if p.Start < end || p.End > len(runes) || p.Text != string(runes[p.Start:p.End]) || len(p.Marks) == 0 {
			tb.Errorf("piece %+v of %q is not that part of it", p, text)
			return nil
		}
		end = p.Start
		for _, m := range p.Marks {
			if m.Start < end || m.End <= m.Start || m.End > p.End {
				tb.Errorf("mark %+v is outside of piece %+v or of the order", m, p)
				return nil
			}
			out = append(out, string(runes[m.Start:m.End]))
			end = m.End
		}
		end = p.End
	}
	return out
}

func TestMarksAreTheWordsOfTheQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, text, want string }{
		{"pumps", "The Pump is pumping; pumpkin.", "Pump|pumping"},
		{"the seal", "the seal of the pump", "seal"},
		{"水泵", "新型水泵和水。", "水泵"},
		{"水泵", "只有水。", "水"},
		{"手册", "產品手冊", "手冊"},
		{"café", "Ein Café – CAFE\u0301!", "Café|CAFE\u0301"},
		{"camelCase", "the camelCase word", "camelCase"},
		{"case", "the camelCase word", "Case"},
		{"😀 pump", "😀😀 pump 😀", "pump"},
		{"nothing", "of it here", ""},
		{"x", "", ""},
	} {
		got := strings.Join(marked(t, c.text, highlight.Find(wanted(t, c.query), c.text)), "|")
		if got != c.want {
			t.Errorf("%q in %q: got %q, want %q", c.query, c.text, got, c.want)
		}
	}
}

func TestPhrasesAndPrefixes(t *testing.T) {
	t.Parallel()
	w := wanted(t, "")
	w.Phrases = [][]pgstore.Step{{{Lexeme: "pump"}, {Lexeme: "seal", After: 1}}, {{Lexeme: "水"}, {Lexeme: "泵", After: 1}}}
	w.Prefixes = []string{"m12"}
	const text = "Pump seals, pump, seal; pump-seal. M120 M13 水泵 M12x30"
	want := []string{"Pump seals", "pump, seal", "pump-seal", "M120", "水泵", "M12x30"}
	if got := marked(t, text, highlight.Find(w, text)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPiecesAreTheBestAndShort(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("filler wörter ", 60)
	text := "pump " + filler + "pump seal rotor " + filler + "pump seal " + filler + "seal rotor pump " + filler + "pump"
	got := highlight.Find(wanted(t, "pump seal rotor"), text)
	words := marked(t, text, got)
	if len(got) != 3 || !slices.Equal(words, strings.Fields("pump seal rotor pump seal seal rotor pump")) {
		t.Errorf("got %d pieces with %q, want the three with most different words", len(got), words)
	}
	for _, p := range got {
		if n := utf8.RuneCountInString(p.Text); n > 240 || n < 100 || strings.HasPrefix(p.Text, "iller") {
			t.Errorf("piece of %d characters: %q", n, p.Text)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("pump seal", "a pump, a seal; pump")
	f.Add("水泵", "新型水泵和水\x00。")
	f.Add("e", "e\u0301e \xffe")
	f.Fuzz(func(t *testing.T, query, text string) {
		if !utf8.ValidString(text) {
			return // contents are valid text
		}
		marked(t, text, highlight.Find(wanted(t, query), text))
	})
}
