package conformance_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// builderStep makes calls of a SearchBuilder one after the other and looks at what has been built.
type builderStep struct {
	Calls []builderCall `json:"calls"`
	// Filter is what the conditions must be; null: none.
	Filter json.RawMessage `json:"filter"`
	// Request holds matchers of the request, by path.
	Request map[string]json.RawMessage `json:"request"`
	// Store is searched with it, through the Go interfaces.
	Store    *storeStep    `json:"store"`
	Embedder *embedderStep `json:"embedder"`
	Results  *found        `json:"results"`
	// Send sends the request to the knowledge base over NATS.
	Send *struct {
		KB     string  `json:"kb"`
		Op     string  `json:"op"` // default retrieve
		Save   string  `json:"save"`
		Expect *expect `json:"expect"`
	} `json:"send"`
	// Fails is how building must fail.
	Fails *found `json:"fails"`
}

// builderCall is a call by the name of its method in lower case.
type builderCall struct {
	Do     string            `json:"do"`
	Key    string            `json:"key"`
	Value  json.RawMessage   `json:"value"` // "NaN" where that is meant
	Values []json.RawMessage `json:"values"`
	With   client.Connector  `json:"with"`
	Of     []builderCall     `json:"of"`   // of a group
	Text   string            `json:"text"` // an expression
	// Fails: the call is refused at once, at the place if one is given, and what was built stays as it was.
	Fails bool `json:"fails"`
	At    *int `json:"at"`
}

func (r *run) builder(t testing.TB, s *builderStep) {
	t.Helper()
	b := client.NewSearch()
	for i := range s.Calls {
		r.builderCall(t, b, &s.Calls[i])
	}
	if s.Filter != nil {
		r.builtFilter(t, b, s.Filter)
	}
	request, err := b.Build()
	if s.Fails != nil {
		s.Fails.compareError(t, r, err)
		return
	}
	if s.Request != nil || s.Send != nil {
		r.must(t, err)
	}
	body, err := json.Marshal(request)
	r.must(t, err)
	new(expect).compareData(func(format string, args ...any) { r.errorf(t, format, args...) }, body, s.Request)
	if s.Results != nil {
		store, embedder := newStore(s.Store), newEmbedder(s.Embedder)
		results, err := b.Search(t.Context(), store, embedder.orNil())
		s.Results.compare(t, r, outcome{results: passages(results), err: err, store: store, embedder: embedder})
	}
	if s.Send != nil {
		c := &call{KB: s.Send.KB, Op: s.Send.Op, Body: body, Save: s.Send.Save, Expect: s.Send.Expect}
		r.call(t, c)
	}
}

func (r *run) builderCall(t testing.TB, b *client.SearchBuilder, c *builderCall) {
	t.Helper()
	before := r.standing(t, b)
	err := cmp.Or(on(b, c), error(nil))
	if failed := b.TakeErr(); err == nil {
		err = failed
	}
	if (err != nil) != c.Fails {
		r.errorf(t, "%s %s: got %v, want it to fail: %v", c.Do, c.Key, err, c.Fails)
	}
	if !c.Fails {
		return
	}
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation {
		r.errorf(t, "%s %s: got %v, want VALIDATION_ERROR", c.Do, c.Key, err)
	}
	if after := r.standing(t, b); after != before {
		r.errorf(t, "%s: %s became %s though the call failed", c.Do, before, after)
	}
	var at *filter.ExpressionError
	if c.At != nil && (!errors.As(err, &at) || at.Pos != *c.At) {
		r.errorf(t, "%s: got %v, want an error at %d", c.Do, err, *c.At)
	}
}

// standing is what has been built, as text.
func (r *run) standing(t testing.TB, b *client.SearchBuilder) string {
	t.Helper()
	raw, err := b.FilterJSON()
	r.must(t, err)
	request, err := b.Build()
	if err != nil {
		return string(raw) // not whole yet
	}
	whole, err := json.Marshal(request)
	r.must(t, err)
	return string(raw) + string(whole)
}

func (r *run) builtFilter(t testing.TB, b *client.SearchBuilder, want json.RawMessage) {
	t.Helper()
	f, ok := b.Filter()
	if bytes.Equal(bytes.TrimSpace(want), []byte("null")) {
		if ok {
			r.errorf(t, "got the filter %s, want none", r.standing(t, b))
		}
		return
	}
	if !ok {
		r.errorf(t, "got no filter, want %s", want)
		return
	}
	r.sameTree(t, "the filter built", f, want)
}

// conditionsOf are the methods that a SearchBuilder and a group share.
type conditionsOf[B any] interface {
	Eq(key string, value any, with ...client.Connector) B
	Ne(key string, value any, with ...client.Connector) B
	Gt(key string, value any, with ...client.Connector) B
	Ge(key string, value any, with ...client.Connector) B
	Lt(key string, value any, with ...client.Connector) B
	Le(key string, value any, with ...client.Connector) B
	In(key string, values []any, with ...client.Connector) B
	Nin(key string, values []any, with ...client.Connector) B
	Between(key string, low, high any, with ...client.Connector) B
	ListContains(key string, element any, with ...client.Connector) B
	IsNull(key string, with ...client.Connector) B
	IsNotNull(key string, with ...client.Connector) B
	Group(fill func(*client.Conditions)) B
	OrGroup(fill func(*client.Conditions)) B
	NotGroup(fill func(*client.Conditions)) B
	Condition(expression string, with ...client.Connector) B
	SetConditionExpression(expression string) B
	SetCondition(f filter.Filter) B
}

// on makes a call. The error is of the case's text, not of the builder.
func on(b *client.SearchBuilder, c *builderCall) error {
	value, err := goValue(c.Value)
	if err != nil {
		return err
	}
	number, _ := value.(float64)
	if n, ok := value.(int64); ok {
		number = float64(n)
	}
	if value == "NaN" {
		number = math.NaN()
	}
	text, _ := value.(string)
	switch c.Do {
	case "text":
		b.Text(text)
	case "vector":
		v, err := goVector(c.Values)
		if err != nil {
			return err
		}
		b.Vector(v)
	case "maxResults":
		b.MaxResults(int(number))
	case "minScore":
		b.MinScore(number)
	case "withVector":
		b.WithVector(value == true)
	case "outputVector":
		b.OutputVector(value == true)
	case "outputFields":
		names := make([]string, len(c.Values))
		for i, raw := range c.Values {
			if err := json.Unmarshal(raw, &names[i]); err != nil {
				return err
			}
		}
		b.OutputFields(names...)
	default:
		return condition(b, c, value)
	}
	return nil
}

// condition makes a call of a condition.
func condition[B conditionsOf[B]](b B, c *builderCall, value any) error {
	var with []client.Connector
	if c.With != "" {
		with = append(with, c.With)
	}
	values := []any{}
	for _, raw := range c.Values {
		v, err := goValue(raw)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	one := map[string]func(string, any, ...client.Connector) B{
		"eq": b.Eq, "ne": b.Ne, "gt": b.Gt, "ge": b.Ge, "lt": b.Lt, "le": b.Le, "listContains": b.ListContains,
	}
	several := map[string]func(string, []any, ...client.Connector) B{"in": b.In, "nin": b.Nin}
	groups := map[string]func(func(*client.Conditions)) B{"group": b.Group, "orGroup": b.OrGroup, "notGroup": b.NotGroup}
	switch {
	case one[c.Do] != nil:
		one[c.Do](c.Key, value, with...)
	case several[c.Do] != nil:
		several[c.Do](c.Key, values, with...)
	case groups[c.Do] != nil:
		var failed error
		groups[c.Do](func(inner *client.Conditions) { failed = c.fill(inner) })
		return failed
	case c.Do == "between" && len(values) == 2:
		b.Between(c.Key, values[0], values[1], with...)
	case c.Do == "isNull":
		b.IsNull(c.Key, with...)
	case c.Do == "isNotNull":
		b.IsNotNull(c.Key, with...)
	case c.Do == "condition":
		b.Condition(c.Text, with...)
	case c.Do == "setConditionExpression":
		b.SetConditionExpression(c.Text)
	case c.Do == "setCondition":
		f, err := filter.ParseJSON("condition", c.Value, filter.Limits{})
		if err != nil {
			return err
		}
		b.SetCondition(f)
	default:
		return fmt.Errorf("the builder has no %s with these values", c.Do)
	}
	return nil
}

func (c *builderCall) fill(inner *client.Conditions) error {
	for i := range c.Of {
		value, err := goValue(c.Of[i].Value)
		if err != nil {
			return err
		}
		if err := condition(inner, &c.Of[i], value); err != nil {
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

func goVector(raw []json.RawMessage) ([]float32, error) {
	out := make([]float32, len(raw))
	for i, x := range raw {
		if err := json.Unmarshal(x, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
