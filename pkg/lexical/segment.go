package lexical

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// scratch is the working memory of one analysis.
type scratch struct {
	short  *shortcuts // of the analyzer; nil for none
	edits  [3]edit
	cuts   [cutBatch]cutWord
	tokens []token
	long   longTerms // of tokens
	bytes  []byte
	iter   *words.Iterator[string]
	build  builder
}

// token is one term at one place of a text. It holds no pointer, so that tokens are written and dropped at no cost.
type token struct {
	term
	position   int32
	start, end int32
	kind       Kind
	stop       bool
	lone       bool // a unigram that is in no bigram
}

func newScratch(a *Analyzer) *scratch {
	return &scratch{short: a.short, iter: words.FromString(""), build: newBuilder(a.hash)}
}

// begin readies the scratch for a text.
func (s *scratch) begin() {
	s.tokens, s.long = s.tokens[:0], s.long[:0]
}

// forget drops every reference to the text analysed.
func (s *scratch) forget() {
	clear(s.long)
	s.begin()
	s.iter.SetText("")
}

// terms returns the terms of the tokens as text.
func (s *scratch) terms() termReader {
	s.bytes = s.bytes[:0]
	for i := range s.tokens {
		s.bytes = s.long.append(s.bytes, &s.tokens[i].term)
	}
	return termReader{long: s.long, text: string(s.bytes)}
}

// group is a set of scripts written without spaces whose characters may pair up.
type group uint8

const (
	spaced group = iota // none of them: words
	cjk                 // Han, kana, bopomofo
	hangul
	thai
	lao
	myanmar
	khmer
)

// segment appends the tokens of text, in NFKC, to s.tokens; offsets are those of text.
func (s *scratch) segment(a *Analyzer, text string) {
	p := pass{a: a, s: s, text: text}
	for i := 0; i < len(text); {
		end := p.wordRun(i)
		if i < end {
			p.words(i, end)
			i = end
			continue
		}
		i = p.grams(i)
	}
}

// pass is one walk over a text.
type pass struct {
	a    *Analyzer
	s    *scratch
	text string
	pos  int32 // of the last primary token
}

// wordRun returns the end of the run of word script that begins at i; i itself when there is none.
func (p *pass) wordRun(i int) int {
	for i < len(p.text) {
		if i = plainEights(p.text, i); i == len(p.text) {
			break
		}
		if p.text[i] < 0xE0 {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(p.text[i:])
		if groupOf(r) != spaced {
			return i
		}
		i += n
	}
	return i
}

// grams emits the tokens of the run that begins at i and is all of one group, and returns its end.
func (p *pass) grams(i int) int {
	run := p.group(i)
	start, end := i, p.cluster(i)
	for first := true; ; first = false {
		next := end
		if end < len(p.text) && p.group(end) == run {
			next = p.cluster(end)
		}
		p.pos++
		p.emit(p.text[start:end], token{kind: Unigram, lone: first && next == end}, start, end)
		if next == end {
			return end
		}
		p.emit(p.text[start:next], token{kind: Bigram}, start, next)
		start, end = end, next
	}
}

// isHanLead says whether a character that begins with the byte b is Han for sure: U+5000 to U+9FFF.
func isHanLead(b byte) bool { return b >= 0xE5 && b <= 0xE9 }

// group returns the group of the character at i.
func (p *pass) group(i int) group {
	if isHanLead(p.text[i]) {
		return cjk
	}
	r, _ := utf8.DecodeRuneInString(p.text[i:])
	return groupOf(r)
}

// maxMarks is how many marks one character takes along. With a bigram of two such characters, terms stay far
// below MaxTermBytes.
const maxMarks = 8

// cluster returns the end of the character at i, which is in a group, with the marks on it.
func (p *pass) cluster(i int) int {
	i += runeLength(p.text[i])
	for range maxMarks {
		if i >= len(p.text) || p.text[i] < utf8.RuneSelf || isHanLead(p.text[i]) {
			return i
		}
		r, n := utf8.DecodeRuneInString(p.text[i:])
		if r >= 0x3400 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7FF || !unicode.Is(unicode.M, r) {
			return i
		}
		i += n
	}
	return i
}

// runeLength returns the length of a character of two bytes or more by its first byte.
func runeLength(lead byte) int {
	switch {
	case lead < 0xE0:
		return 2
	case lead < 0xF0:
		return 3
	}
	return 4
}

// emit appends the token t of the term text at the present position.
func (p *pass) emit(text string, t token, start, end int) {
	t.term, t.position, t.start, t.end = p.s.long.term(text), p.pos, int32(start), int32(end)
	p.s.tokens = append(p.s.tokens, t)
}
