package filter_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

func TestFiltersAreWrittenAsExpressions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ json, want string }{
		{`{"equals":{"key":"category","value":"O'Brien \\ \"x\"\n"}}`, "category = 'O''Brien \\\\ \"x\"\n'"},
		{`{"notIn":{"key":"score","value":[1,-2.5,9007199254740993]}}`, "score NOT IN (1, -2.5, 9007199254740993)"},
		{`{"equals":{"key":"order by","value":true}}`, "`order by` = true"},
		{`{"equals":{"key":"in","value":1}}`, "`in` = 1"},
		{`{"equals":{"key":"a` + "`" + `b","value":1}}`, "`a``b` = 1"},
		{`{"isNull":{"key":"Größe"}}`, "Größe IS NULL"},
		{`{"greaterThan":{"key":"score","value":123456789012345678901234}}`, "score > 1.23456789012345678901234e23"},
		{`{"lessThan":{"key":"score","value":12345678901234567890}}`, "score < 12345678901234567890e0"},
		{`{"andAll":[{"notAll":[{"notAll":[{"isNull":{"key":"a"}}]}]}]}`, "NOT NOT a IS NULL"},
		{
			`{"notAll":[{"equals":{"key":"a","value":1}},{"orAll":[{"lessThan":{"key":"b","value":2}},{"isNotNull":{"key":"c"}}]}]}`,
			"NOT (a = 1 OR (b < 2 OR c IS NOT NULL))",
		},
	} {
		f := mustJSON(t, c.json)
		got, err := filter.Expression(f)
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.json, got, err, c.want)
			continue
		}
		again, err := filter.Expression(mustExpression(t, got))
		if err != nil || again != got {
			t.Errorf("%s: read again it is %q, %v", got, again, err)
		}
	}
}

func TestWhatExpressionsCannotSayIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"startsWith":{"key":"title","value":"x"}}`, `{"stringContains":{"key":"title","value":"x"}}`,
		`{"notAll":[{"listContains":{"key":"tags","value":"x"}}]}`,
	} {
		_, err := filter.Expression(mustJSON(t, text))
		var e *messages.Error
		if !errors.As(err, &e) || e.Code != messages.CodeNotSupported {
			t.Errorf("%s: got %v, want NOT_SUPPORTED", text, err)
		}
	}
	for _, f := range []filter.Filter{nil, filter.AllOf(), filter.NoneOf(filter.And{}), filter.Comparison{}} {
		if text, err := filter.Expression(f); err == nil {
			t.Errorf("%#v: got %q, want an error", f, text)
		}
	}
}

// Random filters, written and read again, find the same documents.
func TestWrittenFiltersMeanTheSame(t *testing.T) {
	t.Parallel()
	rng, written := rand.New(rand.NewPCG(7, 7)), 0
	for range 10 {
		w := newWorld(rng, 6)
		for range 200 {
			f, _ := w.tree(3)
			text, err := filter.Expression(f)
			var e *messages.Error
			if errors.As(err, &e) && e.Code == messages.CodeNotSupported {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			again, err := filter.ParseExpression("e", text, filter.Limits{Characters: 1 << 20})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			written++
			one, other := bindIn(t, w, f), bindIn(t, w, again)
			for _, doc := range w.docs {
				want, err := one.Match(doc)
				got, err2 := other.Match(doc)
				if errors.Join(err, err2) != nil || got != want {
					t.Errorf("%s: %v, want %v, of %s (%v)", text, got, want, canonical(t, f), errors.Join(err, err2))
				}
			}
		}
	}
	if written < 500 {
		t.Errorf("wrote only %d expressions", written)
	}
}

func bindIn(t *testing.T, w *world, f filter.Filter) filter.Bound {
	t.Helper()
	b, err := filter.Bind(f, w.schema)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
