package chunk

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainCount is what an Estimator counts, written down simply.
func plainCount(text string) int {
	thirds, space := 0, false
	for _, r := range text {
		blank := r <= ' '
		switch {
		case blank && !space:
			thirds += weightByte
		case blank:
		case r >= 'a' && r <= 'z':
			thirds += weightByte
		case r >= 'A' && r <= 'Z':
			thirds += weightCapital
		case r >= '0' && r <= '9':
			thirds += weightDigit
		case r < utf8.RuneSelf:
			thirds += weightMark
		case wide(r):
			thirds += weightWide
		default:
			thirds += weightByte * utf8.RuneLen(r)
		}
		space = blank
	}
	return (thirds + 2) / 3
}

func TestEstimatorCountsAsItIsWrittenDownSimply(t *testing.T) {
	t.Parallel()
	for c := range byte(utf8.RuneSelf) { // every character at every place, beside every other
		for d := range byte(utf8.RuneSelf) {
			text := strings.Repeat(string([]byte{c, d, d, c, 'a'}), 5)
			if got, want := (Estimator{}).Count(text), plainCount(text); got != want {
				t.Fatalf("%q: got %d, want %d", text, got, want)
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("aaazZ  \n\t09.,-\x00\x7féЖ数")
	for range 20_000 {
		text := make([]rune, rnd.IntN(40))
		for i := range text {
			text[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		if got, want := (Estimator{}).Count(string(text)), plainCount(string(text)); got != want {
			t.Fatalf("%q: got %d, want %d", string(text), got, want)
		}
	}
}

func FuzzEstimator(f *testing.F) {
	f.Add("Words, 12 of them; a tail  \n of space. 数 é")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		if got, want := (Estimator{}).Count(text), plainCount(text); got != want {
			t.Fatalf("%q: got %d, want %d", text, got, want)
		}
	})
}
