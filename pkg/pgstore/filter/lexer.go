package filter

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ExpressionError is a fault in an expression. It is also a *messages.Error with VALIDATION_ERROR, for
// errors.As.
type ExpressionError struct {
	Pos int    // where, in code points from 0
	Msg string // what, without the position

	path string // of the expression in a request
}

// Error says what and where.
func (e *ExpressionError) Error() string { return fmt.Sprintf("position %d: %s", e.Pos, e.Msg) }

// Unwrap returns the VALIDATION_ERROR of the expression's field.
func (e *ExpressionError) Unwrap() error {
	return place{path: e.path, pos: e.Pos, expression: true}.fail(e.Msg)
}

type tokenKind int

const (
	endToken tokenKind = iota
	fieldToken
	keywordToken // text in capitals
	stringToken  // text decoded
	numberToken  // text canonical
	symbolToken
)

type token struct {
	kind tokenKind
	text string
	pos  int
}

// String names the token in errors.
func (t token) String() string {
	switch t.kind {
	case endToken:
		return "the end"
	case stringToken:
		return "a string"
	}
	return fmt.Sprintf("%q", clip(t.text))
}

func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// keywords cannot be the name of a field without quotes: these and the words of the operators.
var keywords = append(strings.Fields("AND OR TRUE FALSE"), strings.Fields(strings.Join(spellings, " "))...)

// lexer cuts an expression into tokens as they are asked for, so that the first fault is the one
// reported.
type lexer struct {
	text []rune
	pos  int
	path string
}

func (x *lexer) fail(pos int, format string, args ...any) *ExpressionError {
	return &ExpressionError{Pos: pos, Msg: fmt.Sprintf(format, args...), path: x.path}
}

// newLexer refuses text that is too long or not UTF-8.
func newLexer(path, text string, limit int) (*lexer, error) {
	x := &lexer{path: path}
	if utf8.RuneCountInString(text) > limit {
		return nil, x.fail(limit, "the expression has more than %d characters", limit)
	}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return nil, x.fail(len(x.text), "is not valid UTF-8")
		}
		x.text = append(x.text, r)
	}
	return x, nil
}

// at returns the character n places ahead, 0 behind the end. A NUL in the text looks the same and is
// refused wherever it may not stand.
func (x *lexer) at(n int) rune {
	if x.pos+n < len(x.text) {
		return x.text[x.pos+n]
	}
	return 0
}

func (x *lexer) next() (token, error) {
	for strings.ContainsRune(" \t\r\n", x.at(0)) {
		x.pos++
	}
	if x.pos == len(x.text) {
		return token{kind: endToken, pos: x.pos}, nil
	}
	switch r := x.at(0); {
	case r == '\'' || r == '"':
		return x.str(r)
	case r == '`':
		return x.quotedField()
	case startsName(r):
		return x.name(), nil
	case isDigit(r), (r == '+' || r == '-') && isDigit(x.at(1)):
		return x.number()
	}
	return x.symbol()
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func startsName(r rune) bool { return unicode.IsLetter(r) || r == '_' || r == '$' }

func inName(r rune) bool {
	return startsName(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '.' || r == '-'
}

func (x *lexer) name() token {
	start := x.pos
	for inName(x.at(0)) {
		x.pos++
	}
	text := string(x.text[start:x.pos])
	if capitals := asciiUpper(text); slices.Contains(keywords, capitals) {
		return token{kind: keywordToken, text: capitals, pos: start}
	}
	return token{kind: fieldToken, text: text, pos: start}
}

// asciiUpper leaves other letters alone: some of them have ASCII capitals.
func asciiUpper(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

func (x *lexer) quotedField() (token, error) {
	start := x.pos
	var text strings.Builder
	for x.pos++; x.pos < len(x.text); x.pos++ {
		r := x.at(0)
		if r == '`' && x.at(1) != '`' {
			x.pos++
			if text.Len() == 0 {
				return token{}, x.fail(start, "the name of the field is empty")
			}
			return token{kind: fieldToken, text: text.String(), pos: start}, nil
		}
		if r == '`' {
			x.pos++
		}
		text.WriteRune(r)
	}
	return token{}, x.fail(start, "the quoted name has no end")
}

func (x *lexer) str(quote rune) (token, error) {
	start := x.pos
	var text strings.Builder
	for x.pos++; x.pos < len(x.text); x.pos++ {
		r := x.at(0)
		switch {
		case r == quote && x.at(1) != quote:
			x.pos++
			return token{kind: stringToken, text: text.String(), pos: start}, nil
		case r == quote:
			x.pos++
		case r == '\\':
			var err error
			if r, err = x.escape(); err != nil {
				return token{}, err
			}
		}
		text.WriteRune(r)
	}
	return token{}, x.fail(start, "the string has no end")
}

// escape reads the character after a backslash, which becomes the current one.
func (x *lexer) escape() (rune, error) {
	if x.pos+1 == len(x.text) {
		return 0, x.fail(x.pos, "the escape has no end")
	}
	x.pos++
	i := strings.IndexRune(`nrtbf\'"`, x.at(0))
	if i < 0 {
		return 0, x.fail(x.pos, `\%c is no escape`, x.at(0))
	}
	return rune("\n\r\t\b\f\\'\""[i]), nil
}

func (x *lexer) number() (token, error) {
	start := x.pos
	x.pos++ // a sign or a digit
	x.digits()
	integer := true
	if x.at(0) == '.' {
		x.pos++
		integer = false
		if x.digits() == 0 {
			return token{}, x.fail(x.pos, "a digit must follow the point")
		}
	}
	if x.at(0) == 'e' || x.at(0) == 'E' {
		x.pos++
		integer = false
		if x.at(0) == '+' || x.at(0) == '-' {
			x.pos++
		}
		if x.digits() == 0 {
			return token{}, x.fail(x.pos, "the exponent has no digits")
		}
	}
	text := string(x.text[start:x.pos])
	if n, ok := new(big.Int).SetString(text, 10); integer && (!ok || !n.IsInt64()) {
		return token{}, x.fail(start, "the integer does not fit in 64 bits")
	}
	return token{kind: numberToken, text: canonicalNumber(text), pos: start}, nil
}

func (x *lexer) digits() int {
	start := x.pos
	for isDigit(x.at(0)) {
		x.pos++
	}
	return x.pos - start
}

func (x *lexer) symbol() (token, error) {
	start := x.pos
	for _, s := range [...]string{"==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ","} {
		if strings.HasPrefix(string([]rune{x.at(0), x.at(1)}), s) {
			x.pos += len(s)
			return token{kind: symbolToken, text: s, pos: start}, nil
		}
	}
	return token{}, x.fail(start, "unexpected character %q", x.at(0))
}
