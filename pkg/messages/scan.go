package messages

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// scanJSON refuses, before anything recursive looks at a JSON text, nesting that is too deep and what
// decoders would silently replace: invalid UTF-8 and halves of surrogate pairs. It does not check the
// grammar. field names the text in the error.
func scanJSON(field string, data []byte) error {
	if !utf8.Valid(data) {
		return Invalid(field, "is not valid UTF-8")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Invalid(field, "is empty")
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			n, ok := escape(data[i:])
			if !ok {
				return Invalid(field, "holds half of a surrogate pair")
			}
			i += n - 1
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxJSONDepth {
				return Invalid(field, fmt.Sprintf("is nested deeper than %d levels", MaxJSONDepth))
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// escape returns the length of the escape sequence b starts with, and whether it stands for text. A
// malformed one is left to the decoder.
func escape(b []byte) (n int, ok bool) {
	r, isHex := hexEscape(b)
	switch {
	case !isHex:
		return 2, true
	case !utf16.IsSurrogate(r):
		return 6, true
	}
	low, _ := hexEscape(b[6:])
	return 12, utf16.DecodeRune(r, low) != unicode.ReplacementChar
}

// hexEscape reads \uXXXX.
func hexEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
