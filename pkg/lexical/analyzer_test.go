package lexical

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestLookupOfUnknownIDSaysSo(t *testing.T) {
	t.Parallel()
	if a, err := Lookup("lex0"); a != nil || !errors.Is(err, ErrUnknownAnalyzer) {
		t.Errorf("got %v, %v, want nil and ErrUnknownAnalyzer", a, err)
	}
}

func TestEveryAnalyzerHasTheIDItIsLookedUpWith(t *testing.T) {
	t.Parallel()
	found := false
	for _, id := range IDs() {
		a, err := Lookup(id)
		if err != nil || a.ID() != id {
			t.Errorf("look up %s: got %v, %v", id, a, err)
		}
		found = found || id == Default
	}
	if !found {
		t.Errorf("default %q is not in the table", Default)
	}
}

func TestStopListIsComplete(t *testing.T) {
	t.Parallel()
	if got := len(lex1(t).stop); got != 174 {
		t.Errorf("got %d stop words, want 174", got)
	}
}

func TestFoldTableIsComplete(t *testing.T) {
	t.Parallel()
	han := lex1(t).han
	n := 0
	for r := rune(0x3000); r < 0xA000; r++ {
		to := han.fold(r)
		if to == r {
			continue
		}
		n++
		if han.fold(to) != to {
			t.Errorf("%c folds to %c, which folds further", r, to)
		}
	}
	if n != 3751 {
		t.Errorf("got %d pairs, want 3751", n)
	}
}

// TestResultsDoNotDependOnCompanyOrMemory analyses the same texts from many goroutines over one analyzer with
// a memo so small that its entries push each other out.
func TestResultsDoNotDependOnCompanyOrMemory(t *testing.T) {
	t.Parallel()
	texts := append(corpusLines(t), randomTexts(t, 200)...)
	fresh := newLex1()
	want := make([]string, len(texts))
	for i, text := range texts {
		want[i] = fmt.Sprint(fresh.Analyze(text), fresh.Document(text, text), fresh.Query(text))
	}
	small := newLex1()
	small.otherWords, small.wholes = newTextMemo[analysedWord](2), newTextMemo[string](2)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for k := range texts {
				i := (k + g*31) % len(texts)
				text := texts[i]
				if got := fmt.Sprint(small.Analyze(text), small.Document(text, text), small.Query(text)); got != want[i] {
					t.Errorf("%q: got %s, want %s", text, got, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestLocaleDoesNotMatter cannot be parallel: it sets the environment.
func TestLocaleDoesNotMatter(t *testing.T) {
	want := newLex1().Fingerprint()
	for _, locale := range []string{"tr_TR.UTF-8", "C", "zh_TW.Big5"} {
		for _, name := range []string{"LANG", "LC_ALL", "LC_CTYPE"} {
			t.Setenv(name, locale)
		}
		if got := newLex1().Fingerprint(); got != want {
			t.Errorf("%s: got fingerprint %s, want %s", locale, got, want)
		}
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	a := lex1(t)
	tokens := a.Append(a.Analyze("one"), "two three")
	if len(tokens) != 3 || tokens[0].Term != "one" || tokens[1].Position != 1 || tokens[2].Term != "three" {
		t.Errorf("got %+v, want one, then two and three from position 1", tokens)
	}
}

// TestFillAllocatesItsTermsOnly keeps the ingest path cheap: the text of the terms, and what a rewrite of the
// text and the collector's whims cost.
func TestFillAllocatesItsTermsOnly(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	a := lex1(t)
	for name, text := range map[string]string{"english": benchEnglish, "chinese": benchChinese} {
		var d Document
		if got := testing.AllocsPerRun(50, func() { a.Fill(&d, "Brokers", text) }); got > 5 {
			t.Errorf("%s: got %.0f allocations a document, want at most 5", name, got)
		}
	}
}

func TestPartsStandWhereTheirTextIs(t *testing.T) {
	t.Parallel()
	const text = "see __fooBar_qux__ there"
	found := 0
	for _, tok := range lex1(t).Analyze(text) {
		if tok.Kind != Part {
			continue
		}
		found++
		if got := strings.ToLower(text[tok.Start:tok.End]); got != tok.Term {
			t.Errorf("part %q stands at %q", tok.Term, got)
		}
	}
	if found != 4 {
		t.Errorf("got %d parts, want foobar, foo, bar and qux", found)
	}
}
