package parse

import (
	"encoding/binary"
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
	for i := odd(text, 0); i < len(text); i = odd(text, i+1) {
		if c := text[i]; c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// odd is where the first byte stands, from i on, that is no printable ASCII; len(text): nowhere. It takes
// eight bytes at a time.
func odd(text string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64([]byte(text[i : i+8]))
		if (w|(w-ones*' ')|(w+ones))&highs != 0 { // a high bit is set, or gets set below space and above ~
			break
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] < 0x7f {
		i++
	}
	return i
}

// collapse turns runs of white space into one space, as a browser shows text.
func collapse(text string) string { return strings.Join(strings.Fields(text), " ") }

func hasWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}
