package chunk

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

// sentenceWalk goes from one sentence boundary, by UAX #29, to the next.
type sentenceWalk struct {
	text string
	at   int // the boundary reached
	it   *sentences.Iterator[string]
}

// next goes to the next boundary. It returns false at the end of the text.
func (w *sentenceWalk) next() bool {
	if w.at == len(w.text) {
		return false
	}
	near := w.nearEnd()
	if near == len(w.text) {
		w.at = near
		return true
	}
	if w.it == nil {
		w.it = sentences.FromString("")
	}
	w.it.SetText(w.text[near:])
	w.it.Next()
	w.at = near + w.it.End()
	return true
}

// mayEnd has the ASCII characters that can end a sentence.
var mayEnd = [utf8.RuneSelf]bool{'.': true, '?': true, '!': true, '\n': true, '\r': true}

// nearEnd returns a place from which the rules find the same next boundary as from here. They look at no more than one
// character before what may end a sentence, unless that character is a mark.
func (w *sentenceWalk) nearEnd() int {
	for i := w.at; i < len(w.text); i++ {
		if c := w.text[i]; c >= utf8.RuneSelf || mayEnd[c] {
			return max(w.at, i-1)
		}
	}
	return len(w.text)
}
