package lexical

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// withoutShortcuts returns an analyzer that takes no shortcut: what it says is right by definition.
func withoutShortcuts() *Analyzer {
	a := newLex1()
	a.short = nil
	return a
}

// requireSame fails when the two analyzers differ on text in anything a caller sees.
func requireSame(t *testing.T, quick, plain *Analyzer, text string) {
	t.Helper()
	if got, want := quick.Analyze(text), plain.Analyze(text); !slices.Equal(got, want) {
		t.Fatalf("%q: got tokens %v, want %v", text, got, want)
	}
	context := text[:len(text)/3]
	if got, want := quick.Document(context, text), plain.Document(context, text); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got document %v, want %v", text, got, want)
	}
	if got, want := quick.Query(text), plain.Query(text); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got query %v, want %v", text, got, want)
	}
}

func TestShortcutsChangeNothing(t *testing.T) {
	t.Parallel()
	quick, plain := newLex1(), withoutShortcuts()
	texts := slices.Concat(corpusLines(t), randomTexts(t, 2000), scriptTexts(2000), limitTexts())
	step := 1
	if raceEnabled {
		step = 13
	}
	for i := 0; i < len(texts); i += step {
		requireSame(t, quick, plain, texts[i])
	}
}

// scriptTexts returns texts of random characters of all scripts, a few scripts each, with ASCII between.
func scriptTexts(n int) []string {
	rnd := rand.New(rand.NewPCG(3, 4))
	tables := make([]*unicode.RangeTable, 0, len(unicode.Scripts)+3)
	for _, name := range slices.Sorted(maps.Keys(unicode.Scripts)) {
		tables = append(tables, unicode.Scripts[name])
	}
	tables = append(tables, unicode.M, unicode.Cf, unicode.P)
	glue := []string{" ", " ", " ", "a", "Ab", "1", "'", ".", ",", ":", ";", "_", "-", "\"", "\n", "\u0301", "\u200d"}
	texts := make([]string, n)
	for i := range texts {
		var some [3]*unicode.RangeTable
		for k := range some {
			some[k] = tables[rnd.IntN(len(tables))]
		}
		var b strings.Builder
		for range rnd.IntN(60) {
			if rnd.IntN(3) == 0 {
				b.WriteString(glue[rnd.IntN(len(glue))])
			} else {
				b.WriteRune(randomRune(rnd, some[rnd.IntN(len(some))]))
			}
		}
		texts[i] = b.String()
	}
	return texts
}

// randomRune returns a character of table.
func randomRune(rnd *rand.Rand, table *unicode.RangeTable) rune {
	n := rnd.IntN(len(table.R16) + len(table.R32))
	if n < len(table.R16) {
		r := table.R16[n]
		return rune(r.Lo) + rune(r.Stride)*rune(rnd.IntN(int((r.Hi-r.Lo)/r.Stride)+1))
	}
	r := table.R32[n-len(table.R16)]
	return rune(r.Lo) + rune(r.Stride)*rune(rnd.IntN(int((r.Hi-r.Lo)/r.Stride)+1))
}

// limitTexts returns words whose length is at a limit of the code, alone, amid others and at the end of a text.
func limitTexts() []string {
	var texts []string
	for _, limit := range []int{1, 8, 16, keyBytes, maxStemBytes, maxWholeBytes, maxMemoKey, MaxTermBytes, maxWordBytes} {
		for n := max(1, limit-2); n <= limit+2; n++ {
			for _, unit := range []string{"a", "running", "9", "aB", "_", "a.", "a'", "ж", "ا", "é", "e\u0301", "a-", "я"} {
				word := strings.Repeat(unit, n/len(unit)+1)[:n]
				for strings.HasSuffix(word, "\xc3") || !utf8.ValidString(word) {
					word = word[:len(word)-1]
				}
				texts = append(texts, word, "x "+word, word+" y", word+"'s", word+", "+word+"7.", "("+word+"\u201d "+word+"é")
			}
		}
	}
	return texts
}

// TestWordsAreCutAlike compares the cuts themselves, on every short text of one character of each kind that
// the rules of UAX #29 tell apart.
func TestWordsAreCutAlike(t *testing.T) {
	t.Parallel()
	kinds := []string{"a", "Z", "7", "_", ".", "'", ",", ":", "\"", " ", "\r", "\n", "-", "é", "ж", "א", "\u0301", "\u200d", "٣", "“"}
	s := newShortcuts()
	var try func(text string, depth int)
	try = func(text string, depth int) {
		requireSameCuts(t, s, text)
		for _, k := range kinds {
			if depth > 0 {
				try(text+k, depth-1)
			}
		}
	}
	try("", 4)
	for a := range byte(utf8.RuneSelf) {
		for b := range byte(utf8.RuneSelf) {
			for _, frame := range []string{"aa", "11", "a1", "_a", "  "} {
				requireSameCuts(t, s, frame[:1]+string([]byte{a, b})+frame[1:])
			}
		}
	}
	for r := range rune(0x3000) {
		requireSameCuts(t, s, "a"+string(r)+"b:"+string(r)+".5"+string(r)+"\""+string(r))
	}
}

func requireSameCuts(t *testing.T, short *shortcuts, text string) {
	t.Helper()
	quick, plain := cuts(short, text), cuts(nil, text)
	if !slices.Equal(quick, plain) {
		t.Fatalf("%q: got words at %v, want %v", text, quick, plain)
	}
}

// cuts returns where the words of text begin and end.
func cuts(short *shortcuts, text string) []int {
	a := &Analyzer{short: short}
	s := newScratch(a)
	p := pass{a: a, s: s, text: text}
	var at []int
	for i := 0; i < len(text); {
		end := 0
		if short.passes(text, i) {
			i++
			continue
		}
		if short != nil {
			end = short.wordEnd(text, i)
		}
		if end == 0 {
			end = p.generalEnd(text, i)
		}
		if b := text[i]; b >= utf8.RuneSelf || isWordByte(b) {
			at = append(at, i, end)
		}
		i = end
	}
	return at
}

func TestKeysOfASCIIWordsAreThoseOfTheirText(t *testing.T) {
	t.Parallel()
	for n := range keyBytes + 3 {
		word := strings.Repeat("aZ09zA", 5)[:n]
		for _, behind := range []string{"", " ", "@", "[", "`", "{", "/", ":", "_", "é", "\x7f", " and more that comes after it"} {
			key, got := asciiKey("<"+word+behind, 1)
			if got == 0 {
				if n > 0 && n < keyBytes && len(behind) > 8 {
					t.Errorf("%q before %q: got no key", word, behind)
				}
				continue
			}
			if got != n || key != newWordKey(word) {
				t.Errorf("%q before %q: got length %d and key %x, want %d and %x", word, behind, got, key, n, newWordKey(word))
			}
		}
	}
	seen := map[wordKey]string{}
	for n := 1; n <= keyBytes; n++ {
		for i := range n {
			word := []byte(strings.Repeat("a", n))
			word[i] = 'b'
			key := newWordKey(string(word))
			if other, ok := seen[key]; ok && other != string(word) {
				t.Errorf("%q and %q have one key", word, other)
			}
			seen[key] = string(word)
		}
	}
}

// TestEveryCharacterIsNormalizedAlike tries every character of the BMP, and some beyond, before and behind
// what may meet it: letters, marks, jamo, broken bytes.
func TestEveryCharacterIsNormalizedAlike(t *testing.T) {
	t.Parallel()
	plain := withoutShortcuts()
	quick := &Analyzer{short: newShortcuts()}
	s, want := newScratch(quick), newScratch(plain)
	step := rune(1)
	if raceEnabled || testing.Short() {
		step = 17
	}
	for r := rune(0); r < 0x20000; r += step {
		c := string(r)
		text := "e" + c + "\u0301\u0323é" + c + "的" + c + c + "가\u11a8 " + c + "\u1161\xe4\xb8"
		got, expected := s.normalize(text, plain.han), want.normalize(text, plain.han)
		if got != expected {
			t.Fatalf("%U: got %q, want %q", r, got, expected)
		}
		for i := range s.edits {
			if !slices.Equal(s.edits[i].spans, want.edits[i].spans) {
				t.Fatalf("%U: step %d: got spans %v, want %v", r, i, s.edits[i].spans, want.edits[i].spans)
			}
		}
	}
}

func TestSettledCharactersAreInNFKCTogether(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	s := newShortcuts()
	for range 3000 {
		var b strings.Builder
		for b.Len() < 200 {
			if r := rune(rnd.IntN(0x10000)); utf8.ValidRune(r) && s.isSettled(r) {
				b.WriteRune(r)
			}
		}
		if text := b.String(); !norm.NFKC.IsNormalString(text) {
			t.Fatalf("%q is not in NFKC", text)
		}
	}
}

// TestShortcutsChangeNothingInCollections compares on real texts: some of each collection that is there.
func TestShortcutsChangeNothingInCollections(t *testing.T) {
	t.Parallel()
	dir := evalDir(t)
	if testing.Short() {
		t.Skip("reads real collections, left out with -short")
	}
	for _, name := range []string{
		"scifact", "cacm", "xquad-en", "xquad-de", "xquad-ru", "xquad-ar", "xquad-es", "xquad-zh", "cmrc2018-zh", "drcd-zhtw",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs := loadRecords(t, filepath.Join(dir, name, "corpus.jsonl.gz"))
			quick, plain := newLex1(), withoutShortcuts()
			some := 120
			if raceEnabled {
				some = 20
			}
			for i := 0; i < len(docs); i += max(1, len(docs)/some) {
				requireSame(t, quick, plain, docs[i].Title+"\n"+docs[i].Text)
			}
		})
	}
}

func TestBrokenBytesAreCleanedAlike(t *testing.T) {
	t.Parallel()
	plain := withoutShortcuts()
	quick := &Analyzer{short: newShortcuts()}
	s, want := newScratch(quick), newScratch(plain)
	for lead := 0xC0; lead <= 0xFF; lead++ {
		for second := 0x70; second <= 0xC8; second++ {
			for _, rest := range []string{"", "\x80", "\xbf", "A", "\xbf\xbf", "\x80\xc3"} {
				text := "a" + string([]byte{byte(lead), byte(second)}) + rest
				if got, expected := s.normalize(text, plain.han), want.normalize(text, plain.han); got != expected {
					t.Fatalf("%q: got %q, want %q", text, got, expected)
				}
			}
		}
	}
}

func TestHanLeadsAreHan(t *testing.T) {
	t.Parallel()
	n := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !isHanLead(string(r)[0]) || r == utf8.RuneError {
			continue
		}
		n++
		if groupOf(r) != cjk || unicode.Is(unicode.M, r) {
			t.Fatalf("%U begins like Han, but is not", r)
		}
	}
	if n != 0x5000 {
		t.Errorf("got %d characters, want U+5000 to U+9FFF", n)
	}
}
