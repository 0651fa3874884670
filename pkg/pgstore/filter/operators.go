package filter

import (
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// operators are all conditions on one field.
var operators = []*operator{
	equals, notEquals,
	greaterThan, greaterThanOrEquals, lessThan, lessThanOrEquals,
	in, notIn,
	startsWith, stringContains,
	listContains,
	isNull, isNotNull,
}

// connectives are all ways to join conditions.
var connectives = []*connective{andAll, orAll, notAll}

// operator is all there is to know about a condition on one field.
type operator struct {
	name      string   // in JSON
	spellings []string // in expressions, keywords in capitals and one space apart; none: JSON and Go only
	null      string   // the operator meant when the value is NULL; "" when it may not be
	takes     operand
	applies   func(element messages.MetadataType, list bool) bool
	node      func(leaf) Filter
	sql       func(q *query, l boundLeaf) string         // a predicate that is never null
	match     func(stored fieldValue, wanted []any) bool // the same in memory
}

// connective is all there is to know about a logical operator.
type connective struct {
	name  string // in JSON
	node  func(group) Filter
	sql   func(of []string) string
	match func(of []boundNode, doc document) bool
}

// operand is how many values an operator takes.
type operand int

const (
	takesOne operand = iota
	takesSet         // one or more, in a list
	takesNothing
)

func (o operand) check(at place, values int) error {
	switch {
	case o == takesNothing && values != 0:
		return at.fail("takes no value")
	case o == takesOne && values != 1:
		return at.fail(fmt.Sprintf("takes one value, got %d", values))
	case o == takesSet && values == 0:
		return at.fail("the list of values is empty")
	}
	return nil
}

func operatorNamed(name string) (*operator, bool) {
	i := slices.IndexFunc(operators, func(o *operator) bool { return o.name == name })
	if i < 0 {
		return nil, false
	}
	return operators[i], true
}

func operatorSpelled(spelling string) (*operator, bool) {
	i := slices.IndexFunc(operators, func(o *operator) bool { return slices.Contains(o.spellings, spelling) })
	if i < 0 {
		return nil, false
	}
	return operators[i], true
}

func connectiveNamed(name string) (*connective, bool) {
	i := slices.IndexFunc(connectives, func(c *connective) bool { return c.name == name })
	if i < 0 {
		return nil, false
	}
	return connectives[i], true
}

// OperatorNames returns the JSON names of all operators, those that join conditions last.
func OperatorNames() []string {
	var names []string
	for _, o := range operators {
		names = append(names, o.name)
	}
	for _, c := range connectives {
		names = append(names, c.name)
	}
	return names
}

// Applicability of operators.

func toAll(messages.MetadataType, bool) bool { return true }

func toLists(_ messages.MetadataType, list bool) bool { return list }

func toStrings(element messages.MetadataType, list bool) bool {
	return !list && element == messages.TypeString
}

func toOrdered(element messages.MetadataType, list bool) bool {
	return !list && slices.Contains([]messages.MetadataType{messages.TypeLong, messages.TypeDouble, messages.TypeDate}, element)
}

// Nodes of operators.

func comparison(l leaf) Filter  { return Comparison{l} }
func inSet(l leaf) Filter       { return InSet{l} }
func stringMatch(l leaf) Filter { return StringMatch{l} }
func containment(l leaf) Filter { return ListContains{l} }
func nullCheck(l leaf) Filter   { return NullCheck{l} }
