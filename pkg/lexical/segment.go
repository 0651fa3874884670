package lexical

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// scratch is the working memory of one analysis.
type scratch struct {
	short  *shortcuts // of the analyzer; nil for none
	near   *near      // nil until it pays
	docs   int        // how many documents were made with this scratch
	edits  [3]edit
	tokens []Token
	iter   *words.Iterator[string]
	build  builder
}

func newScratch(a *Analyzer) *scratch {
	return &scratch{short: a.short, iter: words.FromString(""), build: newBuilder(a.hash)}
}

// forget drops every reference to the text analysed.
func (s *scratch) forget() {
	clear(s.tokens)
	s.tokens = s.tokens[:0]
	s.iter.SetText("")
	s.build.forget()
}

// nearAfter is how many documents a scratch makes before it gets a near: one that the collector takes away
// before, since there is little to do, would not earn back what a near costs.
const nearAfter = 8

// countDocument readies the scratch for one more document.
func (s *scratch) countDocument() {
	s.docs++
	if s.docs > nearAfter && s.near == nil && s.short != nil {
		s.near = new(near)
	}
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
		p.emit(Token{Term: p.text[start:end], Position: p.pos, Kind: Unigram, lone: first && next == end, Start: start, End: end})
		if next == end {
			return end
		}
		p.emit(Token{Term: p.text[start:next], Position: p.pos, Kind: Bigram, Start: start, End: next})
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

func (p *pass) emit(t Token) {
	p.s.tokens = append(p.s.tokens, t)
}

// words emits the tokens of text[start:end], which holds no character of another group.
func (p *pass) words(start, end int) {
	c := compound{pass: p, limit: end}
	text := p.text[:end]
	for next := start; start < end; start = next {
		if p.s.short.passes(text, start) {
			next = start + 1
			continue
		}
		var w *analysedWord
		if w, next = p.quickWord(text, start); next == 0 {
			w, next = p.anyWord(text, start)
		}
		if w != nil && w.term != "" {
			c.word(w, start, next)
		}
	}
	c.close()
}

// anyWord returns what the word at offset i of text becomes, and its end; nil when something else than a word
// is there. The result is valid until the next call.
func (p *pass) anyWord(text string, i int) (*analysedWord, int) {
	end := p.generalEnd(text, i)
	if b := text[i]; b < utf8.RuneSelf && !isWordByte(b) {
		return nil, end
	}
	if p.s.short == nil {
		w := p.a.analyseWord(text[i:end])
		return &w, end
	}
	return p.s.near.get(p.a, text[i:end]), end
}

// generalEnd returns the end of the word, or of the piece between words, that begins at offset i of text.
func (p *pass) generalEnd(text string, i int) int {
	it := p.s.iter
	it.SetText(text[i:])
	it.Next()
	return i + it.End()
}

// quickWord does the same as anyWord where the shortcuts tell what that would return; else it returns 0 for
// the end.
func (p *pass) quickWord(text string, i int) (*analysedWord, int) {
	t := p.s.short
	if t == nil || text[i] < utf8.RuneSelf && t.classes[text[i]]&wordClass == 0 {
		return nil, 0
	}
	key, n := asciiKey(text, i)
	if n == 0 {
		end := t.wordEnd(text, i)
		if end == 0 {
			return nil, 0
		}
		return p.s.near.get(p.a, text[i:end]), end
	}
	end := t.carryOn(text, i+n, t.classes[text[i+n-1]])
	switch end {
	case 0:
		return nil, 0
	case i + n:
		return p.s.near.lookUp(p.a, text[i:end], key), end
	}
	return p.s.near.get(p.a, text[i:end]), end
}

func isWordByte(b byte) bool {
	return isLowerASCII(b) || isUpperASCII(b) || b >= '0' && b <= '9' || b == '_'
}

// word emits a word that begins at offset at, and its parts.
func (p *pass) word(w *analysedWord, at int) {
	p.pos++
	p.emit(Token{
		Term: w.term, Position: p.pos, Kind: Word, Stop: w.stop, hash: w.hash,
		Start: at + int(w.start), End: at + int(w.end),
	})
	if w.parts == nil {
		return
	}
	for _, part := range *w.parts {
		p.emit(Token{
			Term: part.term, Position: p.pos, Kind: Part, Stop: part.stop,
			Start: at + part.start, End: at + part.end,
		})
	}
}
