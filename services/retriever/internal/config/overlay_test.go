package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

// samples are two different values of each type that a leaf has.
func samples(t *testing.T, leaf reflect.Type) (a, b reflect.Value) {
	t.Helper()
	one, two, yes, no, x, y := 1, 2, true, false, 0.25, 0.5
	k, l := json.Number("3"), json.Number("4")
	for _, pair := range [][2]any{
		{&one, &two},
		{&yes, &no},
		{&x, &y},
		{&k, &l},
		{"a", "b"},
		{messages.RerankRRF, messages.RerankWeight},
		{[]messages.SearchType{messages.DenseVector}, []messages.SearchType{messages.FullText}},
		{[]string{"a"}, []string{"b", "c"}},
		{json.RawMessage(`1`), json.RawMessage(`2`)},
	} {
		if v := reflect.ValueOf(pair[0]); v.Type() == leaf {
			return v, reflect.ValueOf(pair[1])
		}
	}
	t.Fatalf("no samples of %s", leaf)
	return a, b
}

// leaves are the paths of everything in a configuration that is no object.
func leaves(of reflect.Type, path []int) [][]int {
	var out [][]int
	for i := range of.NumField() {
		f, here := of.Field(i), append(slices.Clone(path), i)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			out = append(out, leaves(f.Type.Elem(), here)...)
			continue
		}
		out = append(out, here)
	}
	return out
}

func at(c *messages.RetrievalConfiguration, path []int) reflect.Value {
	v := reflect.ValueOf(c)
	for _, i := range path {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem().Field(i)
	}
	return v
}

func name(path []int) string {
	t := reflect.TypeFor[messages.RetrievalConfiguration]()
	var out []string
	for _, i := range path {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		out = append(out, t.Field(i).Name)
		t = t.Field(i).Type
	}
	return strings.Join(out, ".")
}

// TestEveryLeafIsLaidOver takes each leaf there is, also those that come to be: it is the request's, else the knowledge
// base's, and no other leaf follows it (D-02).
func TestEveryLeafIsLaidOver(t *testing.T) {
	t.Parallel()
	ofKB := []string{"Limits", "FilterLimits.Characters", "FilterLimits.Depth", "FilterLimits.Conditions", "FilterLimits.Values"}
	all := leaves(reflect.TypeFor[messages.RetrievalConfiguration](), nil)
	if len(all) < 25 {
		t.Fatalf("found %d leaves", len(all))
	}
	for _, path := range all {
		if slices.Contains(ofKB, name(path)) {
			continue
		}
		a, b := samples(t, at(&messages.RetrievalConfiguration{}, path).Type())
		for _, c := range []struct{ lower, upper, want *reflect.Value }{{&a, nil, &a}, {nil, &b, &b}, {&a, &b, &b}, {nil, nil, nil}} {
			var lower, upper messages.RetrievalConfiguration
			if c.lower != nil {
				at(&lower, path).Set(*c.lower)
			}
			if c.upper != nil {
				at(&upper, path).Set(*c.upper)
			}
			got := overlay(&lower, &upper)
			for _, other := range all {
				v := at(&got, other)
				switch same := name(other) == name(path); {
				case same && c.want != nil:
					if !reflect.DeepEqual(v.Interface(), c.want.Interface()) {
						t.Errorf("%s: got %v of %v over %v", name(path), v, c.upper, c.lower)
					}
				case !v.IsZero():
					t.Errorf("%s is %v where %s was set", name(other), v, name(path))
				}
			}
		}
	}
}

// A filter and an expression are one leaf.
func TestFiltersAreOneLeaf(t *testing.T) {
	t.Parallel()
	lower := &messages.RetrievalConfiguration{Filter: json.RawMessage(`1`), FilterExpression: json.RawMessage(`2`)}
	for _, c := range []struct {
		upper, want messages.RetrievalConfiguration
	}{
		{messages.RetrievalConfiguration{}, *lower},
		{messages.RetrievalConfiguration{Filter: json.RawMessage(`null`)}, messages.RetrievalConfiguration{Filter: json.RawMessage(`null`)}},
		{messages.RetrievalConfiguration{FilterExpression: json.RawMessage(`3`)}, messages.RetrievalConfiguration{FilterExpression: json.RawMessage(`3`)}},
	} {
		if got := overlay(lower, &c.upper); string(got.Filter) != string(c.want.Filter) || string(got.FilterExpression) != string(c.want.FilterExpression) {
			t.Errorf("%+v: got %s and %s", c.upper, got.Filter, got.FilterExpression)
		}
	}
}
