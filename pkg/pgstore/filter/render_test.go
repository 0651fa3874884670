package filter_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// errNoSpelling is of operators that expressions do not have.
var errNoSpelling = errors.New("no spelling")

// render writes a filter as an expression.
func render(rng *rand.Rand, f filter.Filter) (string, error) {
	switch f := f.(type) {
	case filter.And:
		return renderAll(rng, f.Filters(), " AND ", "(")
	case filter.Or:
		return renderAll(rng, f.Filters(), "\tor\n", "(")
	case filter.Not:
		return renderAll(rng, f.Filters(), " OR ", "NOT (")
	case interface {
		Operator() string
		Key() string
		Values() []filter.Literal
	}:
		spelling, ok := map[string][]string{
			"equals": {"=", "=="}, "notEquals": {"!=", "<>"}, "greaterThan": {">"}, "greaterThanOrEquals": {">="}, "lessThan": {"<"}, "lessThanOrEquals": {"<="},
			"in": {"IN", "in"}, "notIn": {"NOT IN", "not  in"}, "isNull": {"IS NULL", "= NULL"}, "isNotNull": {"Is Not nulL", "<>NULL"},
		}[f.Operator()]
		if !ok {
			return "", errNoSpelling
		}
		text := "`" + strings.ReplaceAll(f.Key(), "`", "``") + "`" + pick(rng, spelling)
		var values []string
		for _, v := range f.Values() {
			values = append(values, renderValue(rng, v))
		}
		if strings.HasSuffix(f.Operator(), "n") && f.Operator() != "greaterThan" && f.Operator() != "lessThan" {
			return text + "(" + strings.Join(values, " , ") + ")", nil
		}
		return text + strings.Join(values, ""), nil
	}
	return "", errors.New("an unknown filter")
}

func renderAll(rng *rand.Rand, of []filter.Filter, between, open string) (string, error) {
	texts := make([]string, len(of))
	for i, f := range of {
		var err error
		if texts[i], err = render(rng, f); err != nil {
			return "", err
		}
	}
	return open + strings.Join(texts, between) + ")", nil
}

func renderValue(rng *rand.Rand, v filter.Literal) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	if rng.IntN(2) == 0 {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
	}
	return `'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + `'`
}

// TestExpressionsMeanTheirTrees writes random filters as expressions, with names and values of all kinds,
// and reads them back.
func TestExpressionsMeanTheirTrees(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 4))
	read := 0
	for range 10 {
		w := newWorld(rng, 6)
		for range 300 {
			f, _ := w.tree(3)
			text, err := render(rng, f)
			if errors.Is(err, errNoSpelling) || len(text) > 2000 {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			again, err := filter.ParseExpression("e", text, filter.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			read++
			one, err := filter.Bind(f, w.schema)
			if err != nil {
				t.Fatal(err)
			}
			other, err := filter.Bind(again, w.schema)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for _, doc := range w.docs {
				want, err := one.Match(doc)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := other.Match(doc); err != nil || got != want {
					t.Errorf("%s: %v, %v, want %v, of %s", text, got, err, want, canonical(t, f))
				}
			}
		}
	}
	if read < 1000 {
		t.Errorf("read only %d expressions", read)
	}
}
