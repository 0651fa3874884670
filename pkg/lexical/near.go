package lexical

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

const (
	// A near takes 1 MB: about the second-level cache of a processor, and enough for nine in ten words of
	// English abstracts.
	nearPairBits = 13
	nearKeyBytes = 24
)

// near is a cache of short analysed words in front of the shared memo that belongs to one scratch: a word is
// found with one look at memory and no atomic operation. The words of one hash value share a pair of places,
// and the older one makes room. A nil near keeps nothing.
type near [1 << nearPairBits][2]keyedWord

// keyedWord is a short word and what it becomes. It takes exactly one cache line.
type keyedWord struct {
	key  wordKey // zero: empty
	word analysedWord
}

// wordKey is a word of 1 to nearKeyBytes bytes, filled up with NUL, which no word holds.
type wordKey struct{ first, second, third uint64 }

func newWordKey(word string) wordKey {
	switch n := len(word); {
	case n <= 8:
		return wordKey{first: padded(word)}
	case n <= 16:
		return wordKey{first: padded(word[:8]), second: padded(word[8:])}
	default:
		return wordKey{first: padded(word[:8]), second: padded(word[8:16]), third: padded(word[16:])}
	}
}

// padded returns the first eight bytes of s, filled up with NUL, as a little-endian number.
func padded(s string) uint64 {
	switch n := len(s); {
	case n >= 8:
		return binary.LittleEndian.Uint64([]byte(s[:8]))
	case n >= 4: // the two halves may overlap
		return uint64(binary.LittleEndian.Uint32([]byte(s[:4]))) |
			uint64(binary.LittleEndian.Uint32([]byte(s[n-4:])))<<(8*(n-4))
	case n > 0: // so may these three
		return uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1))
	}
	return 0
}

// asciiKey returns the key and the length of the ASCII letters and digits at offset i of text; 0 when there
// are none, more than fit, or when the text ends soon behind them.
func asciiKey(text string, i int) (wordKey, int) {
	first, n := asciiEight(text, i)
	if n < 8 {
		return wordKey{first: first}, n
	}
	second, m := asciiEight(text, i+8)
	if m < 8 {
		return wordKey{first: first, second: second}, n + m
	}
	third, l := asciiEight(text, i+16)
	if l < 8 {
		return wordKey{first: first, second: second, third: third}, n + m + l
	}
	return wordKey{}, 0
}

// asciiEight returns the ASCII letters and digits among the eight bytes at offset i of text, up to the first
// byte that is something else, and how many they are. A text that is too short counts as eight of them.
func asciiEight(text string, i int) (uint64, int) {
	if i+8 > len(text) {
		return 0, 8
	}
	b := binary.LittleEndian.Uint64([]byte(text[i : i+8]))
	n := bits.TrailingZeros64(^alphanumerics(b)&highBits) &^ 7 // 64 when there is nothing else
	return b & (1<<n - 1), n / 8
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// alphanumerics returns b with the high bit set in those of its eight bytes that are ASCII letters or digits;
// the other bits mean nothing. Adding to seven bits moves what is at least a bound into the eighth.
func alphanumerics(b uint64) uint64 {
	low := b &^ highBits
	lower := low | 0x20*eachByte
	letters := (lower + (0x80-'a')*eachByte) &^ (lower + (0x7F-'z')*eachByte)
	digits := (low + (0x80-'0')*eachByte) &^ (low + (0x7F-'9')*eachByte)
	return (letters | digits) &^ b
}

// get returns what word becomes, from memory or from a. The result is valid until the next call.
func (c *near) get(a *Analyzer, word string) *analysedWord {
	if len(word) > nearKeyBytes {
		return a.longWords.get(word, a.analyseWord)
	}
	return c.lookUp(a, word, newWordKey(word))
}

// lookUp does the same for a word whose key is known.
func (c *near) lookUp(a *Analyzer, word string, key wordKey) *analysedWord {
	hash := key.hash()
	if c == nil {
		return &a.shortWord(word, key, hash).word
	}
	pair := &c[hash>>(64-nearPairBits)]
	if pair[0].key == key {
		return &pair[0].word
	}
	if pair[1].key == key {
		return &pair[1].word
	}
	pair[1] = pair[0]
	pair[0] = *a.shortWord(word, key, hash)
	return &pair[0].word
}

// shortWord returns what a word of at most nearKeyBytes becomes, with its key.
func (a *Analyzer) shortWord(word string, key wordKey, hash uint64) *keyedWord {
	is := func(e *keyedWord) bool { return e.key == key }
	return a.words.get(hash, is, func() *keyedWord {
		return &keyedWord{key: key, word: a.analyseWord(strings.Clone(word))}
	})
}

// hash returns a hash of the word. Anyone can make words that collide; in a memo they do no more harm than
// words that were never seen.
func (k wordKey) hash() uint64 {
	high, low := bits.Mul64(k.first^0x9E3779B97F4A7C15, k.second^0xD6E8FEB86659FD93^bits.RotateLeft64(k.third, 23))
	return (high ^ low) * 0xA0761D6478BD642F
}
