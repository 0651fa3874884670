package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// analysedWord is what a word of the text (by UAX #29) becomes. It is a pure function of the word.
// It is small because a memo holds many; no text has 2 GB.
type analysedWord struct {
	term  string      // "" when the word holds no letter or digit
	parts *[]wordPart // nil for none
	start int32       // where the word begins and ends without the underscores around it
	end   int32
	stop  bool
	plain bool // the term is all there is to it: it has no parts and no underscores around it
}

type wordPart struct {
	term       string
	start, end int
	stop       bool
}

// maxWordBytes is how much of a word is looked at: enough for a term of MaxTermBytes whatever case folding
// and accents take away.
const maxWordBytes = 4 * MaxTermBytes

// analyseWord makes terms of one word in NFKC.
func (a *Analyzer) analyseWord(word string) analysedWord {
	trimmed := strings.TrimLeft(word, "_")
	w := analysedWord{start: int32(len(word) - len(trimmed))}
	trimmed = strings.TrimRight(trimmed, "_")
	w.end = w.start + int32(len(trimmed))
	trimmed = cut(trimmed, maxWordBytes)
	if !strings.ContainsFunc(trimmed, isWordRune) {
		return w
	}
	lower := strings.ToLower(trimmed)
	w.term, w.stop = a.term(lower)
	w.plain = len(trimmed) == len(word)
	if w.stop {
		return w
	}
	parts := a.parts(trimmed, w.term)
	if len(parts) == 0 {
		return w
	}
	w.plain = false
	for i := range parts {
		parts[i].start += int(w.start)
		parts[i].end += int(w.start)
	}
	w.parts = &parts
	return w
}

// isWordRune says whether r makes a word worth a term.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// term returns the term of a word in lower case, and whether it is a stop word.
func (a *Analyzer) term(lower string) (string, bool) {
	base := strings.TrimSuffix(lower, "'s")
	if base == "" {
		base = lower
	}
	if a.stop[lower] || a.stop[base] {
		return base, true
	}
	return clampTerm(stem(base)), false
}

// clampTerm cuts term at MaxTermBytes.
func clampTerm(term string) string { return cut(term, MaxTermBytes) }

// cut returns the first limit bytes of s at the most, on a rune boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
