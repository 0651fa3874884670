package lexical

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestWordCacheBeginsAnewButDoesNotErr analyses more words than the cache holds, from several goroutines.
func TestWordCacheBeginsAnewButDoesNotErr(t *testing.T) {
	t.Parallel()
	a, plain := newLex1(), withoutShortcuts()
	table := a.words.table.Load()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range len(table.slots) / 25 {
				var b strings.Builder
				for k := range 10 { // half of the words are those of another goroutine too
					fmt.Fprintf(&b, "the %s%d word_%dS Running ", strings.Repeat("x", k), i*8+g*(k%2), i%100)
				}
				a.Document("", b.String())
				if i%40 != g {
					continue
				}
				if got, want := a.Analyze(b.String()), plain.Analyze(b.String()); !slices.Equal(got, want) {
					t.Errorf("%q: got %v, want %v", b.String(), got, want)
					return
				}
			}
		})
	}
	wg.Wait()
	if a.words.table.Load() == table {
		t.Error("the cache was never full")
	}
}

func TestWordCacheFindsWhatItHolds(t *testing.T) {
	t.Parallel()
	a := newLex1()
	for _, c := range []struct {
		word  string
		holds bool
	}{
		{"running", true},
		{"The", true},
		{"Straße", true},
		{"interoperability", true}, // sixteen bytes, its stem has less
		{"0123456789abcdef", false},
		{"internationalize", true},
		{"internationalised", false},
		{"_private", false},
		{"fooBar", false},
		{"___", false},
	} {
		for range 2 {
			a.Document("", c.word)
		}
		cuts := []cutWord{{key: newWordKey(c.word), end: len(c.word)}}
		a.words.lookUp(cuts)
		if got := cuts[0].head != 0; got != c.holds {
			t.Errorf("%s: got %t, want %t", c.word, got, c.holds)
		}
		word := a.analyseWord(c.word)
		if stop := cuts[0].tail&stopMark != 0; c.holds && stop != word.stop {
			t.Errorf("%s: got stop %t, want %t", c.word, stop, word.stop)
		}
		var long longTerms
		found := term{head: cuts[0].head, tail: cuts[0].tail &^ stopMark}
		if want := long.term(word.term); c.holds && found != want {
			t.Errorf("%s: got term %x, want %x", c.word, found, want)
		}
	}
}
