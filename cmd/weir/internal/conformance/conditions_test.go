package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// conditionsStep makes calls of the builder one after the other and compares the filter that stands at the
// end: null where there must be none.
type conditionsStep struct {
	Calls []condition     `json:"calls"`
	Want  json.RawMessage `json:"want"`
}

// condition is a call of the builder by the name of its method in lower case.
type condition struct {
	Do     string            `json:"do"`
	Key    string            `json:"key"`
	Value  json.RawMessage   `json:"value"`
	Values []json.RawMessage `json:"values"`
	With   filter.Connector  `json:"with"`
	Of     []condition       `json:"of"`   // of a group
	Text   string            `json:"text"` // an expression
	// Fails: the call is refused, at the place if one is given, and what was built stays as it was.
	Fails bool `json:"fails"`
	At    *int `json:"at"`
}

func (r *run) conditions(t *testing.T, s *conditionsStep) {
	t.Helper()
	b := new(filter.ConditionBuilder)
	for i := range s.Calls {
		c := &s.Calls[i]
		before := standing(t, b)
		err := c.on(b)
		if (err != nil) != c.Fails {
			r.errorf(t, "call %d, %s: got %v, want it to fail: %v", i+1, c.Do, err, c.Fails)
		}
		if c.Fails && standing(t, b) != before {
			r.errorf(t, "call %d, %s: %s became %s though the call failed", i+1, c.Do, before, standing(t, b))
		}
		var at *filter.ExpressionError
		if c.At != nil && (!errors.As(err, &at) || at.Pos != *c.At) {
			r.errorf(t, "call %d, %s: got %v, want an error at %d", i+1, c.Do, err, *c.At)
		}
	}
	f, ok := b.Filter()
	if bytes.Equal(bytes.TrimSpace(s.Want), []byte("null")) || s.Want == nil {
		if ok {
			r.errorf(t, "got %s, want no filter", standing(t, b))
		}
		return
	}
	if !ok {
		r.errorf(t, "got no filter, want %s", s.Want)
		return
	}
	r.sameTree(t, "the filter built", f, s.Want)
}

// standing is what has been built, as text.
func standing(t *testing.T, b *filter.ConditionBuilder) string {
	t.Helper()
	f, ok := b.Filter()
	if !ok {
		return "nothing"
	}
	raw, err := filter.Canonical(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (c *condition) on(b *filter.ConditionBuilder) error {
	var with []filter.Connector
	if c.With != "" {
		with = append(with, c.With)
	}
	value, err := goValue(c.Value)
	if err != nil {
		return err
	}
	values := []any{}
	for _, raw := range c.Values {
		v, err := goValue(raw)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	one := map[string]func(string, any, ...filter.Connector) error{
		"eq": b.Eq, "ne": b.Ne, "gt": b.Gt, "ge": b.Ge, "lt": b.Lt, "le": b.Le, "listContains": b.ListContains,
	}
	if set, ok := one[c.Do]; ok {
		return set(c.Key, value, with...)
	}
	switch c.Do {
	case "in":
		return b.In(c.Key, values, with...)
	case "nin":
		return b.Nin(c.Key, values, with...)
	case "between":
		if len(values) != 2 {
			return fmt.Errorf("between wants two values, got %d", len(values))
		}
		return b.Between(c.Key, values[0], values[1], with...)
	case "isNull":
		return b.IsNull(c.Key, with...)
	case "isNotNull":
		return b.IsNotNull(c.Key, with...)
	case "group":
		return b.Group(c.fill)
	case "orGroup":
		return b.OrGroup(c.fill)
	case "notGroup":
		return b.NotGroup(c.fill)
	case "condition":
		return b.Condition(c.Text, with...)
	case "setConditionExpression":
		return b.SetConditionExpression(c.Text)
	case "setCondition":
		f, err := filter.ParseJSON("condition", c.Value, filter.Limits{})
		if err != nil {
			return err
		}
		return b.SetCondition(f)
	}
	return fmt.Errorf("the builder has no %s", c.Do)
}

func (c *condition) fill(b *filter.ConditionBuilder) error {
	for i := range c.Of {
		if err := c.Of[i].on(b); err != nil {
			return err
		}
	}
	return nil
}

// goValue is a JSON value as Go callers would pass it: integers as int64, null as nil.
func goValue(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	n, ok := v.(json.Number)
	if !ok {
		return v, nil
	}
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	return n.Float64()
}
