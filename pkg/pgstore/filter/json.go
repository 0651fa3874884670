package filter

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
)

// ParseJSON reads a filter in JSON: an object with exactly one operator, whose value is {"key", "value"},
// {"key"} for the null checks, or a list of filters for andAll, orAll and notAll. at names the filter in
// errors, which are VALIDATION_ERROR with the path of the fault. Numbers keep their exact value. Limits
// hold before the tree is built further; time is linear in raw.
func ParseJSON(at string, raw json.RawMessage, limits Limits) (Filter, error) {
	limits = limits.WithDefaults()
	if len(raw) > limits.Bytes {
		return nil, messages.Invalid(at, fmt.Sprintf("has more than %d bytes", limits.Bytes))
	}
	var whole json.RawMessage
	if err := messages.DecodeStrict(raw, &whole); err != nil {
		return nil, messages.Invalid(at, reasonOf(err))
	}
	d := decoder{dec: json.NewDecoder(bytes.NewReader(whole)), limits: limits}
	d.dec.UseNumber()
	return d.filter(place{path: at}, 0)
}

// decoder reads JSON that is known to be well-formed.
type decoder struct {
	dec        *json.Decoder
	limits     Limits
	predicates int
}

func (d *decoder) token(at place) (json.Token, error) {
	tok, err := d.dec.Token()
	if err != nil {
		return nil, at.fail("is not valid JSON: " + err.Error())
	}
	return tok, nil
}

// filter reads one object with one operator, inside depth logical operators.
func (d *decoder) filter(at place, depth int) (Filter, error) {
	tok, err := d.token(at)
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, at.fail("must be an object with one operator, got " + nameOf(tok))
	}
	if tok, err = d.token(at); err != nil {
		return nil, err
	}
	name, ok := tok.(string)
	if !ok {
		return nil, at.fail("must have one operator, has none")
	}
	f, err := d.operator(at, name, depth)
	if err != nil {
		return nil, err
	}
	if tok, err = d.token(at); err != nil {
		return nil, err
	}
	if second, ok := tok.(string); ok {
		return nil, at.fail(fmt.Sprintf("must have one operator, has %s and %q", name, second))
	}
	return f, nil
}

func (d *decoder) operator(at place, name string, depth int) (Filter, error) {
	inner := at.step(name)
	if op, ok := operatorNamed(name); ok {
		if d.predicates++; d.predicates > d.limits.Predicates {
			return nil, inner.fail(d.limits.tooMany())
		}
		return d.leaf(inner, op)
	}
	if how, ok := connectiveNamed(name); ok {
		if depth == d.limits.Depth {
			return nil, inner.fail(d.limits.tooDeep())
		}
		return d.group(inner, how, depth+1)
	}
	return nil, inner.fail("is no operator")
}

func (d *decoder) group(at place, how *connective, depth int) (Filter, error) {
	tok, err := d.token(at)
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('[') {
		return nil, at.fail("must be a list of filters, got " + nameOf(tok))
	}
	var of []Filter
	for d.dec.More() {
		f, err := d.filter(at.index(len(of)), depth)
		if err != nil {
			return nil, err
		}
		of = append(of, f)
	}
	if len(of) == 0 {
		return nil, at.fail("is empty")
	}
	if _, err := d.token(at); err != nil {
		return nil, err
	}
	return join(how, of), nil
}

// leaf reads {"key": …, "value": …}.
func (d *decoder) leaf(at place, op *operator) (Filter, error) {
	tok, err := d.token(at)
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, at.fail("must be an object, got " + nameOf(tok))
	}
	l, hasKey, hasValue := leaf{op: op, at: at}, false, false
	for d.dec.More() {
		if tok, err = d.token(at); err != nil {
			return nil, err
		}
		switch name := tok.(string); {
		case name == "key" && !hasKey:
			hasKey = true
			l.key, err = d.key(at.step(name))
		case name == "value" && !hasValue && op.takes != takesNothing:
			hasValue = true
			l.values, err = d.operand(at.step(name), op.takes)
		case name == "key" || name == "value" && hasValue:
			return nil, at.step(name).fail("is given twice")
		case name == "value":
			return nil, at.step(name).fail("must be absent: the operator takes no value")
		default:
			return nil, at.step(name).fail("is not a known key")
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case !hasKey:
		return nil, at.step("key").fail("is required")
	case !hasValue && op.takes != takesNothing:
		return nil, at.step("value").fail("is required")
	}
	if _, err := d.token(at); err != nil {
		return nil, err
	}
	return op.node(l), nil
}

func (d *decoder) key(at place) (string, error) {
	tok, err := d.token(at)
	if err != nil {
		return "", err
	}
	key, ok := tok.(string)
	switch {
	case !ok:
		return "", at.fail("must be a string, got " + nameOf(tok))
	case key == "":
		return "", at.fail("is empty")
	}
	return key, nil
}

func (d *decoder) operand(at place, takes operand) ([]Literal, error) {
	tok, err := d.token(at)
	if err != nil {
		return nil, err
	}
	if takes == takesOne {
		v, err := scalar(at, tok)
		return []Literal{v}, err
	}
	if tok != json.Delim('[') {
		return nil, at.fail("must be a list of values, got " + nameOf(tok))
	}
	return d.values(at)
}

func (d *decoder) values(at place) ([]Literal, error) {
	var values []Literal
	for d.dec.More() {
		if len(values) == d.limits.Values {
			return nil, at.fail(d.limits.tooManyValues())
		}
		tok, err := d.token(at)
		if err != nil {
			return nil, err
		}
		v, err := scalar(at.index(len(values)), tok)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, at.fail("the list of values is empty")
	}
	_, err := d.token(at)
	return values, err
}

func scalar(at place, tok json.Token) (Literal, error) {
	switch v := tok.(type) {
	case string:
		return stringLiteral(v), nil
	case json.Number:
		return numberLiteral(string(v)), nil
	case bool:
		return booleanLiteral(v), nil
	case nil:
		return Literal{}, at.fail("must not be null: isNull and isNotNull ask for that")
	}
	return Literal{}, at.fail("must be a single value, got " + nameOf(tok))
}

func nameOf(tok json.Token) string {
	switch tok.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	}
	if tok == json.Delim('[') {
		return "a list"
	}
	return "an object"
}

func (p place) step(name string) place { return place{path: p.path + "." + name} }
func (p place) index(i int) place      { return place{path: fmt.Sprintf("%s[%d]", p.path, i)} }
