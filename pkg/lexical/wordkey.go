package lexical

import (
	"encoding/binary"
	"math/bits"
)

// keyBytes is the longest word that has a key.
const keyBytes = 16

// wordKey is a word of 1 to keyBytes bytes, filled up with NUL, which no word holds.
type wordKey struct{ first, second uint64 } // little-endian

// newWordKey returns the key of a word; zero when it is too long for one.
func newWordKey(word string) wordKey {
	switch n := len(word); {
	case n <= 8:
		return wordKey{first: padded(word)}
	case n <= keyBytes:
		return wordKey{first: padded(word), second: padded(word[8:])}
	}
	return wordKey{}
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
