package lexical

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plainDocument is what a builder has to make of tokens that keep within the limits, written down simply.
func plainDocument(tokens []Token) Document {
	places := map[string][]Position{}
	length := 0
	for _, t := range tokens {
		if t.Kind == Word || t.Kind == Unigram {
			length++
		}
		p := Position{Pos: uint16(t.Position), Weight: WeightD}
		if !slices.Contains(places[t.Term], p) {
			places[t.Term] = append(places[t.Term], p)
		}
	}
	d := Document{Length: length}
	for term, positions := range places {
		d.Lexemes = append(d.Lexemes, Lexeme{Term: term, Positions: positions})
	}
	slices.SortFunc(d.Lexemes, func(x, y Lexeme) int { return strings.Compare(x.Term, y.Term) })
	return d
}

func TestBuilderGathersAndSorts(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 8))
	b := newBuilder(newTermHash())
	alphabets := []string{"ab", "abcdefghijklmnopqrstuvwxyz", "的一是不了人我在有他", "aé的\U0001F600"}
	for round := range 200 {
		alphabet := []rune(alphabets[round%len(alphabets)])
		prefix := strings.Repeat("same", rnd.IntN(3))
		tokens := make([]Token, rnd.IntN(900))
		for i := range tokens {
			term := []rune(prefix)
			for range 1 + rnd.IntN(9) {
				term = append(term, alphabet[rnd.IntN(len(alphabet))])
			}
			tokens[i] = Token{Term: string(term), Position: 1 + i/2, Kind: Kind(rnd.IntN(5))}
		}
		b.begin(rnd.IntN(len(tokens) + 1))
		for i := range tokens {
			b.add(&tokens[i], 0, WeightD)
		}
		if got, want := b.document(), plainDocument(tokens); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
	}
}

func TestSpreadSortSorts(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(9, 10))
	var spare []uint64
	for round := range 600 {
		keys := make([]uint64, rnd.IntN(1<<(round%12)+1))
		for i := range keys {
			switch round % 4 {
			case 0:
				keys[i] = rnd.Uint64()
			case 1: // all together but for one far away
				keys[i] = rnd.Uint64N(1 << 10)
			case 2:
				keys[i] = 1<<63 | rnd.Uint64N(8)<<50 | rnd.Uint64N(1<<16)
			case 3:
				keys[i] = uint64(len(keys)-i) << (round % 40)
			}
		}
		if round%4 == 1 && len(keys) > 0 {
			keys[0] = ^uint64(0)
		}
		want := slices.Clone(keys)
		slices.Sort(want)
		if spare = spreadSort(keys, spare); !slices.Equal(keys, want) {
			t.Fatalf("round %d: got %v, want %v", round, keys, want)
		}
	}
}

func TestTermTableTellsCollidingTermsApart(t *testing.T) {
	t.Parallel()
	var table termTable
	for round := range 3 {
		table.reset(round * 100)
		for i := range 1000 {
			term, hash := fmt.Sprint("term", i), uint32(i%3)<<30
			n, slot := table.find(term, hash)
			if n != -1 || table.insert(term, hash, slot) != int32(i) {
				t.Fatalf("term %d: got %d at the first look, want -1", i, n)
			}
		}
		for i := range 1000 {
			if n, _ := table.find(fmt.Sprint("term", i), uint32(i%3)<<30); n != int32(i) {
				t.Fatalf("term %d: got number %d", i, n)
			}
		}
		table.forget()
	}
}

// TestNearForgetsButDoesNotErr looks up far more words than a near holds.
func TestNearForgetsButDoesNotErr(t *testing.T) {
	t.Parallel()
	a := newLex1()
	c := new(near)
	for i := range 3 * len(c) {
		word := fmt.Sprintf("Word_%dS", i%(2*len(c)+7))
		if i%2 == 0 {
			word = strings.Repeat("x", i%20) + fmt.Sprint(i/40)
		}
		if got, want := *c.get(a, word), a.analyseWord(word); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", word, got, want)
		}
	}
}
