package lexical

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxParts = 32 // most parts of one word
	// minApostrophePart is the least length of a part beside an apostrophe (l'avion, o'reilly), so that
	// what is left of don't or we'll is none.
	minApostrophePart = 3
	minHump           = 2 // least length of a part of a camelCase word
)

// partList collects the parts of one word.
type partList struct {
	a     *Analyzer
	word  string // as in the text
	term  string // the word's own term, never a part
	parts []wordPart
}

// parts returns the terms inside word (as in the text, without underscores around it): what stands between
// its punctuation, the humps of camelCase, and the letters of an acronym with dots as one.
func (a *Analyzer) parts(word, term string) []wordPart {
	if len(word) > MaxTermBytes {
		return nil
	}
	l := partList{a: a, word: word, term: term}
	if strings.ContainsFunc(word, unicode.IsLetter) {
		l.split()
	}
	return l.parts
}

func (l *partList) split() {
	start := 0
	for start <= len(l.word) {
		end := strings.IndexAny(l.word[start:], "._:'")
		if end < 0 {
			end = len(l.word)
		} else {
			end += start
		}
		l.piece(start, end)
		start = end + 1
	}
	l.acronym()
}

// piece adds what lies between two marks of punctuation, and its humps.
func (l *partList) piece(start, end int) {
	if end-start < l.minPiece(start, end) {
		return
	}
	if end-start < len(l.word) {
		l.add(start, end)
	}
	l.humps(start, end)
}

func (l *partList) minPiece(start, end int) int {
	if start > 0 && l.word[start-1] == '\'' || end < len(l.word) && l.word[end] == '\'' {
		return minApostrophePart
	}
	if end < len(l.word) || start > 0 {
		return 2
	}
	return 1
}

// humps adds the words of fooBar and HTTPServer, if there are two that are long enough.
func (l *partList) humps(start, end int) {
	var cuts [maxParts + 1]int
	n, long := 1, 0
	cuts[0] = start
	for i := start + 1; i <= end && n <= maxParts; i++ {
		if i < end && !isHump(l.word[start:end], i-start) {
			continue
		}
		if i-cuts[n-1] >= minHump {
			long++
		}
		cuts[n] = i
		n++
	}
	if n < 3 || long < 2 {
		return
	}
	for i := 1; i < n; i++ {
		if cuts[i]-cuts[i-1] >= minHump {
			l.add(cuts[i-1], cuts[i])
		}
	}
}

// isHump says whether a new word of camelCase begins at offset i: fooBar, HTTPServer. ASCII letters only.
func isHump(word string, i int) bool {
	if !isUpperASCII(word[i]) {
		return false
	}
	before := word[i-1]
	if isLowerASCII(before) {
		return true
	}
	return isUpperASCII(before) && i+1 < len(word) && isLowerASCII(word[i+1])
}

func isUpperASCII(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLowerASCII(c byte) bool { return c >= 'a' && c <= 'z' }

// acronym adds usa for U.S.A.
func (l *partList) acronym() {
	if !strings.Contains(l.word, ".") {
		return
	}
	var letters []rune
	for piece := range strings.SplitSeq(l.word, ".") {
		r, n := utf8.DecodeRuneInString(piece)
		if n == 0 || n != len(piece) || !unicode.IsLetter(r) {
			return
		}
		letters = append(letters, r)
	}
	l.addTerm(string(letters), 0, len(l.word))
}

func (l *partList) add(start, end int) {
	l.addTerm(l.word[start:end], start, end)
}

func (l *partList) addTerm(text string, start, end int) {
	if len(l.parts) >= maxParts || !strings.ContainsFunc(text, isWordRune) {
		return
	}
	term, stop := l.a.term(strings.ToLower(text))
	if term == l.term || slices.ContainsFunc(l.parts, func(p wordPart) bool { return p.term == term }) {
		return
	}
	l.parts = append(l.parts, wordPart{term: term, start: start, end: end, stop: stop})
}
