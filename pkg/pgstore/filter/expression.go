package filter

import (
	"slices"
	"strings"
)

// ParseExpression reads a condition in the manner of SQL:
//
//	category IN ('technology', 'science') AND NOT (score < 60 OR published IS NULL)
//
// NOT binds tighter than AND, AND tighter than OR. Comparisons are = == != <> < <= > >=, [NOT] IN,
// [NOT] BETWEEN and IS [NOT] NULL. Strings stand in single or double quotes, names with other characters
// in back quotes. BETWEEN becomes andAll of >= and <=, NOT BETWEEN orAll of < and >, NOT x notAll of x.
// at names the expression in errors, which are *ExpressionError. Time is linear in the text.
func ParseExpression(at, text string, limits Limits) (Filter, error) {
	limits = limits.WithDefaults()
	x, err := newLexer(at, text, limits.Characters)
	if err != nil {
		return nil, err
	}
	p := &parser{lexer: x, limits: limits}
	if err := p.advance(); err != nil {
		return nil, err
	}
	f, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.token.kind != endToken {
		return nil, p.fail(p.token.pos, "expected AND, OR or the end, found %s", p.token)
	}
	return f, nil
}

// parser descends recursively; nesting guards how deep.
type parser struct {
	*lexer
	token      token // current
	limits     Limits
	nesting    int // open parentheses and NOTs
	predicates int
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

func (p *parser) on(kind tokenKind, text string) bool {
	return p.token.kind == kind && p.token.text == text
}

// take advances over the token when it is the one named.
func (p *parser) take(kind tokenKind, text string) (bool, error) {
	if !p.on(kind, text) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) or() (Filter, error)  { return p.chain("OR", orAll, p.and) }
func (p *parser) and() (Filter, error) { return p.chain("AND", andAll, p.unary) }

// chain reads one or more parts with a keyword between them.
func (p *parser) chain(keyword string, how *connective, part func() (Filter, error)) (Filter, error) {
	first, err := part()
	if err != nil {
		return nil, err
	}
	of, pos := []Filter{first}, p.token.pos
	for {
		more, err := p.take(keywordToken, keyword)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		f, err := part()
		if err != nil {
			return nil, err
		}
		of = append(of, f)
	}
	if len(of) == 1 {
		return first, nil
	}
	return p.join(how, of, pos)
}

// join refuses a tree that has become too deep, at the operator on its top.
func (p *parser) join(how *connective, of []Filter, pos int) (Filter, error) {
	f := join(how, of)
	if f.shape().depth > p.limits.Depth {
		return nil, p.fail(pos, "the expression %s", p.limits.tooDeep())
	}
	return f, nil
}

func (p *parser) enter() error {
	if p.nesting++; p.nesting > p.limits.Depth {
		return p.fail(p.token.pos, "the expression %s", p.limits.tooDeep())
	}
	return p.advance()
}

func (p *parser) unary() (Filter, error) {
	switch {
	case p.on(keywordToken, "NOT"):
		pos := p.token.pos
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer func() { p.nesting-- }()
		f, err := p.unary()
		if err != nil {
			return nil, err
		}
		return p.join(notAll, []Filter{f}, pos)
	case p.on(symbolToken, "("):
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer func() { p.nesting-- }()
		f, err := p.or()
		if err != nil {
			return nil, err
		}
		return f, p.expect(symbolToken, ")")
	}
	return p.predicate()
}

func (p *parser) expect(kind tokenKind, text string) error {
	ok, err := p.take(kind, text)
	if !ok && err == nil {
		return p.fail(p.token.pos, "expected %s, found %s", text, p.token)
	}
	return err
}

func (p *parser) predicate() (Filter, error) {
	field := p.token
	if field.kind != fieldToken {
		return nil, p.fail(field.pos, "expected the name of a field, found %s", field)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	spelling, err := p.spelling()
	if err != nil {
		return nil, err
	}
	l := leaf{key: fieldName(field.text), at: place{path: p.path, pos: field.pos, expression: true}}
	if strings.HasSuffix(spelling, "BETWEEN") {
		return p.between(l, spelling == "BETWEEN")
	}
	op, ok := operatorSpelled(spelling)
	if !ok {
		return nil, p.fail(field.pos, "%s is no operator", spelling)
	}
	return p.condition(l, op)
}

// spellings are all operators of expressions.
var spellings = spellingsOf(operators)

func spellingsOf(operators []*operator) []string {
	all := []string{"BETWEEN", "NOT BETWEEN"}
	for _, o := range operators {
		all = append(all, o.spellings...)
	}
	return all
}

// spelling reads an operator, word by word: no spelling is the beginning of another.
func (p *parser) spelling() (string, error) {
	for so := ""; ; so += " " {
		word := p.token.text
		if p.token.kind != keywordToken && p.token.kind != symbolToken {
			word = "?"
		}
		so += word
		if slices.Contains(spellings, so) {
			return so, p.advance()
		}
		if !slices.ContainsFunc(spellings, func(s string) bool { return strings.HasPrefix(s, so+" ") }) {
			return "", p.fail(p.token.pos, "expected an operator, found %s", p.token)
		}
		if err := p.advance(); err != nil {
			return "", err
		}
	}
}

// condition reads what follows the operator.
func (p *parser) condition(l leaf, op *operator) (Filter, error) {
	var err error
	switch l.op = op; op.takes {
	case takesSet:
		l.values, err = p.set()
	case takesOne:
		if p.on(keywordToken, "NULL") && op.null != "" {
			l.op, _ = operatorNamed(op.null)
			err = p.advance()
			break
		}
		l.values, err = p.literal(nil)
	}
	if err != nil {
		return nil, err
	}
	return p.count(l)
}

func (p *parser) count(l leaf) (Filter, error) {
	if p.predicates++; p.predicates > p.limits.Predicates {
		return nil, p.fail(l.at.pos, "the expression %s", p.limits.tooMany())
	}
	return l.op.node(l), nil
}

func (p *parser) set() ([]Literal, error) {
	if err := p.expect(symbolToken, "("); err != nil {
		return nil, err
	}
	var values []Literal
	for {
		if len(values) == p.limits.Values {
			return nil, p.fail(p.token.pos, "the list %s", p.limits.tooManyValues())
		}
		var err error
		if values, err = p.literal(values); err != nil {
			return nil, err
		}
		more, err := p.take(symbolToken, ",")
		if err != nil {
			return nil, err
		}
		if !more {
			return values, p.expect(symbolToken, ")")
		}
	}
}

func (p *parser) between(l leaf, inside bool) (Filter, error) {
	low, err := p.literal(nil)
	if err != nil {
		return nil, err
	}
	if err := p.expect(keywordToken, "AND"); err != nil {
		return nil, err
	}
	high, err := p.literal(nil)
	if err != nil {
		return nil, err
	}
	how, ops := orAll, [2]*operator{lessThan, greaterThan}
	if inside {
		how, ops = andAll, [2]*operator{greaterThanOrEquals, lessThanOrEquals}
	}
	var of [2]Filter
	for i, values := range [2][]Literal{low, high} {
		bound := l
		bound.op, bound.values = ops[i], values
		if of[i], err = p.count(bound); err != nil {
			return nil, err
		}
	}
	return p.join(how, of[:], l.at.pos)
}

// literal appends a value.
func (p *parser) literal(values []Literal) ([]Literal, error) {
	t := p.token
	var v Literal
	switch {
	case t.kind == stringToken:
		v = stringLiteral(t.text)
	case t.kind == numberToken:
		v = numberLiteral(t.text)
	case p.on(keywordToken, "TRUE"), p.on(keywordToken, "FALSE"):
		v = booleanLiteral(t.text == "TRUE")
	case p.on(keywordToken, "NULL"):
		return nil, p.fail(t.pos, "NULL may not stand here")
	case t.kind == fieldToken:
		return nil, p.fail(t.pos, "expected a value, found the word %q: text stands in quotes", clip(t.text))
	default:
		return nil, p.fail(t.pos, "expected a value, found %s", t)
	}
	v.pos = t.pos
	return append(values, v), p.advance()
}

// fieldName takes off the prefix that expressions and builders may put before a field.
func fieldName(name string) string {
	for _, prefix := range [...]string{"metadata.", "metadataMap."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return rest
		}
	}
	return name
}
