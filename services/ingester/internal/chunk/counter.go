package chunk

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// Counter counts the tokens of a model. Implementations are safe for concurrent use.
type Counter interface {
	Count(text string) int
}

var (
	_ Counter = Estimator{}
	_ Counter = tiktoken{}
)

// Estimator bounds the tokens of SentencePiece vocabularies such as XLM-R's (the e5 models) from
// above: one a CJK character, one a punctuation mark, two for three digits or capitals, one for three
// other bytes. A run of white space costs a third, because those models collapse it. Measured against
// the e5 vocabulary, real counts are 0.6 to 0.75 of it for prose, English and Chinese, 0.8 to 0.9 for
// tables, JSON and program text; only random base64 comes out over it, by a seventh.
type Estimator struct{}

// Weights in thirds of a token.
const (
	weightByte    = 1
	weightCapital = weightDigit
	weightDigit   = 2
	weightMark    = 3
	weightWide    = 3
)

// Count never splits work by context: counts of parts add up to at least the count of the whole.
func (Estimator) Count(text string) int {
	thirds, space := 0, uint64(0) // space: 1 when the last character is white space, else 0
	for i := 0; i < len(text); {
		n, size := 0, 1
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			n, space = runeWeight(r, size), 0
		} else if n, size, space = eights(text[i:], space); size == 0 {
			n, space = byteWeight(text[i], space)
			size = 1
		}
		thirds += n
		i += size
	}
	return (thirds + 2) / 3
}

// byteWeight returns the weight of the ASCII character c and whether it is white space; before says so of what stands
// before it, 0 or 1.
func byteWeight(c byte, before uint64) (thirds int, space uint64) {
	switch {
	case c >= 'a' && c <= 'z':
		return weightByte, 0
	case c >= 'A' && c <= 'Z':
		return weightCapital, 0
	case c <= ' ':
		return weightByte * int(1-before), 1
	case c >= '0' && c <= '9':
		return weightDigit, 0
	}
	return weightMark, 0
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// eights does what byteWeight does for the ASCII characters that text begins with, eight at once, and returns how many
// they are. Sets of eight are held as the high bits of their bytes; adding to seven bits moves what is at least a
// bound into the eighth.
func eights(text string, before uint64) (thirds, size int, space uint64) {
	for ; size+8 <= len(text); size += 8 {
		b := binary.LittleEndian.Uint64([]byte(text[size : size+8]))
		if b&highBits != 0 {
			break
		}
		small := b << 2 // 0x20 tells small letters from capitals
		lower := b | 0x20*eachByte
		letters := (lower + (0x80-'a')*eachByte) &^ (lower + (0x7F-'z')*eachByte)
		digits := (b + (0x80-'0')*eachByte) &^ (b + (0x7F-'9')*eachByte)
		spaces := ^(b + (0x7F-' ')*eachByte) & highBits
		light := letters&small | spaces&^(spaces<<8|before<<7)
		medium := letters&^small | digits
		thirds += weightMark*8 - weightMark*bits.OnesCount64((letters|digits|spaces)&highBits) +
			weightByte*bits.OnesCount64(light&highBits) + weightDigit*bits.OnesCount64(medium&highBits)
		before = spaces >> 63
	}
	return thirds, size, before
}

func runeWeight(r rune, size int) int {
	if wide(r) {
		return weightWide
	}
	return weightByte * size
}

// wide reports characters that are words or syllables by themselves: Han, kana, Hangul and their
// punctuation.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x11ff, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7ff,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe4f, r >= 0xff00 && r <= 0xffef, r >= 0x20000 && r <= 0x3ffff:
		return true
	}
	return false
}

// CounterFor gives the exact counter of an OpenAI model, and the Estimator for every other name.
// Building a vocabulary takes a moment: keep the counter.
func CounterFor(model string) (Counter, error) {
	encoding, ok := encodingOf(model)
	if !ok {
		return Estimator{}, nil
	}
	codec, err := tokenizer.Get(encoding)
	if err != nil {
		return nil, fmt.Errorf("load tokens of %s: %w", encoding, err)
	}
	return tiktoken{codec: codec}, nil
}

// SameCounter reports whether two models count alike, so that chunks cut for one fit the other. The empty name is
// that of no model.
func SameCounter(a, b string) bool {
	x, known := encodingOf(a)
	y, other := encodingOf(b)
	return known == other && x == y
}

// encodingOf finds a model by the longest prefix of its name.
func encodingOf(model string) (tokenizer.Encoding, bool) {
	model = strings.TrimPrefix(strings.ToLower(model), "openai/")
	for _, known := range []struct {
		prefix   string
		encoding tokenizer.Encoding
	}{
		{"text-embedding-3-", tokenizer.Cl100kBase},
		{"text-embedding-ada-002", tokenizer.Cl100kBase},
		{"gpt-3.5", tokenizer.Cl100kBase},
		{"gpt-4o", tokenizer.O200kBase},
		{"gpt-4.1", tokenizer.O200kBase},
		{"gpt-4", tokenizer.Cl100kBase},
		{"gpt-5", tokenizer.O200kBase},
		{"o1", tokenizer.O200kBase},
		{"o3", tokenizer.O200kBase},
		{"o4", tokenizer.O200kBase},
	} {
		if strings.HasPrefix(model, known.prefix) {
			return known.encoding, true
		}
	}
	return "", false
}

type tiktoken struct{ codec tokenizer.Codec }

// Count counts by the estimate where the codec refuses the text; it does not refuse valid UTF-8.
func (t tiktoken) Count(text string) int {
	n, err := t.codec.Count(text)
	if err != nil {
		return max(Estimator{}.Count(text), len(text))
	}
	return n
}
