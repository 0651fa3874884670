package messages

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf16"
)

// reader reads a JSON text of valid UTF-8 in one pass. It is strict: what it takes is well-formed, no deeper than
// MaxJSONDepth, and its strings hold whole characters. It says nothing about what it does not take: its methods
// report false, and the text may be wrong or only unusual.
type reader struct {
	data   []byte
	at     int
	depth  int
	shapes shapes
}

// peek skips space and returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	for r.at < len(r.data) {
		c := r.data[r.at]
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		r.at++
	}
	return 0
}

func (r *reader) end() bool { return r.peek() == 0 && r.at == len(r.data) }

// take reads one byte that must be c.
func (r *reader) take(c byte) bool {
	ok := r.peek() == c
	if ok {
		r.at++
	}
	return ok
}

// word reads null, true or false.
func (r *reader) word(w string) bool {
	ok := bytes.HasPrefix(r.data[r.at:], []byte(w))
	if ok {
		r.at += len(w)
	}
	return ok
}

// list reads an array or object; item reads each of its items or members.
func (r *reader) list(open, closing byte, item func() bool) bool {
	if !r.take(open) || r.depth == MaxJSONDepth {
		return false
	}
	r.depth++
	for more := r.peek() != closing; more; more = r.take(',') {
		if !item() {
			return false
		}
	}
	r.depth--
	return r.take(closing)
}

// members reads an object; each reads the value of a key.
func (r *reader) members(each func(key []byte) bool) bool {
	return r.list('{', '}', func() bool {
		key, escaped, ok := r.quoted()
		if escaped {
			key = []byte(unquote(key))
		}
		return ok && r.take(':') && each(key)
	})
}

// skip reads over a value of any kind and returns it.
func (r *reader) skip() (raw []byte, ok bool) {
	c := r.peek()
	from := r.at
	item := func() bool {
		_, ok := r.skip()
		return ok
	}
	switch c {
	case '{':
		ok = r.members(func([]byte) bool { return item() })
	case '[':
		ok = r.list('[', ']', item)
	case '"':
		_, _, ok = r.quoted()
	case 'n':
		ok = r.word("null")
	case 't':
		ok = r.word("true")
	case 'f':
		ok = r.word("false")
	default:
		ok = r.number() != nil
	}
	return r.data[from:r.at], ok
}

// number reads over a number; nil when there is none.
func (r *reader) number() []byte {
	b := r.data[r.at:]
	n := signs(b, "-")
	whole := digits(b[n:])
	if whole == 0 || whole > 1 && b[n] == '0' {
		return nil
	}
	n += whole
	if signs(b[n:], ".") > 0 {
		decimals := digits(b[n+1:])
		if decimals == 0 {
			return nil
		}
		n += 1 + decimals
	}
	if signs(b[n:], "eE") > 0 {
		n++
		n += signs(b[n:], "+-")
		exponent := digits(b[n:])
		if exponent == 0 {
			return nil
		}
		n += exponent
	}
	r.at += n
	return b[:n]
}

// signs is 1 when b begins with one of the characters of set, else 0.
func signs(b []byte, set string) int {
	if len(b) > 0 && strings.IndexByte(set, b[0]) >= 0 {
		return 1
	}
	return 0
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return n
}

// quoted reads over a string and returns what stands between its quotes, and whether there are escape sequences
// to be undone by unquote.
func (r *reader) quoted() (raw []byte, escaped, ok bool) {
	if !r.take('"') {
		return nil, false, false
	}
	from := r.at
	for {
		r.at += plain(r.data[r.at:])
		size := 0
		switch rest := r.data[r.at:]; {
		case len(rest) > 0 && rest[0] == '"':
			r.at++
			return r.data[from : r.at-1], escaped, true
		case len(rest) > 0 && rest[0] == '\\':
			_, size = unescape(rest)
		}
		if size == 0 { // the end, a control character or no escape sequence
			return nil, false, false
		}
		r.at += size
		escaped = true
	}
}

// text reads a string.
func (r *reader) text() (string, bool) {
	raw, escaped, ok := r.quoted()
	if escaped {
		return unquote(raw), ok
	}
	return string(raw), ok
}

// unquote undoes the escape sequences of what quoted has read.
func unquote(raw []byte) string {
	var out strings.Builder
	out.Grow(len(raw))
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			out.Write(raw)
			return out.String()
		}
		out.Write(raw[:n])
		char, size := unescape(raw[n:])
		out.WriteRune(char)
		raw = raw[n+size:]
	}
}

// unescape decodes the escape sequence, or two for a surrogate pair, that b begins with. size is 0 when it is none
// that stands for text.
func unescape(b []byte) (char rune, size int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	}
	char, ok := hexEscape(b)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(char):
		return char, 6
	}
	low, _ := hexEscape(b[6:])
	if char = utf16.DecodeRune(char, low); char == unicode.ReplacementChar {
		return 0, 0
	}
	return char, 12
}

// plain is how many bytes b has before the first quote, backslash or control character: all of them when there
// is none. It looks at eight bytes at a time.
func plain(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if marks := specials(binary.LittleEndian.Uint64(b[n:])); marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

// specials sets the high bit of the first byte of w that ends a plain run, and possibly of later ones.
func specials(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}
