package lexical

import (
	"errors"
	"fmt"
	"sync"
)

// ErrUnknownAnalyzer is returned by [Lookup] for an id that is not in the table.
var ErrUnknownAnalyzer = errors.New("unknown analyzer")

// Default is the id of the analyzer for new generations.
const Default = "lex1"

// analyzers is the table of all analyzers: to add one, write <id>.go and one line here. An entry is never
// changed once released, since the terms it made are stored.
var analyzers = []struct {
	id  string
	get func() *Analyzer
}{
	{id: "lex1", get: sync.OnceValue(newLex1)},
}

// IDs returns the ids of all analyzers in the order of the table.
func IDs() []string {
	ids := make([]string, len(analyzers))
	for i, e := range analyzers {
		ids[i] = e.id
	}
	return ids
}

// Lookup returns the analyzer with the given id, the same one at every call. An id that is not known gives
// an error that wraps [ErrUnknownAnalyzer].
func Lookup(id string) (*Analyzer, error) {
	for _, e := range analyzers {
		if e.id == id {
			return e.get(), nil
		}
	}
	return nil, fmt.Errorf("look up analyzer %q: %w", id, ErrUnknownAnalyzer)
}

// Kind says how a token came about.
type Kind uint8

// The kinds of tokens. Words and unigrams are primary: each has a position of its own and counts in the
// document length. The others stand at the position of the first primary token they cover.
const (
	Word    Kind = iota // a word outside the scripts that are written without spaces
	Part                // a part of an identifier: baz of foo_bar.baz
	Whole               // a compound of several words: e-mail, c++
	Unigram             // one character of Han, kana, Hangul, Thai, Lao, Khmer or Myanmar
	Bigram              // two such characters that stand side by side
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"word", "part", "whole", "unigram", "bigram"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Token is one term at one place of a text.
type Token struct {
	Term     string // never empty, valid UTF-8 without NUL, at most MaxTermBytes
	Position int    // number of the primary token, from 1; never decreases from token to token
	Kind     Kind
	Stop     bool // an English stop word (words and parts only)
	Start    int  // byte offset of the token in the text given
	End      int  // byte offset behind the token
}

// Analyzer makes terms of text. It is got from [Lookup] and safe for concurrent use.
type Analyzer struct {
	id         string
	stop       map[string]bool
	han        *hanFolder
	words      *wordCache
	otherWords *textMemo[analysedWord] // those that words does not know
	wholes     *textMemo[string]
	hash       termHash
	short      *shortcuts // nil takes none: the output is the same
	scratches  sync.Pool
	print      func() string
}

// ID returns the id that the analyzer is looked up with.
func (a *Analyzer) ID() string { return a.id }

// Analyze returns the tokens of text in order of position. Invalid UTF-8 is skipped, never an error.
func (a *Analyzer) Analyze(text string) []Token {
	return a.Append(nil, text)
}

// Append appends the tokens of text to dst and returns the extended slice. Positions start at 1 whatever
// dst holds.
func (a *Analyzer) Append(dst []Token, text string) []Token {
	s := a.scratch()
	defer a.release(s)
	s.begin()
	s.segment(a, s.normalize(text, a.han))
	terms := s.terms()
	for i := range s.tokens {
		t := &s.tokens[i]
		start, end := s.original(int(t.start), int(t.end))
		dst = append(dst, Token{
			Term: terms.next(&t.term), Position: int(t.position), Kind: t.kind, Stop: t.stop, Start: start, End: end,
		})
	}
	return dst
}

func (a *Analyzer) scratch() *scratch {
	return a.scratches.Get().(*scratch)
}

// maxPooledTokens keeps the memory of an exceptionally long text from staying in the pool.
const maxPooledTokens = 1 << 13

func (a *Analyzer) release(s *scratch) {
	if cap(s.tokens) > maxPooledTokens {
		*s = *newScratch(a)
	}
	s.forget()
	a.scratches.Put(s)
}
