package lexical

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func lexeme(t *testing.T, d Document, term string) Lexeme {
	t.Helper()
	for _, l := range d.Lexemes {
		if l.Term == term {
			return l
		}
	}
	t.Fatalf("term %q is not in the document", term)
	return Lexeme{}
}

func TestContextComesFirstWithWeightA(t *testing.T) {
	t.Parallel()
	d := lex1(t).Document("State machines", "A machine has a state.")
	for term, want := range map[string]string{
		"state":  "[{1 A} {23 D}]",
		"machin": "[{2 A} {20 D}]",
		"a":      "[{19 D} {22 D}]",
		"has":    "[{21 D}]",
	} {
		if got := places(lexeme(t, d, term)); got != want {
			t.Errorf("%s: got positions %s, want %s", term, got, want)
		}
	}
	if d.Length != 7 || d.Truncated {
		t.Errorf("got length %d, truncated %t, want 7, false", d.Length, d.Truncated)
	}
}

func places(l Lexeme) string {
	var b strings.Builder
	for i, p := range l.Positions {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "{%d %c}", p.Pos, p.Weight)
	}
	return "[" + b.String() + "]"
}

func TestEmptyDocumentHasNoLexemes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n", "\x00\xff", "... — !?", "\u200b\ufeff"} {
		if d := lex1(t).Document("", text); len(d.Lexemes) != 0 || d.Length != 0 || d.Truncated {
			t.Errorf("%q: got %+v, want nothing", text, d)
		}
	}
}

func TestExtrasDoNotCountInTheLength(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"foo_bar.baz": 1, "GPT-4o": 2, "部署向量": 4, "c++ getUserName": 2, "to be or not": 4,
	} {
		if got := lex1(t).Document("", text).Length; got != want {
			t.Errorf("%q: got length %d, want %d", text, got, want)
		}
	}
}

func TestWordsBehindTheLastPositionStayFindable(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("filler ", MaxPosition) + "early late late " + strings.Repeat("filler ", 10)
	d := lex1(t).Document("early", text)
	checkDocument(t, d)
	if got, want := places(lexeme(t, d, "late")), "[{16383 D}]"; got != want {
		t.Errorf("late: got positions %s, want %s", got, want)
	}
	if got, want := places(lexeme(t, d, "earli")), "[{1 A}]"; got != want {
		t.Errorf("early: got positions %s, want %s", got, want)
	}
	if want := MaxPosition + 14; d.Length != want || !d.Truncated {
		t.Errorf("got length %d, truncated %t, want %d, true", d.Length, d.Truncated, want)
	}
}

func TestFrequencyIsCappedAtMaxPositions(t *testing.T) {
	t.Parallel()
	d := lex1(t).Document("", strings.Repeat("word ", 300))
	if got := lexeme(t, d, "word").TF(); got != MaxPositions || !d.Truncated || d.Length != 300 {
		t.Errorf("got frequency %d, truncated %t, length %d, want %d, true, 300", got, d.Truncated, d.Length, MaxPositions)
	}
}

func TestHostileTextStaysInsideTheLimits(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 3 * MaxLexemes {
		fmt.Fprintf(&many, "w%dx ", i)
	}
	var long strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&long, "%s%d ", strings.Repeat("é", 400), i)
	}
	for name, text := range map[string]string{
		"many words":     many.String(),
		"long words":     long.String(),
		"one long word":  strings.Repeat("QUJD", 1<<18),
		"one long chain": strings.Repeat("a-b_c.d/", 1<<16),
		"one Han run":    strings.Repeat("数据库向量", 1<<15),
		"marks":          "e" + strings.Repeat("\u0301", 1<<16),
		"Thai marks":     strings.Repeat("ก"+strings.Repeat("\u0e48", 99), 1<<9),
		"underscores":    strings.Repeat("_", 1<<18),
		"apostrophes":    strings.Repeat("a'", 1<<17),
		"camels":         strings.Repeat("aB", 1<<17),
		"NUL":            strings.Repeat("a\x00", 1<<17),
		"invalid":        strings.Repeat("\xff\xfe", 1<<17),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lex1(t)
			checkDocument(t, a.Document(text[:10], text))
			a.Query(text)
		})
	}
}

func TestLongTermsAreCutAlikeForDocumentsAndQueries(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	text := strings.Repeat("ж1", 400)
	d, q := a.Document("", text), a.Query(text)
	if len(d.Lexemes) != 1 || len(q.Terms) != 1 || d.Lexemes[0].Term != q.Terms[0].Term {
		t.Fatalf("got lexemes %v and terms %v, want one and the same", d.Lexemes, q.Terms)
	}
	if got := len(d.Lexemes[0].Term); got != MaxTermBytes && got != MaxTermBytes-1 {
		t.Errorf("got a term of %d bytes, want it cut at %d", got, MaxTermBytes)
	}
}

func TestBuilderKeepsOnePositionOnce(t *testing.T) {
	t.Parallel()
	b := newBuilder(newTermHash())
	var d Document
	gather(&b, &d, []Token{{Term: "same", Position: 1}, {Term: "same", Position: 1, Kind: Part}, {Term: "same", Position: 2}}, 3)
	if got, want := places(lexeme(t, d, "same")), "[{1 D} {2 D}]"; got != want {
		t.Errorf("got positions %s, want %s", got, want)
	}
}

func TestFillUsesMemoryAgainAndKeepsTerms(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	var d Document
	var terms []string
	for _, text := range slices.Concat(corpusLines(t), randomTexts(t, 200), []string{"", "some words more words"}) {
		a.Fill(&d, text[:len(text)/3], text)
		requireDocument(t, text, d, a.Document(text[:len(text)/3], text))
		for i := range d.Lexemes {
			terms = append(terms, d.Lexemes[i].Term)
		}
	}
	for _, term := range terms {
		checkTerm(t, term)
	}
}
