// Package syntax reads query texts of the syntax "simple": words, "phrases in quotes", prefix*, +required
// and -excluded. It is pure.
//
// A phrase must occur, whether a + stands before it or not. A word without a sign is looked for as in a plain
// query. A backslash takes the meaning from the character behind it. Signs count only at the beginning of
// a word, a star only at its end.
package syntax

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Bounds of a query: clauses of any kind, and prefixes, each of which is looked up by reading all lexemes.
const (
	MaxClauses  = 64
	MaxPrefixes = 4
	// minPrefix is the least length of a prefix of letters without spaces between words being told apart.
	minPrefix = 2
)

// field names the text in errors.
const field = "retrievalQuery.text"

// Query is what a text asks for.
type Query struct {
	Plain    string           // what to look for, without signs, prefixes and what is excluded
	Meaning  string           // the same with prefixes: what to embed
	Clauses  []pgstore.Clause // what must and must not be so
	Prefixes []pgstore.Prefix // terms to be looked up
}

// Parse reads a text. Errors are VALIDATION_ERROR of the query's text.
func Parse(analyzer *lexical.Analyzer, text string) (Query, error) {
	p := parser{analyzer: analyzer}
	words, err := split(text)
	if err != nil {
		return Query{}, err
	}
	if len(words) > MaxClauses && signs(words) > MaxClauses {
		return Query{}, messages.Invalid(field, fmt.Sprintf("has more than %d conditions", MaxClauses))
	}
	for _, w := range words {
		if err := p.add(w); err != nil {
			return Query{}, err
		}
	}
	p.query.Plain, p.query.Meaning = strings.Join(p.plain, "\n"), strings.Join(p.meaning, " ")
	if strings.TrimSpace(p.query.Plain) == "" && len(p.query.Prefixes) == 0 {
		return Query{}, messages.Invalid(field, "says nothing to look for, only what to leave out")
	}
	return p.query, nil
}

// word is a piece of the text.
type word struct {
	text   string
	sign   rune // '+', '-' or 0
	quoted bool
	prefix bool
	at     int // of its first character, from 0
}

func signs(words []word) int {
	n := 0
	for _, w := range words {
		if w.sign != 0 || w.quoted || w.prefix {
			n++
		}
	}
	return n
}

// split cuts a text into words. A quote that is not closed is an error.
func split(text string) ([]word, error) {
	var out []word
	runes := []rune(text)
	for i := 0; i < len(runes); {
		if unicode.IsSpace(runes[i]) {
			i++
			continue
		}
		w := word{at: i}
		if (runes[i] == '+' || runes[i] == '-') && i+1 < len(runes) && !unicode.IsSpace(runes[i+1]) {
			w.sign = runes[i]
			i++
		}
		var ok bool
		if w.quoted = runes[i] == '"'; w.quoted {
			i, ok = w.phrase(runes, i+1)
		} else {
			i, ok = w.bare(runes, i)
		}
		if !ok {
			return nil, messages.Invalid(field, fmt.Sprintf("has a quote at character %d that is not closed", w.at))
		}
		out = append(out, w)
	}
	return out, nil
}

// phrase reads up to the closing quote.
func (w *word) phrase(runes []rune, i int) (end int, ok bool) {
	var b strings.Builder
	for ; i < len(runes); i++ {
		switch {
		case runes[i] == '\\' && i+1 < len(runes):
			i++
		case runes[i] == '"':
			w.text = b.String()
			return i + 1, true
		}
		b.WriteRune(runes[i])
	}
	return i, false
}

// bare reads up to the next white space.
func (w *word) bare(runes []rune, i int) (end int, ok bool) {
	var b strings.Builder
	for ; i < len(runes) && !unicode.IsSpace(runes[i]); i++ {
		last := i+1 == len(runes) || unicode.IsSpace(runes[i+1])
		switch {
		case runes[i] == '\\' && !last:
			i++
		case runes[i] == '*' && last && b.Len() > 0:
			w.prefix = true
			continue
		}
		b.WriteRune(runes[i])
	}
	w.text = b.String()
	return i, true
}

type parser struct {
	analyzer *lexical.Analyzer
	query    Query
	plain    []string
	meaning  []string
}

func (p *parser) add(w word) error {
	steps := p.steps(w.text)
	if len(steps) == 0 { // nothing in it that anything could hold
		return nil
	}
	if w.prefix {
		last := &steps[len(steps)-1]
		last.Prefix = true
		if err := p.prefix(w, *last, len(steps) == 1); err != nil {
			return err
		}
	}
	if w.sign != '-' {
		p.meaning = append(p.meaning, w.text)
	}
	if w.sign != '-' && (!w.prefix || len(steps) > 1) {
		p.plain = append(p.plain, w.text)
	}
	if w.sign != 0 || w.quoted || w.prefix && len(steps) > 1 {
		p.query.Clauses = append(p.query.Clauses, pgstore.Clause{Steps: steps, Exclude: w.sign == '-'})
	}
	return nil
}

// prefix adds the terms that a prefix stands for, unless they are not to be there.
func (p *parser) prefix(w word, last pgstore.Step, alone bool) error {
	if r := []rune(last.Lexeme); len(r) < minPrefix && r[0] < 0x2E80 {
		return messages.Invalid(field, fmt.Sprintf("has a prefix at character %d that is shorter than %d characters", w.at, minPrefix))
	}
	if w.sign == '-' || !alone {
		return nil
	}
	if len(p.query.Prefixes) == MaxPrefixes {
		return messages.Invalid(field, fmt.Sprintf("has more than %d prefixes", MaxPrefixes))
	}
	p.query.Prefixes = append(p.query.Prefixes, pgstore.Prefix{Lexeme: last.Lexeme, Weight: 1})
	return nil
}

// steps are the primary lexemes of a text with their distances: what stands where in the stored positions.
func (p *parser) steps(text string) []pgstore.Step {
	var out []pgstore.Step
	at := 0
	for _, t := range p.analyzer.Analyze(text) {
		if t.Kind != lexical.Word && t.Kind != lexical.Unigram {
			continue
		}
		out = append(out, pgstore.Step{Lexeme: t.Term, After: max(t.Position-at, 1)})
		at = t.Position
	}
	return out
}
