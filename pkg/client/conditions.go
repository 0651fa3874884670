package client

import (
	"encoding/json"
	"errors"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// Connector joins a condition to those before it. NOT binds tighter than AND, AND tighter than OR, over the
// chain as it stands.
type Connector = filter.Connector

// The connectors; And is meant where none is given.
const (
	And    = filter.ConnectAnd
	Or     = filter.ConnectOr
	AndNot = filter.ConnectAndNot
	OrNot  = filter.ConnectOrNot
)

// Conditions are conditions on metadata, as in a group of a SearchBuilder.
type Conditions struct{ conditions[*Conditions] }

// NewConditions returns none.
func NewConditions() *Conditions {
	c := &Conditions{}
	c.self = c
	return c
}

// conditions are the methods of a builder B that has conditions. Every method returns the builder. One that
// is given something wrong changes nothing but Err, at once.
type conditions[B any] struct {
	self B
	tree filter.ConditionBuilder
	errs []error
}

// Err returns what was wrong so far, nil for nothing. Each fault is a *messages.Error.
func (c *conditions[B]) Err() error { return errors.Join(c.errs...) }

// TakeErr returns what was wrong so far and forgets it: the caller has dealt with it, and goes on with the
// conditions as they stand.
func (c *conditions[B]) TakeErr() error {
	err := c.Err()
	c.errs = nil
	return err
}

// Filter returns the conditions as they stand; ok is false when there are none.
func (c *conditions[B]) Filter() (f filter.Filter, ok bool) { return c.tree.Filter() }

// FilterJSON returns the conditions as the filter of a request, nil when there are none. A fault so far is
// an error.
func (c *conditions[B]) FilterJSON() (json.RawMessage, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	f, ok := c.Filter()
	if !ok {
		return nil, nil
	}
	return filter.Canonical(f)
}

// Expression returns the conditions as an expression, "" when there are none. Conditions that expressions
// cannot say (StartsWith, Contains, ListContains) are NOT_SUPPORTED. A fault so far is an error.
func (c *conditions[B]) Expression() (string, error) {
	if err := c.Err(); err != nil {
		return "", err
	}
	f, ok := c.Filter()
	if !ok {
		return "", nil
	}
	return filter.Expression(f)
}

func (c *conditions[B]) did(err error) B {
	if err != nil {
		c.errs = append(c.errs, err)
	}
	return c.self
}

// Eq asks for equality; with nil for absence.
func (c *conditions[B]) Eq(key string, value any, with ...Connector) B {
	return c.did(c.tree.Eq(key, value, with...))
}

// Ne asks for another value; with nil for presence.
func (c *conditions[B]) Ne(key string, value any, with ...Connector) B {
	return c.did(c.tree.Ne(key, value, with...))
}

// Gt asks for a greater value.
func (c *conditions[B]) Gt(key string, value any, with ...Connector) B {
	return c.did(c.tree.Gt(key, value, with...))
}

// Ge asks for a greater or equal value.
func (c *conditions[B]) Ge(key string, value any, with ...Connector) B {
	return c.did(c.tree.Ge(key, value, with...))
}

// Lt asks for a lesser value.
func (c *conditions[B]) Lt(key string, value any, with ...Connector) B {
	return c.did(c.tree.Lt(key, value, with...))
}

// Le asks for a lesser or equal value.
func (c *conditions[B]) Le(key string, value any, with ...Connector) B {
	return c.did(c.tree.Le(key, value, with...))
}

// In asks for one of the values, at least one.
func (c *conditions[B]) In(key string, values []any, with ...Connector) B {
	return c.did(c.tree.In(key, values, with...))
}

// Nin asks for a value that is none of these, at least one.
func (c *conditions[B]) Nin(key string, values []any, with ...Connector) B {
	return c.did(c.tree.Nin(key, values, with...))
}

// Between asks for a value from low to high, both included; they must be of one kind.
func (c *conditions[B]) Between(key string, low, high any, with ...Connector) B {
	return c.did(c.tree.Between(key, low, high, with...))
}

// StartsWith asks for a text with this beginning.
func (c *conditions[B]) StartsWith(key, prefix string, with ...Connector) B {
	return c.did(c.tree.StartsWith(key, prefix, with...))
}

// Contains asks for a text that holds this one.
func (c *conditions[B]) Contains(key, text string, with ...Connector) B {
	return c.did(c.tree.Contains(key, text, with...))
}

// ListContains asks for a list with this element.
func (c *conditions[B]) ListContains(key string, element any, with ...Connector) B {
	return c.did(c.tree.ListContains(key, element, with...))
}

// IsNull asks for absence.
func (c *conditions[B]) IsNull(key string, with ...Connector) B {
	return c.did(c.tree.IsNull(key, with...))
}

// IsNotNull asks for presence.
func (c *conditions[B]) IsNotNull(key string, with ...Connector) B {
	return c.did(c.tree.IsNotNull(key, with...))
}

// Group joins by AND what fill builds, in parentheses. When that is nothing, nothing is joined.
func (c *conditions[B]) Group(fill func(*Conditions)) B { return c.group(fill, And) }

// OrGroup is Group joined by OR.
func (c *conditions[B]) OrGroup(fill func(*Conditions)) B { return c.group(fill, Or) }

// NotGroup is Group with a NOT before it.
func (c *conditions[B]) NotGroup(fill func(*Conditions)) B { return c.group(fill, AndNot) }

func (c *conditions[B]) group(fill func(*Conditions), with Connector) B {
	if fill == nil {
		return c.did(messages.Invalid("condition", "the function of a group is nil"))
	}
	inner := NewConditions()
	inner.tree.Limits = c.tree.Limits
	fill(inner)
	if err := inner.Err(); err != nil {
		return c.did(err)
	}
	f, ok := inner.Filter()
	if !ok {
		return c.self
	}
	return c.did(c.tree.Add(f, with))
}

// Add joins a ready filter, as a group.
func (c *conditions[B]) Add(f filter.Filter, with ...Connector) B {
	return c.did(c.tree.Add(f, with...))
}

// Condition joins an expression in the manner of SQL, as a group.
func (c *conditions[B]) Condition(expression string, with ...Connector) B {
	return c.did(c.tree.Condition(expression, with...))
}

// SetConditionExpression replaces all conditions by an expression.
func (c *conditions[B]) SetConditionExpression(expression string) B {
	return c.did(c.tree.SetConditionExpression(expression))
}

// SetCondition replaces all conditions by a ready filter.
func (c *conditions[B]) SetCondition(f filter.Filter) B { return c.did(c.tree.SetCondition(f)) }
