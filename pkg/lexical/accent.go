package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// foldAccents takes the accents off Latin and Greek letters and spells out Latin letters that have no
// accent to lose. word is in lower case and NFKC. Marks of other scripts carry meaning and stay.
func foldAccents(word string) string {
	if isPlainASCII(word) {
		return word
	}
	var b strings.Builder
	base := false // whether the last base letter is Latin or Greek
	for _, r := range norm.NFD.String(word) {
		if unicode.Is(unicode.Mn, r) {
			if !base {
				b.WriteRune(r)
			}
			continue
		}
		base = r < utf8.RuneSelf || unicode.In(r, unicode.Latin, unicode.Greek)
		if spelled := spellOut(r); spelled != "" {
			b.WriteString(spelled)
		} else {
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// spellOut returns the plain spelling of a letter that NFD leaves whole; "" when there is none.
func spellOut(r rune) string {
	switch r {
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ø':
		return "o"
	case 'đ', 'ð':
		return "d"
	case 'ł':
		return "l"
	case 'ħ':
		return "h"
	case 'ı':
		return "i"
	case 'þ':
		return "th"
	case 'ς':
		return "σ"
	}
	return ""
}
