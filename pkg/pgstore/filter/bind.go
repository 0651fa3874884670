package filter

import (
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
)

// SchemaBinder ties filters to the fields of a knowledge base.
type SchemaBinder struct {
	Schema messages.MetadataSchema
	Limits Limits // zero: the defaults; what a parser let pass is checked again, whatever its limits were
	// Internal lets a filter name internal fields. Only for filters that no client wrote.
	Internal bool
}

// Bind ties a client's filter to a schema under the default limits: it may not name internal fields.
func Bind(f Filter, schema messages.MetadataSchema) (Bound, error) {
	return SchemaBinder{Schema: schema}.Bind(f)
}

// Bind checks every condition of a filter and gives its values the types of their fields. Errors are
// VALIDATION_ERROR and name the field.
func (b SchemaBinder) Bind(f Filter) (Bound, error) {
	b.Limits = b.Limits.WithDefaults()
	if err := b.Limits.check("filter", f); err != nil {
		return Bound{}, err
	}
	root, err := b.node(f)
	return Bound{root}, err
}

func (b SchemaBinder) node(f Filter) (boundNode, error) {
	if l, ok := leafOf(f); ok {
		return b.leaf(l)
	}
	g, ok := groupOf(f)
	switch {
	case !ok:
		return nil, messages.Invalid("filter", "holds an empty filter")
	case len(g.of) == 0:
		return nil, messages.Invalid("filter", g.how.name+" is empty")
	}
	bound := boundGroup{how: g.how, of: make([]boundNode, len(g.of))}
	for i, f := range g.of {
		var err error
		if bound.of[i], err = b.node(f); err != nil {
			return nil, err
		}
	}
	return bound, nil
}

func (b SchemaBinder) leaf(l leaf) (boundNode, error) {
	field, declared := b.Schema.Field(l.key)
	switch {
	case !declared:
		return nil, l.at.fail(fmt.Sprintf("field %q is not declared by the knowledge base", clip(l.key)))
	case field.Internal && !b.Internal:
		return nil, l.at.fail(fmt.Sprintf("field %q is internal and may not be used", l.key))
	case len(l.values) > b.Limits.Values:
		return nil, l.at.fail(b.Limits.tooManyValues())
	}
	element, list := field.Type.Element()
	if !l.op.applies(element, list) {
		return nil, l.at.fail(fmt.Sprintf("%s does not apply to field %q of type %s", l.op.name, l.key, field.Type))
	}
	if err := l.op.takes.check(l.at, len(l.values)); err != nil {
		return nil, err
	}
	bound := boundLeaf{op: l.op, key: l.key, element: element, list: list, values: make([]any, len(l.values))}
	for i, v := range l.values {
		var err error
		if bound.values[i], err = v.as(element, l.value(i)); err != nil {
			return nil, err
		}
	}
	return bound, nil
}

// Bound is a filter tied to a schema. The zero value matches nothing.
type Bound struct{ root boundNode }

// Conjunction holds when all of the bound filters hold: a mandatory one and a client's, each whole.
// Without any it is the zero value.
func Conjunction(all ...Bound) Bound {
	g := boundGroup{how: andAll}
	for _, b := range all {
		if b.root == nil {
			return Bound{}
		}
		g.of = append(g.of, b.root)
	}
	switch len(g.of) {
	case 0:
		return Bound{}
	case 1:
		return all[0]
	}
	return Bound{g}
}

// boundNode is a boundLeaf or a boundGroup.
type boundNode interface {
	sql(q *query) string
	match(doc document) bool
}

type boundLeaf struct {
	op      *operator
	key     string
	element messages.MetadataType // of the field, or of the elements of a list
	list    bool
	values  []any // string, int64, float64, bool, or time.Time in UTC with milliseconds
}

type boundGroup struct {
	how *connective
	of  []boundNode
}
