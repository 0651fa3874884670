package lexical

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// scratch is the working memory of one analysis.
type scratch struct {
	edits  [3]edit
	tokens []Token
	iter   *words.Iterator[string]
	build  builder
}

func newScratch() *scratch {
	return &scratch{iter: words.FromString(""), build: builder{index: map[string]int32{}}}
}

// forget drops every reference to the text analysed.
func (s *scratch) forget() {
	clear(s.tokens)
	s.tokens = s.tokens[:0]
	s.iter.SetText("")
	s.build.forget()
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
	pos  int // of the last primary token
}

// wordRun returns the end of the run of word script that begins at i; i itself when there is none.
func (p *pass) wordRun(i int) int {
	for i < len(p.text) {
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
	r, _ := utf8.DecodeRuneInString(p.text[i:])
	run := groupOf(r)
	start, end := i, p.cluster(i)
	for first := true; ; first = false {
		next := end
		if end < len(p.text) {
			if r, _ = utf8.DecodeRuneInString(p.text[end:]); groupOf(r) == run {
				next = p.cluster(end)
			}
		}
		p.pos++
		p.emit(Token{Term: p.text[start:end], Kind: Unigram, Start: start, End: end, lone: first && next == end})
		if next == end {
			return end
		}
		p.emit(Token{Term: p.text[start:next], Kind: Bigram, Start: start, End: next})
		start, end = end, next
	}
}

// maxMarks is how many marks one character takes along. With a bigram of two such characters, terms stay far
// below MaxTermBytes.
const maxMarks = 8

// cluster returns the end of the character at i with the marks on it.
func (p *pass) cluster(i int) int {
	_, n := utf8.DecodeRuneInString(p.text[i:])
	i += n
	for range maxMarks {
		if i >= len(p.text) || p.text[i] < utf8.RuneSelf {
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

func (p *pass) emit(t Token) {
	t.Position = p.pos
	p.s.tokens = append(p.s.tokens, t)
}

// words emits the tokens of text[start:end], which holds no character of another group.
func (p *pass) words(start, end int) {
	c := compound{pass: p, limit: end}
	it := p.s.iter
	it.SetText(p.text[start:end])
	for it.Next() {
		word := it.Value()
		if b := word[0]; b < utf8.RuneSelf && !isWordByte(b) {
			continue
		}
		w := p.a.words.get(word, p.a.analyseWord)
		if w.term == "" {
			continue
		}
		at := start + it.Start()
		c.word(w, at, at+len(word))
	}
	c.close()
}

func isWordByte(b byte) bool {
	return isLowerASCII(b) || isUpperASCII(b) || b >= '0' && b <= '9' || b == '_'
}

// word emits a word that begins at offset at, and its parts.
func (p *pass) word(w *analysedWord, at int) {
	p.pos++
	p.emit(Token{Term: w.term, Kind: Word, Stop: w.stop, Start: at + w.start, End: at + w.end})
	for _, part := range w.parts {
		p.emit(Token{Term: part.term, Kind: Part, Stop: part.stop, Start: at + part.start, End: at + part.end})
	}
}
