package lexical

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
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
	var got Document
	for round := range 200 {
		alphabet := []rune(alphabets[round%len(alphabets)])
		prefix := strings.Repeat("same", rnd.IntN(5))
		tokens := make([]Token, rnd.IntN(900))
		for i := range tokens {
			term := []rune(prefix)
			for range 1 + rnd.IntN(9) {
				term = append(term, alphabet[rnd.IntN(len(alphabet))])
			}
			tokens[i] = Token{Term: string(term), Position: 1 + i/2, Kind: Kind(rnd.IntN(5))}
		}
		gather(&b, &got, tokens, rnd.IntN(len(tokens)+1))
		requireDocument(t, fmt.Sprint("round ", round), got, plainDocument(tokens))
	}
}

// gather makes d the document of tokens.
func gather(b *builder, d *Document, tokens []Token, about int) {
	var long longTerms
	internal := make([]token, len(tokens))
	for i, t := range tokens {
		internal[i] = token{term: long.term(t.Term), position: int32(t.Position), kind: t.Kind}
	}
	b.begin(about, long)
	for i := range internal {
		b.add(&internal[i], 0, WeightD)
	}
	b.document(d)
}

// requireDocument compares what the fields of documents say.
func requireDocument(t *testing.T, what string, got, want Document) {
	t.Helper()
	if fmt.Sprintf("%v", got.Lexemes) != fmt.Sprintf("%v", want.Lexemes) || got.Length != want.Length || got.Truncated != want.Truncated {
		t.Fatalf("%s: got %v, want %v", what, got, want)
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

func TestBuilderTellsCollidingTermsApart(t *testing.T) {
	t.Parallel()
	b := builder{hash: termHash{seed: maphash.MakeSeed()}} // one hash for all short terms
	for round := range 3 {
		tokens := make([]Token, 2000)
		for i := range tokens {
			tokens[i] = Token{Term: strings.Repeat("long", i%9) + fmt.Sprint("term", i%1000), Position: 1 + i}
		}
		var got Document
		gather(&b, &got, tokens, round*100)
		requireDocument(t, fmt.Sprint("round ", round), got, plainDocument(tokens))
	}
}

// TestTermsAreOrderedAndWrittenAsText compares what is done with numbers with what is done with strings.
func TestTermsAreOrderedAndWrittenAsText(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, unit := range []string{"a", "é", "的", "z9"} {
		for n := 1; n <= 2*shortBytes+1; n++ {
			text := strings.Repeat(unit, n/len(unit)+1)
			texts = append(texts, text, text+"b", "b"+text)
		}
	}
	var long longTerms
	hash := newTermHash()
	for _, x := range texts {
		a := long.term(x)
		if got := string(long.append([]byte("<"), &a)); got != "<"+x || long.length(&a) != len(x) {
			t.Fatalf("%q: got %q of length %d", x, got, long.length(&a))
		}
		for _, y := range texts {
			b := long.term(y)
			if got, want := long.compare(&a, &b), strings.Compare(x, y); got != want || long.equal(&a, &b) != (want == 0) {
				t.Fatalf("compare %q with %q: got %d, want %d", x, y, got, want)
			}
			if x == y && hash.of(&a, long) != hash.of(&b, long) {
				t.Fatalf("%q has two hashes", x)
			}
		}
	}
}
