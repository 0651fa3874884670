package lexical

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func FuzzAnalyze(f *testing.F) {
	for _, line := range corpusLines(f) {
		f.Add(line)
	}
	a := lex1(f)
	f.Fuzz(func(t *testing.T, text string) {
		checkTokens(t, a, text)
		checkQuery(t, a, text)
		valid := strings.ToValidUTF8(text, "")
		composed, decomposed := terms(a, norm.NFC.String(valid)), terms(a, norm.NFD.String(valid))
		if strings.Join(composed, " ") != strings.Join(decomposed, " ") {
			t.Fatalf("%q: got %q composed, %q decomposed", text, composed, decomposed)
		}
	})
}

// FuzzShortcuts looks for a text on which shortcuts make a difference.
func FuzzShortcuts(f *testing.F) {
	for _, line := range corpusLines(f) {
		f.Add(line)
	}
	for i, text := range limitTexts() {
		if i%97 == 0 {
			f.Add(text)
		}
	}
	quick, plain := newLex1(), withoutShortcuts()
	f.Fuzz(func(t *testing.T, text string) {
		requireSame(t, quick, plain, text)
		requireSame(t, quick, plain, text) // now from memory
	})
}

func FuzzDocument(f *testing.F) {
	lines := corpusLines(f)
	for i, line := range lines {
		f.Add(lines[(i+1)%len(lines)], line, uint16(i*97))
	}
	a := lex1(f)
	f.Fuzz(func(t *testing.T, context, text string, times uint16) {
		if len(text) > 256 {
			text = text[:256]
		}
		checkDocument(t, a.Document(context, strings.Repeat(text+" ", int(times%512))))
	})
}
