package lexical

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxWholeBytes is the longest compound that becomes a term of its own.
const maxWholeBytes = 64

// compound follows the words of a run and emits those joined by - _ . + # / as one term more.
type compound struct {
	*pass
	limit int // end of the run

	open       bool
	start, end int  // of the compound so far, in text
	token      int  // index of the first word's token
	words      int  // how many words it has
	lastStart  int  // where the last word begins
	lastToken  int  // index of the last word's token
	trimmed    bool // the first word had underscores around it
}

// take emits the next word.
func (c *compound) take(w *cutWord) {
	if w.head == 0 {
		if word := c.analysed(w); word.term != "" {
			c.extend(w.start, w.end, word.start > 0 || int(word.end) < w.end-w.start)
			c.word(word, w.start)
		}
		return
	}
	if c.alone(w.start, w.end) {
		c.close()
	} else {
		c.extend(w.start, w.end, false)
	}
	c.plain(w)
}

// alone says for sure that text[start:end] is no compound nor in one.
func (c *compound) alone(start, end int) bool {
	return (start == 0 || !isGlue(c.text[start-1])) && (end == c.limit || !isGlue(c.text[end]))
}

// isGlue says whether b can be between the words of a compound, or belong to its first or last one.
func isGlue(b byte) bool { return isJoiner(b) || b == '+' || b == '#' }

// extend takes in the word text[start:end], whose tokens are emitted next; trimmed says that it has underscores
// around it.
func (c *compound) extend(start, end int, trimmed bool) {
	if c.open && !c.joins(start) {
		c.close()
	}
	token := len(c.s.tokens)
	if !c.open {
		c.open, c.start, c.token, c.words, c.trimmed = true, start, token, 0, trimmed
	}
	c.words++
	c.end, c.lastStart, c.lastToken = end, start, token
}

// joins says whether a word at offset start carries on the compound. When the last word has a suffix of
// its own, as in c++/java or c++20, that is emitted.
func (c *compound) joins(start int) bool {
	if start-c.end > 3 || start == c.end {
		return false
	}
	gap := c.text[c.end:start]
	suffix := suffixLength(gap)
	rest := gap[suffix:]
	switch {
	case suffix > 2 || len(rest) > 1 || rest != "" && !isJoiner(rest[0]):
		return false
	case rest == "" && suffix < 2: // a+b
		return true
	}
	if suffix > 0 {
		c.insert(c.lastToken, c.lastStart, c.end+suffix)
	}
	return true
}

// close ends the compound and emits it if it is more than its only word.
func (c *compound) close() {
	if !c.open {
		return
	}
	c.open = false
	suffix, dot := c.suffix(), c.leadingDot()
	if c.words > 1 || suffix+dot > 0 || c.trimmed {
		c.insert(c.token, c.start-dot, c.end+suffix)
	}
}

// suffix returns the length of the + or # behind the last word: one or two, as in c++.
func (c *compound) suffix() int {
	n := suffixLength(c.text[c.end:c.limit])
	if n > 2 {
		return 0
	}
	return n
}

// suffixLength returns how many + and # text begins with; 3 stands for more.
func suffixLength(text string) int {
	n := 0
	for n < min(len(text), 3) && (text[n] == '+' || text[n] == '#') {
		n++
	}
	return n
}

func isJoiner(c byte) bool { return c == '-' || c == '_' || c == '.' || c == '/' }

// leadingDot returns 1 when the compound is a word like .net: a dot before it and white space before that.
func (c *compound) leadingDot() int {
	if c.start == 0 || c.text[c.start-1] != '.' {
		return 0
	}
	if c.start > 1 {
		if r, _ := utf8.DecodeLastRuneInString(c.text[:c.start-1]); r != ' ' && r != '\n' && r != '\t' {
			return 0
		}
	}
	if b := c.text[c.start]; !isLowerASCII(b) && !isUpperASCII(b) {
		return 0
	}
	return 1
}

// insert puts the compound text[start:end] behind the token at index i, at the same position.
func (c *compound) insert(i, start, end int) {
	if end-start > maxWholeBytes {
		return
	}
	first := c.s.tokens[i]
	whole := c.s.long.term(*c.a.wholes.get(c.text[start:end], c.a.wholeTerm))
	if c.s.long.equal(&whole, &first.term) {
		return
	}
	c.s.tokens = slices.Insert(c.s.tokens, i+1, token{
		term: whole, position: first.position, start: int32(start), end: int32(end), kind: Whole,
	})
}

// wholeTerm returns the term of a compound: in lower case without accents, its last word stemmed if that is
// all letters.
func (a *Analyzer) wholeTerm(text string) string {
	lower := strings.ToLower(text)
	i := strings.LastIndexAny(lower, "-_.+#/:'") + 1
	last := lower[i:]
	if wordScript(last) != noScript {
		last = stem(last)
	}
	return foldAccents(lower[:i]) + foldAccents(last)
}
