package lexical

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// corpusLines returns the committed samples: what the properties are tried on and the fuzzers start from.
func corpusLines(tb testing.TB) []string {
	tb.Helper()
	lines := strings.Split(strings.TrimSpace(fingerprintCorpus), "\n")
	queries, err := os.ReadFile("testdata/queries.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return append(lines, strings.Split(strings.TrimSpace(string(queries)), "\n")...)
}

// randomTexts returns texts glued from pieces of the samples, cut anywhere, with odd bytes between.
func randomTexts(tb testing.TB, n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	lines := corpusLines(tb)
	glue := []string{" ", "", "-", ".", "_", "+", "#", "/", "'", "\x00", "\xff", "\xe4\xb8", "\u200b", "\u0301", "\n", "\u3000", "İ", "ß", "ﬃ"}
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range rnd.IntN(12) {
			line := lines[rnd.IntN(len(lines))]
			from := rnd.IntN(len(line))
			b.WriteString(line[from : from+rnd.IntN(len(line)-from+1)])
			b.WriteString(glue[rnd.IntN(len(glue))])
		}
		texts[i] = b.String()
	}
	return texts
}

func TestTokensKeepTheirPromises(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	for _, text := range append(corpusLines(t), randomTexts(t, 2000)...) {
		checkTokens(t, a, text)
		checkDocument(t, a.Document("", text))
		checkQuery(t, a, text)
	}
}

// checkTokens checks what holds for the tokens of any text.
func checkTokens(t *testing.T, a *Analyzer, text string) {
	t.Helper()
	last := 0
	for _, tok := range a.Analyze(text) {
		checkTerm(t, tok.Term)
		want := last
		if tok.Kind == Word || tok.Kind == Unigram {
			want = last + 1
		}
		if tok.Position != want || want == 0 {
			t.Fatalf("%q: %s token %q has position %d, want %d", text, tok.Kind, tok.Term, tok.Position, want)
		}
		last = tok.Position
		if tok.Start < 0 || tok.Start >= tok.End || tok.End > len(text) {
			t.Fatalf("%q: token %q lies at [%d, %d) of %d bytes", text, tok.Term, tok.Start, tok.End, len(text))
		}
	}
}

func checkTerm(t *testing.T, term string) {
	t.Helper()
	if term == "" || len(term) > MaxTermBytes || !utf8.ValidString(term) || strings.ContainsRune(term, 0) {
		t.Fatalf("got term %q, want valid UTF-8 of 1 to %d bytes without NUL", term, MaxTermBytes)
	}
}

// checkDocument checks what a tsvector demands.
func checkDocument(t *testing.T, d Document) {
	t.Helper()
	bytes := 0
	for i, l := range d.Lexemes {
		checkTerm(t, l.Term)
		if i > 0 && d.Lexemes[i-1].Term >= l.Term {
			t.Fatalf("lexeme %q stands after %q", l.Term, d.Lexemes[i-1].Term)
		}
		if l.TF() < 1 || l.TF() > MaxPositions {
			t.Fatalf("lexeme %q has %d positions, want 1 to %d", l.Term, l.TF(), MaxPositions)
		}
		for j, p := range l.Positions {
			if p.Pos < 1 || p.Pos > MaxPosition || j > 0 && l.Positions[j-1].Pos >= p.Pos {
				t.Fatalf("lexeme %q has positions %v, want them rising from 1 to %d", l.Term, l.Positions, MaxPosition)
			}
		}
		bytes += len(l.Term) + 3 + 2*l.TF()
	}
	if len(d.Lexemes) > MaxLexemes || bytes > maxStoredBytes {
		t.Fatalf("got %d lexemes in %d bytes, want at most %d in %d", len(d.Lexemes), bytes, MaxLexemes, maxStoredBytes)
	}
}

// checkQuery checks that every term of a query is a term of the same text as a document.
func checkQuery(t *testing.T, a *Analyzer, text string) {
	t.Helper()
	q := a.Query(text)
	for _, list := range [][]QueryTerm{q.Terms, q.Second} {
		if len(list) > MaxQueryTerms {
			t.Fatalf("%q: got %d terms, want at most %d", text, len(list), MaxQueryTerms)
		}
		requireTermsIn(t, a.Document("", text), list, text)
	}
}

func requireTermsIn(t *testing.T, d Document, terms []QueryTerm, text string) {
	t.Helper()
	if d.Truncated {
		return
	}
	for _, term := range terms {
		_, ok := slices.BinarySearchFunc(d.Lexemes, term.Term, func(l Lexeme, s string) int { return strings.Compare(l.Term, s) })
		if !ok || term.Weight <= 0 {
			t.Fatalf("%q: query term %q of weight %g is not in the document", text, term.Term, term.Weight)
		}
	}
}

// TestQueryFindsWhatStandsBetweenSpaces asks for every part of a text that begins and ends at a space.
func TestQueryFindsWhatStandsBetweenSpaces(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	for _, text := range append(corpusLines(t), randomTexts(t, 300)...) {
		doc := a.Document("", text)
		fields := strings.Split(text, " ")
		for i := range fields {
			query := strings.Join(fields[i:min(i+3, len(fields))], " ")
			requireTermsIn(t, doc, a.Query(query).Terms, text)
		}
	}
}

func TestComposedAndDecomposedFormsGiveEqualTokens(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	for _, text := range append(corpusLines(t), randomTexts(t, 1000)...) {
		text = strings.ToValidUTF8(text, "")
		composed, decomposed := terms(a, norm.NFC.String(text)), terms(a, norm.NFD.String(text))
		if !slices.Equal(composed, decomposed) {
			t.Fatalf("%q: got %q composed, %q decomposed", text, composed, decomposed)
		}
	}
}

func TestNormalizedTextIsNFKC(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	s := newScratch(a)
	for _, text := range append(corpusLines(t), randomTexts(t, 1000)...) {
		s.edits[0].reset()
		clean := s.edits[0].clean(text, nil)
		want := strings.Map(a.han.fold, norm.NFKC.String(clean))
		if got := s.normalize(text, a.han); got != want {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTraditionalAndSimplifiedFormsGiveEqualTerms(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	for _, pair := range [][2]string{
		{"產品的安裝步驟是什麼", "产品的安装步骤是什么"},
		{"如何部署向量數據庫，以及索引", "如何部署向量数据库，以及索引"},
		{"這裡應該沒有問題：請聯繫我們的客戶服務", "这里应该没有问题：请联系我们的客户服务"},
		{"機器學習與自然語言處理", "机器学习与自然语言处理"},
	} {
		if got, want := terms(a, pair[0]), terms(a, pair[1]); !slices.Equal(got, want) {
			t.Errorf("got %q for the traditional form, want %q", got, want)
		}
	}
}

func terms(a *Analyzer, text string) []string {
	var out []string
	for _, t := range a.Analyze(text) {
		out = append(out, t.Term)
	}
	return out
}
