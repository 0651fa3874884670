package lexical

import (
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

// word takes the next word, which lies at text[start:end].
func (c *compound) word(w *analysedWord, start, end int) {
	if c.open && !c.joins(start) {
		c.close()
	}
	token := len(c.s.tokens)
	c.pass.word(w, start)
	if !c.open {
		c.open, c.start, c.token, c.words = true, start, token, 0
		c.trimmed = w.start > 0 || int(w.end) < end-start
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
	tokens := c.s.tokens
	first := tokens[i]
	term := *c.a.wholes.get(c.text[start:end], c.a.wholeTerm)
	if term == first.Term {
		return
	}
	tokens = append(tokens, Token{})
	copy(tokens[i+2:], tokens[i+1:])
	tokens[i+1] = Token{Term: term, Position: first.Position, Kind: Whole, Start: start, End: end}
	c.s.tokens = tokens
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
