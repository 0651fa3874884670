package parse

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

func byteOrderMark(data []byte) (encoding.Encoding, string, int) {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "UTF-32LE", 4
	case bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff")):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "UTF-32BE", 4
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "UTF-16LE", 2
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "UTF-16BE", 2
	}
	return nil, "", 0
}

// zeroPattern recognises UTF-16 without a mark: the high bytes of an alphabet are zero and one other
// value; of East Asian text the characters must be common ones.
func zeroPattern(data []byte) (encoding.Encoding, string) {
	const window = 64 << 10
	sample := data[:min(len(data), window)&^1]
	var high [2][256]int // by position in the unit
	for i, c := range sample {
		high[i&1][c]++
	}
	units := len(sample) / 2
	for at, name := range []string{"UTF-16BE", "UTF-16LE"} {
		order := unicode.BigEndian
		if at == 1 {
			order = unicode.LittleEndian
		}
		enc := unicode.UTF16(order, unicode.IgnoreBOM)
		alphabet := 0
		for c := 1; c < 0x20; c++ {
			alphabet = max(alphabet, high[at][c])
		}
		blank := high[at][0]
		if units > 1 && blank > 0 && (blank+alphabet)*10 > units*9 && high[1-at][0]*20 < units && soundUnits(enc, sample) {
			return enc, name
		}
	}
	return guessUTF16(data)
}

// soundUnits reports text without control characters, broken surrogates and private use.
func soundUnits(enc encoding.Encoding, sample []byte) bool {
	text, faults := lenient(enc, sample, "UTF-16")
	odd, all := faults, 0
	for _, r := range text {
		all++
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' || r >= 0xe000 && r <= 0xf8ff || r == 0xfffe {
			odd++
		}
	}
	return odd*100 <= all
}

// utf8Faults counts valid multi-byte characters, places that are not valid, and the bytes there.
func utf8Faults(data []byte) (runs, faults, bad int) {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			faults++
			for bad, at = bad+1, at+1; at < len(data) && data[at]&0xc0 == 0x80; at++ { // the rest of the broken character
				bad++
			}
			continue
		case size > 1:
			runs++
		}
		at += size
	}
	return runs, faults, bad
}

// cutTail reports that nothing is wrong but a character cut off at the end.
func cutTail(data []byte) bool {
	_, at := firstFault(data)
	return at > 0 && len(data)-at < utf8.UTFMax && !utf8.FullRune(data[at:])
}

func firstFault(data []byte) (found bool, at int) {
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return true, at
		}
		at += size
	}
	return false, at
}

// escapes reports a declared 7-bit charset whose escape sequences are there.
func escapes(data []byte, name string) bool {
	return strings.EqualFold(name, "ISO-2022-JP") && bytes.IndexByte(data, 0x1b) >= 0 ||
		strings.EqualFold(name, "HZ-GB-2312") && bytes.Contains(data, []byte("~{"))
}

func trimUTF8Mark(data []byte) []byte {
	if len(data) >= 3 && data[0] == 0xef && data[1] == 0xbb && data[2] == 0xbf {
		return data[3:]
	}
	return data
}

func ascii[T string | []byte](data T) bool {
	for i := range len(data) {
		if data[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
