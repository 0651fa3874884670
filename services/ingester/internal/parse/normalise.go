package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalise gives the text that offsets refer to: NFC, line ends as LF, no control characters but tab
// and LF, valid UTF-8. Vertical tab, form feed and NEL end a line in their sources and become LF.
func normalise(text string) string {
	if plain(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\r':
			if i+1 == len(text) || text[i+1] != '\n' {
				out.WriteByte('\n')
			}
		case r == '\v' || r == '\f' || r == '\u0085':
			out.WriteByte('\n')
		case r == '\t' || r == '\n':
			out.WriteByte(byte(r))
		case unicode.IsControl(r):
		default:
			out.WriteRune(r) // U+FFFD for a broken byte
		}
		i += size
	}
	return norm.NFC.String(out.String())
}

// plain reports that text is ASCII without anything to change: the common case, without a copy.
func plain(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// collapse turns runs of white space into one space, as a browser shows text.
func collapse(text string) string { return strings.Join(strings.Fields(text), " ") }

func hasWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}
