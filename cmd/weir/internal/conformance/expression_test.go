package conformance_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// exprStep reads an expression: into a tree, given as the filter in JSON, or with an error at a place.
type exprStep struct {
	Text  string          `json:"text"`
	Tree  json.RawMessage `json:"tree"`
	Error *int            `json:"error"` // code points from 0
}

func (r *run) expressions(t testing.TB, steps []exprStep) {
	t.Helper()
	for _, s := range steps {
		if (s.Tree == nil) == (s.Error == nil) {
			t.Fatalf("%s: %s: want a tree or the place of an error", r.at, s.Text)
		}
		f, err := filter.ParseExpression("filterExpression", s.Text, filter.Limits{})
		if s.Error != nil {
			var at *filter.ExpressionError
			if !errors.As(err, &at) || at.Pos != *s.Error {
				r.errorf(t, "%s: got %v, want an error at %d", s.Text, err, *s.Error)
			}
			continue
		}
		if err != nil {
			r.errorf(t, "%s: %v", s.Text, err)
			continue
		}
		r.sameTree(t, s.Text, f, s.Tree)
	}
}

// sameTree compares a filter with one in JSON by what both are in canonical form.
func (r *run) sameTree(t testing.TB, what string, got filter.Filter, want json.RawMessage) {
	t.Helper()
	f, err := filter.ParseJSON("tree", want, filter.Limits{})
	if err != nil {
		t.Fatalf("%s: the tree wanted of %s: %v", r.at, what, err)
	}
	a, err := filter.Canonical(got)
	r.must(t, err)
	b, err := filter.Canonical(f)
	r.must(t, err)
	if string(a) != string(b) {
		r.errorf(t, "%s: got %s, want %s", what, a, b)
	}
}
