package filter

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// Filter is a condition on the metadata of a document, not yet tied to a schema: one of Comparison,
// InSet, StringMatch, ListContains, NullCheck, And, Or and Not. Filters never change once made and may
// stand in several trees. As JSON a filter is the canonical form that ParseJSON reads.
type Filter interface {
	json.Marshaler
	shape() shape
}

// shape is the extent of a tree.
type shape struct {
	depth  int // logical operators above the deepest leaf
	leaves int
}

// Comparison is equals, notEquals or one of the four operators of order.
type Comparison struct{ leaf }

// InSet is in or notIn.
type InSet struct{ leaf }

// StringMatch is startsWith or stringContains.
type StringMatch struct{ leaf }

// ListContains is listContains.
type ListContains struct{ leaf }

// NullCheck is isNull or isNotNull.
type NullCheck struct{ leaf }

// And holds when all of its filters hold.
type And struct{ group }

// Or holds when any of its filters holds.
type Or struct{ group }

// Not holds when none of its filters holds.
type Not struct{ group }

// leaf is a condition on one field.
type leaf struct {
	op     *operator
	key    string
	values []Literal
	at     place
}

// Operator returns the name of the operator in JSON, "" for the zero value.
func (l leaf) Operator() string {
	if l.op == nil {
		return ""
	}
	return l.op.name
}

// Key returns the name of the field.
func (l leaf) Key() string { return l.key }

// Values returns what the field is compared with: nothing for a NullCheck, several for an InSet.
func (l leaf) Values() []Literal { return slices.Clone(l.values) }

func (l leaf) shape() shape { return shape{leaves: 1} }
func (l leaf) self() leaf   { return l }

// group joins filters.
type group struct {
	how  *connective
	of   []Filter
	size shape
}

// Operator returns the name of the operator in JSON, "" for the zero value.
func (g group) Operator() string {
	if g.how == nil {
		return ""
	}
	return g.how.name
}

// Filters returns what is joined.
func (g group) Filters() []Filter { return slices.Clone(g.of) }

func (g group) shape() shape { return g.size }
func (g group) parts() group { return g }

func newGroup(how *connective, filters []Filter) group {
	g := group{how: how, of: slices.Clone(filters)}
	for _, f := range filters {
		if f == nil {
			continue // binding refuses it
		}
		s := f.shape()
		g.size.depth = max(g.size.depth, s.depth)
		g.size.leaves += s.leaves
	}
	g.size.depth++
	return g
}

func join(how *connective, filters []Filter) Filter { return how.node(newGroup(how, filters)) }

// AllOf joins filters with AND. Binding refuses an empty one.
func AllOf(filters ...Filter) And { return And{newGroup(andAll, filters)} }

// AnyOf joins filters with OR. Binding refuses an empty one.
func AnyOf(filters ...Filter) Or { return Or{newGroup(orAll, filters)} }

// NoneOf holds when none of the filters does. Binding refuses an empty one.
func NoneOf(filters ...Filter) Not { return Not{newGroup(notAll, filters)} }

// New makes a condition on one field by the operator's JSON name, such as New("in", "year", 2024, 2025).
// LiteralOf says which values it takes.
func New(operatorName, key string, values ...any) (Filter, error) {
	op, ok := operatorNamed(operatorName)
	if !ok {
		return nil, messages.Invalid("operator", fmt.Sprintf("%q is no operator", operatorName))
	}
	at := place{path: operatorName}
	if key == "" {
		return nil, at.fail("the name of the field is empty")
	}
	if err := op.takes.check(at, len(values)); err != nil {
		return nil, err
	}
	literals := make([]Literal, len(values))
	for i, v := range values {
		var err error
		if literals[i], err = LiteralOf(v); err != nil {
			return nil, at.fail(fmt.Sprintf("value of field %q: %v", key, err))
		}
	}
	return op.node(leaf{op: op, key: key, values: literals, at: at}), nil
}

func leafOf(f Filter) (leaf, bool) {
	l, ok := f.(interface{ self() leaf })
	if !ok {
		return leaf{}, false
	}
	return l.self(), l.self().op != nil
}

func groupOf(f Filter) (group, bool) {
	g, ok := f.(interface{ parts() group })
	if !ok {
		return group{}, false
	}
	return g.parts(), g.parts().how != nil
}

// place is where a condition was written, for errors.
type place struct {
	path       string // of the condition in JSON; of the expression as a whole
	pos        int    // code points into an expression
	expression bool
	field      string // named by errors that do not name it themselves
}

func (p place) fail(reason string) *messages.Error {
	if p.field != "" {
		reason = fmt.Sprintf("field %q: %s", p.field, reason)
	}
	if p.expression {
		reason = fmt.Sprintf("position %d: %s", p.pos, reason)
	}
	return messages.Invalid(p.path, reason)
}

// value is the place of the i-th value of a condition.
func (l leaf) value(i int) place {
	switch {
	case l.at.expression:
		return place{path: l.at.path, pos: l.values[i].pos, expression: true, field: l.key}
	case l.op.takes == takesSet:
		return place{path: fmt.Sprintf("%s.value[%d]", l.at.path, i), field: l.key}
	}
	return place{path: l.at.path + ".value", field: l.key}
}
