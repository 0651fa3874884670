package parse

import (
	"unicode"
	"unicode/utf8"
)

// score is the mean weight of the characters beyond ASCII, below zero when the bytes are no text in
// this charset, and the text it gives.
func (c candidate) score(sample []byte) (float64, []byte) {
	text, err := c.enc.NewDecoder().Bytes(sample)
	if err != nil {
		return -1, nil
	}
	common := c.weights()
	t := tally{seen: map[rune]bool{}}
	before := ' '
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		at += size
		next, _ := utf8.DecodeRune(text[at:])
		if t.add(r); r >= utf8.RuneSelf && r != utf8.RuneError {
			t.sum += c.weight(r, before, next, common)
			t.letters += boolInt(unicode.In(r, c.script...))
		}
		before = r
	}
	if t.count == 0 || t.letters == 0 && c.script[0] != unicode.Latin || t.faults > 2 && t.faults*200 > t.count || t.monotone(c) {
		return -1, text
	}
	return t.sum/float64(t.count) + c.prior - float64(t.faults)/float64(t.count), text
}

// weights gives every common character its weight. Alphabets are used up by any text: their rarer
// letters weigh less.
func (c candidate) weights() map[rune]float64 {
	out := make(map[rune]float64, len(c.common))
	total := utf8.RuneCountInString(c.common)
	for at, r := range []rune(c.common) {
		out[r] = 1
		if !c.wide && c.script[0] != unicode.Latin {
			out[r] = 1 - 0.6*float64(at)/float64(total)
		}
	}
	return out
}

// tally counts the characters of a sample.
type tally struct {
	sum                float64
	all, count, faults int // characters; those beyond ASCII; those not valid
	letters            int // beyond ASCII, of the script
	run, longest       int // letters without anything between them
	seen               map[rune]bool
}

func (t *tally) add(r rune) {
	t.all++
	t.run++
	if !wordRune(r) {
		t.run = 0
	}
	t.longest = max(t.longest, t.run)
	switch {
	case r == utf8.RuneError:
		t.faults++
	case r >= utf8.RuneSelf:
		t.count++
		t.seen[r] = true
	}
}

// monotone reports what no language looks like: few letters again and again, or words without end.
func (t *tally) monotone(c candidate) bool {
	const many, longWord = 30, 150
	if t.count > many && t.count*2 > t.all && len(t.seen) < 6 {
		return true
	}
	return !c.wide && c.script[0] != unicode.Thai && t.longest > longWord
}

func (c candidate) weight(r, before, next rune, common map[rune]float64) float64 {
	lower := unicode.ToLower(r)
	letter := unicode.In(r, c.script...)
	switch {
	case c.script[0] == unicode.Thai && misplaced(r, before, next):
		return -1
	case c.wide && common[r] > 0:
		return 1
	case c.wide && letter:
		return c.rest
	case c.wide:
		return wideOther(r)
	case unicode.IsLetter(r) && !letter:
		return -0.5
	case letter || unicode.IsMark(r):
		return c.letter(r, before, next, common[lower])
	case wordRune(before) && wordRune(next) && r != '’' && r != '‘' && r != '·' && r != '\u00ad' && r != '–' && r != '—':
		return -1 // a symbol inside a word
	}
	return mark(r)
}

// letter weighs a letter of the script by how common it is and by its case among its neighbours.
func (c candidate) letter(r, before, next rune, common float64) float64 {
	if c.script[0] != unicode.Latin && (asciiLetter(before) || asciiLetter(next)) {
		return -1 // two scripts in a word
	}
	if unicode.IsUpper(r) && unicode.IsLower(before) {
		return -1
	}
	if unicode.IsLower(r) && unicode.IsUpper(before) && unicode.IsUpper(next) {
		return -0.5
	}
	w := c.rest
	if common > 0 {
		w = common
	}
	if unicode.IsUpper(r) && unicode.IsUpper(before) {
		w -= 0.2
	}
	if unicode.IsUpper(r) && !unicode.IsUpper(next) && wordRune(next) {
		w *= 0.9
	}
	if c.script[0] == unicode.Latin && before >= utf8.RuneSelf && next >= utf8.RuneSelf && wordRune(before) && wordRune(next) {
		w -= 1 // three accented letters in a row are another charset's letters
	}
	return w
}

// misplaced reports a Thai vowel or tone without the consonant it needs.
func misplaced(r, before, next rune) bool {
	consonant := func(r rune) bool { return r >= 'ก' && r <= 'ฮ' }
	switch {
	case r >= 'เ' && r <= 'ไ':
		return !consonant(next)
	case r == 'ั', r >= 'ิ' && r <= 'ฺ':
		return !consonant(before)
	case r >= '็' && r <= '๎':
		return !consonant(before) && (before < 'ั' || before > 'ฺ')
	}
	return false
}

// distinct counts the different characters beyond ASCII.
func distinct(text []byte) int {
	seen := map[rune]bool{}
	for _, r := range string(text) {
		if r >= utf8.RuneSelf {
			seen[r] = true
		}
	}
	return len(seen)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func asciiLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// mark weighs what is no letter: quotes, dashes and signs that texts use, against the rest.
func mark(r rune) float64 {
	switch r {
	case '’', '‘', '“', '”', '„', '«', '»', '–', '—', '…', '•', '·', '€', '°', '§', '©', '®', '™', '№', '\u00a0', '£', '×', '²', '³', '½', '¼', '¡', '¿', 'º', 'ª', '،', '؟', '؛', '\u200c':
		return 0.6
	}
	if unicode.IsControl(r) {
		return -1
	}
	return -0.3
}

// wideOther weighs characters of an East Asian charset that are not in its language's script.
func wideOther(r rune) float64 {
	switch {
	case r >= 0x3000 && r <= 0x3020, r >= 0xff01 && r <= 0xff5e, r == '“', r == '”', r == '‘', r == '’', r == '…', r == '—', r == '·', r == '、', r == '。', r == '・', r == 'ー':
		return 0.7
	case r >= 0x2460 && r <= 0x24ff, r >= 0x2190 && r <= 0x21ff, r >= 0x25a0 && r <= 0x26ff, r >= 0x391 && r <= 0x3c9:
		return 0.3
	case unicode.In(r, unicode.Hiragana, unicode.Katakana), r >= 0xff61 && r <= 0xff9f:
		return 0.1
	case unicode.In(r, unicode.Han):
		return 0.2 // in Korean text
	case r >= 0x20000 && r < 0x30000:
		return 0.2
	}
	return -0.5
}
