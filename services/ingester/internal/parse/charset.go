package parse

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"github.com/weir-project/weir/pkg/messages"
)

// decode gives the text of a text file: a byte order mark decides, then valid UTF-8, then the declared
// charset (any WHATWG label). Valid UTF-8 with multi-byte runs beats another declared charset, because
// no other charset looks like it by accident. Guessing undeclared charsets is not done yet.
func decode(data []byte, charset string) (string, []string, error) {
	if enc, cut := byteOrderMark(data); enc != nil {
		text, err := decodeWith(enc, "UTF-16", data[cut:])
		return text, nil, err
	}
	data = trimUTF8Mark(data)
	charset = strings.ToLower(strings.TrimSpace(charset))
	if charset == "" || charset == "utf-8" || charset == "utf8" {
		return validUTF8(data, charset)
	}
	if charset == "us-ascii" || charset == "ascii" { // the index reads it as windows-1252
		return validUTF8(data, charset)
	}
	if utf8.Valid(data) && !ascii(data) {
		return string(data), []string{"the content is UTF-8, not the declared charset"}, nil
	}
	enc, err := htmlindex.Get(charset)
	if ascii(data) && (err != nil || strings.HasPrefix(charset, "utf-16")) {
		return string(data), nil, nil // the declaration cannot matter, or cannot be true
	}
	if err != nil {
		return "", nil, messages.Errorf(messages.CodeInvalidEncoding, "charset %q is not known", clip(charset, 40))
	}
	text, err := decodeWith(enc, charset, data)
	return text, nil, err
}

func validUTF8(data []byte, declared string) (string, []string, error) {
	if utf8.Valid(data) {
		return string(data), nil, nil
	}
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	hint := "; declare the charset if it is another one"
	if declared != "" {
		hint = ""
	}
	return "", nil, messages.Errorf(messages.CodeInvalidEncoding, "the text is not valid UTF-8 at byte %d%s", at, hint)
}

func decodeWith(enc encoding.Encoding, name string, data []byte) (string, error) {
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil || strings.ContainsRune(string(out), utf8.RuneError) {
		return "", messages.Errorf(messages.CodeInvalidEncoding, "the text is not valid %s", clip(name, 40))
	}
	return string(out), nil
}

func byteOrderMark(data []byte) (encoding.Encoding, int) {
	switch {
	case len(data) >= 2 && data[0] == 0xff && data[1] == 0xfe:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), 2
	case len(data) >= 2 && data[0] == 0xfe && data[1] == 0xff:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), 2
	}
	return nil, 0
}

func trimUTF8Mark(data []byte) []byte {
	if len(data) >= 3 && data[0] == 0xef && data[1] == 0xbb && data[2] == 0xbf {
		return data[3:]
	}
	return data
}

func ascii(data []byte) bool {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// clip shortens text from outside for a message and takes its control characters out.
func clip(text string, most int) string {
	text = strings.ReplaceAll(normalise(text), "\n", " ")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// looksBinary reports that decoded text is no text: more than one character in a hundred is a control
// character no text file uses, and more than a stray few.
func looksBinary(text string) bool {
	const window, few = 64 << 10, 8
	if len(text) > window {
		text = text[:window]
	}
	odd := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= ' ' && c != 0x7f, c == '\t', c == '\n', c == '\r', c == '\f', c == '\v', c == '\b', c == 0x1b:
		default:
			odd++
		}
	}
	return odd > few && odd*100 > len(text) || odd > 0 && odd*2 > len(text)
}
