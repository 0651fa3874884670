package lexical

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// shortcuts are tables that tell quickly what the general code would say. They are made by asking that code
// once about every character, so they cannot differ from it, and whatever they do not know goes its way. An
// analyzer without them gives the same output.
type shortcuts struct {
	classes [0x800]class   // of the characters of one or two bytes
	settled [0x1000]uint16 // a bit for each character of the BMP that stays as it is in cleaned text
	quiet   [256]uint8     // by first byte: the length of a character if cleaning keeps all that begin so
}

// class says what a character does to the word before it, by UAX #29.
type class uint8

const (
	letter     class = 1 << iota // carries on any word; not Hebrew, which has rules of its own
	digit                        // carries on any word
	underscore                   // carries on any word
	midLetter                    // carries on a word between two letters
	midDigit                     // carries on a word between two digits
	unknown                      // ask the general code
	breaks     class = 0         // never carries on

	wordClass = letter | digit | underscore
	midShift  = 3 // midLetter>>midShift is letter, midDigit>>midShift is digit
)

func newShortcuts() *shortcuts {
	t := &shortcuts{}
	for r := range rune(len(t.classes)) {
		t.classes[r] = classOf(r)
	}
	for lead := 0xC2; lead <= 0xEF; lead++ {
		t.quiet[lead] = quietLength(byte(lead))
	}
	for r := rune(1); r <= 0xFFFF; r++ {
		if isSettled(r) {
			t.settled[r>>4] |= 1 << (r & 15)
		}
	}
	return t
}

// classOf returns the class of r. Of characters beyond ASCII only letters are known.
func classOf(r rune) class {
	s := string(r)
	switch {
	case r >= utf8.RuneSelf:
		if isOneWord("a:"+s) && !isOneWord(s+`"`+s) {
			return letter
		}
		return unknown
	case !isWordByte(byte(r)):
		c := breaks
		if isOneWord("a" + s + "a") {
			c |= midLetter
		}
		if isOneWord("1" + s + "1") {
			c |= midDigit
		}
		return c
	case isOneWord("a:" + s):
		return letter
	case isOneWord("1," + s):
		return digit
	}
	return underscore
}

func isOneWord(text string) bool {
	it := words.FromString(text)
	return it.Next() && it.End() == len(text)
}

// quietLength returns the length of the characters that begin with the byte lead when every one of them is
// kept by [edit.clean], else 0; also 0 when not any continuation bytes may follow.
func quietLength(lead byte) uint8 {
	if lead == 0xE0 || lead == 0xED {
		return 0
	}
	first, last, n := rune(lead&0x1F)<<6, rune(lead&0x1F)<<6|0x3F, uint8(2)
	if lead >= 0xE0 {
		first, last, n = rune(lead&0xF)<<12, rune(lead&0xF)<<12|0xFFF, 3
	}
	for r := first; r <= last; r++ {
		if _, stays := cleaned(r, int(n)); !stays {
			return 0
		}
	}
	return n
}

// isSettled says whether r is in NFKC wherever it stands, apart from marks behind it. A text of such
// characters alone is in NFKC.
func isSettled(r rune) bool {
	s := string(r)
	return norm.NFKC.IsNormalString(s) && norm.NFKC.PropertiesString(s).BoundaryBefore()
}

// passes says for sure that the byte at offset i of text is no word, nor does anything behind it belong to it.
// White space and the like may take along what comes behind, but nothing in ASCII that matters.
func (t *shortcuts) passes(text string, i int) bool {
	return t != nil && text[i] < utf8.RuneSelf && t.classes[text[i]]&wordClass == 0 &&
		(i+1 == len(text) || text[i+1] < utf8.RuneSelf)
}

// wordEnd returns the end of the word that begins at offset i of text; 0 when it does not know.
func (t *shortcuts) wordEnd(text string, i int) int {
	c, n := t.class(text, i)
	if c&wordClass == 0 {
		return 0
	}
	return t.carryOn(text, i+n, c)
}

// carryOn returns the end of a word whose characters before offset i are known, the last of them being of
// class before; 0 when it does not know.
func (t *shortcuts) carryOn(text string, i int, before class) int {
	for i < len(text) {
		c, n := t.class(text, i)
		switch {
		case c == unknown:
			return 0
		case c&wordClass != 0:
			i, before = i+n, c
			continue
		case c>>midShift&before == 0 || i+n == len(text):
			return i
		}
		behind, m := t.class(text, i+n)
		if behind == unknown {
			return 0
		}
		if behind != before {
			return i
		}
		i += n + m
	}
	return i
}

// class returns the class of the character at offset i of text and its length.
func (t *shortcuts) class(text string, i int) (class, int) {
	b := text[i]
	if b < utf8.RuneSelf {
		return t.classes[b], 1
	}
	if b >= 0xE0 || i+1 == len(text) {
		return unknown, 0
	}
	return t.classes[rune(b&0x1F)<<6|rune(text[i+1]&0x3F)], 2
}

// composedEnd does what norm.NFKC.QuickSpanString does with the text, which is valid UTF-8, from offset i on:
// it returns the end of what is in NFKC for sure. Only what stands around characters that are not settled is
// shown to that function, which is slow.
func (t *shortcuts) composedEnd(text string, i int) int {
	if t == nil {
		return i + norm.NFKC.QuickSpanString(text[i:])
	}
	for {
		start := i
		if i = t.settledEnd(text, i); i == len(text) {
			return i
		}
		if i > start { // a mark may change the character before it
			_, n := utf8.DecodeLastRuneInString(text[:i])
			start = i - n
		}
		i = t.unsettledEnd(text, i)
		if n := norm.NFKC.QuickSpanString(text[start:i]); n < i-start {
			return start + n
		}
	}
}

// settledEnd returns the end of the settled characters from offset i of text on.
func (t *shortcuts) settledEnd(text string, i int) int {
	for i < len(text) {
		n, settled := t.settledAt(text, i)
		if !settled {
			break
		}
		i += n
	}
	return i
}

// unsettledEnd returns the offset of the next settled character from offset i of text on.
func (t *shortcuts) unsettledEnd(text string, i int) int {
	for i < len(text) {
		n, settled := t.settledAt(text, i)
		if settled {
			break
		}
		i += n
	}
	return i
}

// settledAt returns the length of the character at offset i of text, and whether it is settled.
func (t *shortcuts) settledAt(text string, i int) (n int, settled bool) {
	switch b := text[i]; {
	case b < utf8.RuneSelf:
		return 1, b != 0
	case b < 0xE0:
		return 2, t.isSettled(rune(b&0x1F)<<6 | rune(text[i+1]&0x3F))
	case b < 0xF0:
		return 3, t.isSettled(rune(b&0xF)<<12 | rune(text[i+1]&0x3F)<<6 | rune(text[i+2]&0x3F))
	}
	return 4, false
}

func (t *shortcuts) isSettled(r rune) bool { return t.settled[r>>4]>>(r&15)&1 != 0 }

// quietEnd returns the end of the characters from offset i of text that cleaning keeps for sure.
func (t *shortcuts) quietEnd(text string, i int) int {
	if t == nil {
		return i
	}
	for i < len(text) {
		b := text[i]
		if b < utf8.RuneSelf && b != 0 {
			i++
			continue
		}
		switch n := t.quiet[b]; {
		case n == 2 && i+1 < len(text) && isContinuation(text[i+1]):
			i += 2
		case n == 3 && i+2 < len(text) && isContinuation(text[i+1]) && isContinuation(text[i+2]):
			i += 3
		default:
			return i
		}
	}
	return i
}

func isContinuation(b byte) bool { return b&0xC0 == 0x80 }
