package chunk

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/clipperhouse/uax29/v2/sentences"
)

func sentenceEnds(text string) []int {
	var ends []int
	for w := (sentenceWalk{text: text}); w.next(); {
		ends = append(ends, w.at)
	}
	return ends
}

func plainSentenceEnds(text string) []int {
	var ends []int
	for it := sentences.FromString(text); it.Next(); {
		ends = append(ends, it.End())
	}
	return ends
}

func requireSameSentences(t *testing.T, text string) {
	t.Helper()
	if got, want := sentenceEnds(text), plainSentenceEnds(text); !slices.Equal(got, want) {
		t.Fatalf("%q: got sentences to %v, want %v", text, got, want)
	}
}

func TestSentencesEndWhereTheRulesSay(t *testing.T) {
	t.Parallel()
	kinds := []string{
		"a", "Z", "7", ".", "?", "!", ",", ":", ";", "-", "'", "\"", "(", ")", " ", "\t", "\v", "\f", "\r", "\n", "\x00", "\x7f",
		"é", "\u0301", "\u200d", "\u0085", "\u2029", "。", "\u00a0", "\xff", "\xe4\xb8",
	}
	var try func(text string, depth int)
	try = func(text string, depth int) {
		requireSameSentences(t, text)
		for _, k := range kinds {
			if depth > 0 {
				try(text+k, depth-1)
			}
		}
	}
	try("", 3)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range rnd.IntN(24) {
			b.WriteString(kinds[rnd.IntN(len(kinds))])
		}
		requireSameSentences(t, b.String())
	}
}

func FuzzSentences(f *testing.F) {
	f.Add("One, e.g. this. Two?! \"Three.\" (Four) 5.6 v. Seven\r\nand é\u0301. eight。nine")
	f.Fuzz(requireSameSentences)
}
