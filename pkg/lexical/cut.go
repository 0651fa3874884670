package lexical

import (
	"strings"
	"unicode/utf8"
)

// cutBatch is how many words are cut out of a text before they are looked up: with nothing between the looks,
// the waits for memory overlap.
const cutBatch = 64

// cutWord is a word cut out of a text.
type cutWord struct {
	key        wordKey // zero: too long for one
	start, end int
	head, tail uint64 // as in wordSlot; zero while they are not known
}

// words emits the tokens of text[start:end], which holds no character of another group.
func (p *pass) words(start, end int) {
	c := compound{pass: p, limit: end}
	for start < end {
		var n int
		n, start = p.cut(p.text[:end], start)
		cuts := p.s.cuts[:n]
		if p.s.short != nil {
			p.a.words.lookUp(cuts)
		}
		for i := range cuts {
			c.take(&cuts[i])
		}
	}
	c.close()
}

// cut cuts at most cutBatch words out of text from offset i on. It returns how many and where to go on.
func (p *pass) cut(text string, i int) (n, next int) {
	for n < cutBatch && i < len(text) {
		if p.s.short.passes(text, i) {
			i++
			continue
		}
		key, end := p.wordAt(text, i)
		if b := text[i]; b >= utf8.RuneSelf || isWordByte(b) {
			p.s.cuts[n] = cutWord{key: key, start: i, end: end}
			n++
		}
		i = end
	}
	return n, i
}

// wordAt returns the end of the word, or of the piece between words, that begins at offset i of text, and its
// key; zero when it is too long for one.
func (p *pass) wordAt(text string, i int) (wordKey, int) {
	t := p.s.short
	if t == nil {
		return wordKey{}, p.generalEnd(text, i)
	}
	end := 0
	if key, n := asciiKey(text, i); n == 0 {
		end = t.wordEnd(text, i)
	} else if end = t.carryOn(text, i+n, t.classes[text[i+n-1]]); end == i+n {
		return key, end
	}
	if end == 0 {
		end = p.generalEnd(text, i)
	}
	return newWordKey(text[i:end]), end
}

// generalEnd does what wordAt does for any character, slowly.
func (p *pass) generalEnd(text string, i int) int {
	it := p.s.iter
	it.SetText(text[i:])
	it.Next()
	return i + it.End()
}

// analysed returns what a word becomes that was not found, and remembers it.
func (p *pass) analysed(w *cutWord) *analysedWord {
	text := p.text[w.start:w.end]
	if p.s.short == nil {
		word := p.a.analyseWord(text)
		return &word
	}
	if word := p.a.otherWords.find(text); word != nil {
		return word
	}
	text = strings.Clone(text) // the result may hold parts of it
	word := p.a.analyseWord(text)
	if p.a.words.add(w.key, &word) {
		return &word
	}
	return p.a.otherWords.put(text, word)
}

func isWordByte(b byte) bool {
	return isLowerASCII(b) || isUpperASCII(b) || b >= '0' && b <= '9' || b == '_'
}

// word emits a word that begins at offset at, and its parts.
func (p *pass) word(w *analysedWord, at int) {
	p.pos++
	p.emit(w.term, token{kind: Word, stop: w.stop}, at+int(w.start), at+int(w.end))
	if w.parts == nil {
		return
	}
	for _, part := range *w.parts {
		p.emit(part.term, token{kind: Part, stop: part.stop}, at+part.start, at+part.end)
	}
}

// plain emits a word that becomes one term and nothing else.
func (p *pass) plain(w *cutWord) {
	p.pos++
	p.s.tokens = append(p.s.tokens, token{})
	t := &p.s.tokens[len(p.s.tokens)-1] // filled in place: a copy of what was just written takes long
	t.head, t.tail = w.head, w.tail&^stopMark
	t.position, t.start, t.end = p.pos, int32(w.start), int32(w.end)
	t.kind, t.stop = Word, w.tail&stopMark != 0
}
