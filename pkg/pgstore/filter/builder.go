package filter

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// Connector joins a condition to those before it.
type Connector string

// The connectors. The NOT belongs to the condition that is joined.
const (
	ConnectAnd    Connector = "AND"
	ConnectOr     Connector = "OR"
	ConnectAndNot Connector = "AND_NOT"
	ConnectOrNot  Connector = "OR_NOT"
)

// ConditionBuilder builds a filter condition by condition. Conditions are joined by AND unless a
// connector is given, at most one; NOT binds tighter than AND, AND tighter than OR, over the chain as it
// stands. Of the first condition's connector only a NOT counts. A method that returns an error, always a
// VALIDATION_ERROR, leaves the builder as it was. Names of fields may begin with "metadata." or
// "metadataMap.". Values are those of LiteralOf.
//
// The zero value is an empty builder. It is not safe for concurrent use; the filters it makes are.
type ConditionBuilder struct {
	Limits Limits // of expressions; zero: the defaults

	chain []link
}

type link struct {
	or     bool // begins a new run of ANDs
	filter Filter
}

// Add joins a filter, as a group.
func (b *ConditionBuilder) Add(f Filter, with ...Connector) error {
	or, not, err := connect(with)
	if err != nil {
		return err
	}
	if f == nil {
		return messages.Invalid("condition", "is nil")
	}
	if not {
		f = NoneOf(f)
	}
	b.chain = append(b.chain, link{or: or, filter: f})
	return nil
}

func connect(with []Connector) (or, not bool, err error) {
	if len(with) == 0 {
		return false, false, nil
	}
	if len(with) > 1 {
		return false, false, messages.Invalid("connector", "more than one is given")
	}
	switch with[0] {
	case ConnectAnd:
	case ConnectOr:
		or = true
	case ConnectAndNot:
		not = true
	case ConnectOrNot:
		or, not = true, true
	default:
		return false, false, messages.Invalid("connector", fmt.Sprintf("%q is not AND, OR, AND_NOT or OR_NOT", string(with[0])))
	}
	return or, not, nil
}

// Filter returns what was built; ok is false when there is no condition. The builder may be used further.
func (b *ConditionBuilder) Filter() (f Filter, ok bool) {
	var runs [][]Filter
	for i, l := range b.chain {
		if i == 0 || l.or {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], l.filter)
	}
	if len(runs) == 0 {
		return nil, false
	}
	any := make([]Filter, len(runs))
	for i, run := range runs {
		any[i] = single(andAll, run)
	}
	return single(orAll, any), true
}

func single(how *connective, of []Filter) Filter {
	if len(of) == 1 {
		return of[0]
	}
	return join(how, of)
}

// Clone returns a builder with the same conditions; what is then done to one is not seen by the other.
func (b *ConditionBuilder) Clone() *ConditionBuilder {
	return &ConditionBuilder{Limits: b.Limits, chain: append([]link(nil), b.chain...)}
}

func (b *ConditionBuilder) condition(op *operator, key string, values []any, with []Connector) error {
	f, err := condition(op, key, values)
	if err != nil {
		return err
	}
	return b.Add(f, with...)
}

func condition(op *operator, key string, values []any) (Filter, error) {
	if strings.TrimSpace(key) == "" {
		return nil, messages.Invalid(op.name, "the name of the field is blank")
	}
	return New(op.name, fieldName(key), values...)
}

// Eq asks for equality; with nil for absence.
func (b *ConditionBuilder) Eq(key string, value any, with ...Connector) error {
	if value == nil {
		return b.condition(isNull, key, nil, with)
	}
	return b.condition(equals, key, []any{value}, with)
}

// Ne asks for another value; with nil for presence.
func (b *ConditionBuilder) Ne(key string, value any, with ...Connector) error {
	if value == nil {
		return b.condition(isNotNull, key, nil, with)
	}
	return b.condition(notEquals, key, []any{value}, with)
}

// Gt asks for a greater value.
func (b *ConditionBuilder) Gt(key string, value any, with ...Connector) error {
	return b.condition(greaterThan, key, []any{value}, with)
}

// Ge asks for a greater or equal value.
func (b *ConditionBuilder) Ge(key string, value any, with ...Connector) error {
	return b.condition(greaterThanOrEquals, key, []any{value}, with)
}

// Lt asks for a lesser value.
func (b *ConditionBuilder) Lt(key string, value any, with ...Connector) error {
	return b.condition(lessThan, key, []any{value}, with)
}

// Le asks for a lesser or equal value.
func (b *ConditionBuilder) Le(key string, value any, with ...Connector) error {
	return b.condition(lessThanOrEquals, key, []any{value}, with)
}

// In asks for one of the values, at least one.
func (b *ConditionBuilder) In(key string, values []any, with ...Connector) error {
	return b.condition(in, key, values, with)
}

// Nin asks for a value that is none of these.
func (b *ConditionBuilder) Nin(key string, values []any, with ...Connector) error {
	return b.condition(notIn, key, values, with)
}

// StartsWith asks for a text with this beginning.
func (b *ConditionBuilder) StartsWith(key, prefix string, with ...Connector) error {
	return b.condition(startsWith, key, []any{prefix}, with)
}

// Contains asks for a text that holds this one.
func (b *ConditionBuilder) Contains(key, text string, with ...Connector) error {
	return b.condition(stringContains, key, []any{text}, with)
}

// ListContains asks for a list with this element.
func (b *ConditionBuilder) ListContains(key string, element any, with ...Connector) error {
	return b.condition(listContains, key, []any{element}, with)
}

// IsNull asks for absence.
func (b *ConditionBuilder) IsNull(key string, with ...Connector) error {
	return b.condition(isNull, key, nil, with)
}

// IsNotNull asks for presence.
func (b *ConditionBuilder) IsNotNull(key string, with ...Connector) error {
	return b.condition(isNotNull, key, nil, with)
}

// Between asks for a value from low to high, both included; they must be of one kind.
func (b *ConditionBuilder) Between(key string, low, high any, with ...Connector) error {
	from, err := condition(greaterThanOrEquals, key, []any{low})
	if err != nil {
		return err
	}
	to, err := condition(lessThanOrEquals, key, []any{high})
	if err != nil {
		return err
	}
	f, _ := leafOf(from)
	t, _ := leafOf(to)
	if a, z := f.values[0].kind, t.values[0].kind; a != z {
		return messages.Invalid("between", fmt.Sprintf("the bounds of field %q are %s and %s", clip(key), a, z))
	}
	return b.Add(AllOf(from, to), with...)
}

// Group joins by AND what fill builds, in parentheses. When that is nothing, nothing is joined; an error
// of fill is returned.
func (b *ConditionBuilder) Group(fill func(*ConditionBuilder) error) error {
	return b.group(fill, ConnectAnd)
}

// OrGroup is Group joined by OR.
func (b *ConditionBuilder) OrGroup(fill func(*ConditionBuilder) error) error {
	return b.group(fill, ConnectOr)
}

// NotGroup is Group with a NOT before it.
func (b *ConditionBuilder) NotGroup(fill func(*ConditionBuilder) error) error {
	return b.group(fill, ConnectAndNot)
}

func (b *ConditionBuilder) group(fill func(*ConditionBuilder) error, with Connector) error {
	inner := &ConditionBuilder{Limits: b.Limits}
	if err := fill(inner); err != nil {
		return err
	}
	f, ok := inner.Filter()
	if !ok {
		return nil
	}
	return b.Add(f, with)
}

// Condition joins an expression, as a group.
func (b *ConditionBuilder) Condition(expression string, with ...Connector) error {
	f, err := ParseExpression("condition", expression, b.Limits)
	if err != nil {
		return err
	}
	return b.Add(f, with...)
}

// SetConditionExpression replaces all conditions by an expression.
func (b *ConditionBuilder) SetConditionExpression(expression string) error {
	f, err := ParseExpression("condition", expression, b.Limits)
	if err != nil {
		return err
	}
	return b.SetCondition(f)
}

// SetCondition replaces all conditions by a filter.
func (b *ConditionBuilder) SetCondition(f Filter) error {
	if f == nil {
		return messages.Invalid("condition", "is nil")
	}
	b.chain = []link{{filter: f}}
	return nil
}
