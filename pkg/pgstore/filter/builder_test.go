package filter_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

func built(t *testing.T, b *filter.ConditionBuilder) string {
	t.Helper()
	f, ok := b.Filter()
	if !ok {
		return ""
	}
	return canonical(t, f)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestChainOfConditions is CT-51.
func TestChainOfConditions(t *testing.T) {
	t.Parallel()
	var b filter.ConditionBuilder
	must(t, b.Eq("a", "x"), b.Ne("b", 1), b.Gt("c", int8(2)), b.Ge("d", 2.5), b.Lt("e", uint64(math.MaxUint64)), b.Le("f", float32(0.1)),
		b.In("g", []any{"x", "y"}), b.Nin("h", []any{true}), b.Between("metadata.i", 1, 2.5))
	const want = `{"andAll":[{"equals":{"key":"a","value":"x"}},{"notEquals":{"key":"b","value":1}},{"greaterThan":{"key":"c","value":2}},` +
		`{"greaterThanOrEquals":{"key":"d","value":2.5}},{"lessThan":{"key":"e","value":18446744073709551615}},{"lessThanOrEquals":{"key":"f","value":0.1}},` +
		`{"in":{"key":"g","value":["x","y"]}},{"notIn":{"key":"h","value":[true]}},` +
		`{"andAll":[{"greaterThanOrEquals":{"key":"i","value":1}},{"lessThanOrEquals":{"key":"i","value":2.5}}]}]}`
	if got := built(t, &b); got != want {
		t.Errorf("CT-51: got %s, want %s", got, want)
	}
	var c filter.ConditionBuilder
	must(t, c.StartsWith("a", "x"), c.Contains("b", "y"), c.ListContains("c", "z"), c.IsNull("d"), c.IsNotNull("e"), c.Eq("f", nil), c.Ne("g", nil),
		c.Eq("h", time.Date(2024, 5, 1, 2, 0, 0, 5_999_999, time.FixedZone("", 7200))))
	const rest = `{"andAll":[{"startsWith":{"key":"a","value":"x"}},{"stringContains":{"key":"b","value":"y"}},{"listContains":{"key":"c","value":"z"}},` +
		`{"isNull":{"key":"d"}},{"isNotNull":{"key":"e"}},{"isNull":{"key":"f"}},{"isNotNull":{"key":"g"}},{"equals":{"key":"h","value":"2024-05-01T00:00:00.005Z"}}]}`
	if got := built(t, &c); got != rest {
		t.Errorf("got %s, want %s", got, rest)
	}
}

// TestBadConditionsLeaveTheBuilder is CT-52 and CT-57.
func TestBadConditionsLeaveTheBuilder(t *testing.T) {
	t.Parallel()
	var b filter.ConditionBuilder
	must(t, b.Eq("a", "x"), b.Gt("b", 1, filter.ConnectOr))
	before := built(t, &b)
	stop := errors.New("stop")
	for name, call := range map[string]func() error{
		"CT-52 empty in":      func() error { return b.In("a", nil) },
		"CT-52 empty nin":     func() error { return b.Nin("a", []any{}) },
		"CT-52 null in":       func() error { return b.In("a", []any{"x", nil}) },
		"CT-52 null nin":      func() error { return b.Nin("a", []any{nil}) },
		"CT-52 between low":   func() error { return b.Between("a", nil, 1) },
		"CT-52 between high":  func() error { return b.Between("a", 1, nil) },
		"CT-52 between kinds": func() error { return b.Between("a", 1, "2") },
		"CT-52 blank key":     func() error { return b.Eq(" \t", 1) },
		"CT-52 empty key":     func() error { return b.Eq("", nil) },
		"CT-52 gt nil":        func() error { return b.Gt("a", nil) },
		"CT-52 le nil":        func() error { return b.Le("a", nil) },
		"CT-52 NaN":           func() error { return b.Eq("a", math.NaN()) },
		"CT-52 slice":         func() error { return b.Eq("a", []string{"x"}) },
		"CT-52 invalid text":  func() error { return b.Eq("a", "\xff") },
		"C-38 NOT":            func() error { return b.Eq("a", 1, "NOT") },
		"C-38 two":            func() error { return b.Eq("a", 1, filter.ConnectAnd, filter.ConnectOr) },
		"CT-57 condition":     func() error { return b.Condition("bad ==") },
		"CT-57 set":           func() error { return b.SetConditionExpression("bad ==") },
		"set nil":             func() error { return b.SetCondition(nil) },
		"add nil":             func() error { return b.Add(nil) },
		"bad in group": func() error {
			return b.Group(func(g *filter.ConditionBuilder) error { return errors.Join(g.Eq("c", 1), g.In("c", nil)) })
		},
		"error of group": func() error {
			return b.OrGroup(func(g *filter.ConditionBuilder) error { return errors.Join(g.Eq("c", 1), stop) })
		},
	} {
		err := call()
		if err == nil {
			t.Errorf("%s passes", name)
		} else if name != "error of group" {
			wantInvalid(t, name, err, "")
		}
		if got := built(t, &b); got != before {
			t.Fatalf("%s changed the builder to %s", name, got)
		}
	}
	var at *filter.ExpressionError
	if err := b.Condition("bad =="); !errors.As(err, &at) || at.Pos != 6 {
		t.Errorf("CT-57: got %v, want an error at 6", err)
	}
}

// TestGroups is CT-53, and the first condition of C-39.
func TestGroups(t *testing.T) {
	t.Parallel()
	group := func(g *filter.ConditionBuilder) error {
		return errors.Join(g.Eq("visibility", "public"), g.Eq("owner", "u", filter.ConnectOr))
	}
	const (
		tenant = `{"equals":{"key":"t","value":"a"}}`
		either = `{"orAll":[{"equals":{"key":"visibility","value":"public"}},{"equals":{"key":"owner","value":"u"}}]}`
	)
	for name, c := range map[string]struct {
		add  func(*filter.ConditionBuilder) error
		want string
	}{
		"CT-53 group": {func(b *filter.ConditionBuilder) error { return b.Group(group) }, `{"andAll":[` + tenant + `,` + either + `]}`},
		"CT-53 or":    {func(b *filter.ConditionBuilder) error { return b.OrGroup(group) }, `{"orAll":[` + tenant + `,` + either + `]}`},
		"CT-53 not":   {func(b *filter.ConditionBuilder) error { return b.NotGroup(group) }, `{"andAll":[` + tenant + `,{"notAll":[` + either + `]}]}`},
		"CT-53 empty": {func(b *filter.ConditionBuilder) error {
			return b.OrGroup(func(*filter.ConditionBuilder) error { return nil })
		}, tenant},
		"CT-58 or expression": {func(b *filter.ConditionBuilder) error {
			return b.Condition("visibility = 'public' OR owner = 'u'", filter.ConnectOr)
		}, `{"orAll":[` + tenant + `,` + either + `]}`},
		"C-38 or not": {func(b *filter.ConditionBuilder) error { return b.Eq("v", 1, filter.ConnectOrNot) }, `{"orAll":[` + tenant + `,{"notAll":[{"equals":{"key":"v","value":1}}]}]}`},
	} {
		var b filter.ConditionBuilder
		must(t, b.Eq("t", "a"), c.add(&b))
		if got := built(t, &b); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	for _, with := range []filter.Connector{filter.ConnectAndNot, filter.ConnectOrNot} {
		var b filter.ConditionBuilder
		must(t, b.Eq("t", "a", with))
		if got, want := built(t, &b), `{"notAll":[`+tenant+`]}`; got != want {
			t.Errorf("C-39: got %s, want %s", got, want)
		}
	}
}

// TestExpressionsAreGroups is C-40: what is added after an expression binds the whole of it.
func TestExpressionsAreGroups(t *testing.T) {
	t.Parallel()
	var b filter.ConditionBuilder
	must(t, b.Condition("a = 1 OR b = 2"), b.Eq("t", "x"))
	const want = `{"andAll":[{"orAll":[{"equals":{"key":"a","value":1}},{"equals":{"key":"b","value":2}}]},{"equals":{"key":"t","value":"x"}}]}`
	if got := built(t, &b); got != want {
		t.Errorf("C-40: got %s, want %s", got, want)
	}
}

// TestReplacing is CT-58.
func TestReplacing(t *testing.T) {
	t.Parallel()
	var b filter.ConditionBuilder
	must(t, b.Eq("a", 1), b.Eq("b", 2, filter.ConnectOr), b.SetConditionExpression("c = 3 OR d = 4"), b.Eq("e", 5))
	const want = `{"andAll":[{"orAll":[{"equals":{"key":"c","value":3}},{"equals":{"key":"d","value":4}}]},{"equals":{"key":"e","value":5}}]}`
	if got := built(t, &b); got != want {
		t.Errorf("CT-58: got %s, want %s", got, want)
	}
	must(t, b.SetCondition(mustExpression(t, "f = 6")))
	if got := built(t, &b); got != `{"equals":{"key":"f","value":6}}` {
		t.Errorf("CT-58: got %s", got)
	}
}

func TestBuildersShareNothing(t *testing.T) {
	t.Parallel()
	var b filter.ConditionBuilder
	must(t, b.Eq("a", 1))
	values := []any{1, 2}
	must(t, b.In("b", values))
	var kept *filter.ConditionBuilder
	must(t, b.Group(func(g *filter.ConditionBuilder) error { kept = g; return g.Eq("c", 3) }))
	f, _ := b.Filter()
	before := canonical(t, f)
	c := b.Clone()
	values[0] = 99
	must(t, c.Eq("x", 1), b.Eq("y", 2), kept.Eq("z", 3))
	group, ok := f.(filter.And)
	if !ok {
		t.Fatalf("%T", f)
	}
	group.Filters()[0] = nil
	set, ok := group.Filters()[1].(filter.InSet)
	if !ok {
		t.Fatalf("%T", group.Filters()[1])
	}
	set.Values()[0] = filter.Literal{}
	if got := canonical(t, f); got != before {
		t.Errorf("the filter became %s", got)
	}
	if got, want := built(t, c), fmt.Sprintf(`%s,{"equals":{"key":"x","value":1}}]}`, before[:len(before)-2]); got != want {
		t.Errorf("the clone is %s, want %s", got, want)
	}
}

// TestThreeWritingsOneFilter is CT-59.
func TestThreeWritingsOneFilter(t *testing.T) {
	t.Parallel()
	lib := newLibrary(t)
	var b filter.ConditionBuilder
	must(t, b.In("category", []any{"technology", "art"}), b.Between("score", 60, 90), b.Group(func(g *filter.ConditionBuilder) error {
		return errors.Join(g.StartsWith("title", "產品"), g.IsNull("title", filter.ConnectOr))
	}))
	must(t, b.SetCondition(mustExpression(t, "category IN ('technology', 'art') AND score BETWEEN 60 AND 9e1 AND NOT (year = 2026 OR published >= '2024-06-01')")))
	var c filter.ConditionBuilder
	must(t, c.In("category", []any{"technology", "art"}), c.Between("score", 60, 90), c.NotGroup(func(g *filter.ConditionBuilder) error {
		return errors.Join(g.Eq("year", 2026), g.Ge("published", "2024-06-01", filter.ConnectOr))
	}))
	text := mustJSON(t, `{"andAll":[{"in":{"key":"category","value":["technology","art"]}},
		{"andAll":[{"greaterThanOrEquals":{"key":"score","value":60.0}},{"lessThanOrEquals":{"value":90,"key":"score"}}]},
		{"notAll":[{"orAll":[{"equals":{"key":"year","value":2026}},{"greaterThanOrEquals":{"key":"published","value":"2024-06-01"}}]}]}]}`)
	fromExpression, _ := b.Filter()
	fromBuilder, _ := c.Filter()
	want, wantArgs := mustBind(t, text).SQL("d", 1)
	for name, f := range map[string]filter.Filter{"expression": fromExpression, "builder": fromBuilder} {
		if got, want := canonical(t, f), canonical(t, text); got != want {
			t.Errorf("CT-59 %s: %s, JSON: %s", name, got, want)
		}
		bound := mustBind(t, f)
		if sql, args := bound.SQL("d", 1); sql != want || fmt.Sprint(args) != fmt.Sprint(wantArgs) {
			t.Errorf("CT-59 %s: %s %v, JSON: %s %v", name, sql, args, want, wantArgs)
		}
		if got := lib.find(t, bound); got != "d1 d4" {
			t.Errorf("CT-59 %s: finds %q", name, got)
		}
	}
	// CT-56: the flat chain.
	var flat filter.ConditionBuilder
	must(t, flat.Eq("category", "science"), flat.Gt("score", 90, filter.ConnectOr), flat.Eq("year", 2026))
	f, _ := flat.Filter()
	if got := lib.find(t, mustBind(t, f)); got != "d2 d3" {
		t.Errorf("CT-56: got %q (%s)", got, canonical(t, f))
	}
}

// TestMandatoryFilter is D-15.
func TestMandatoryFilter(t *testing.T) {
	t.Parallel()
	lib := newLibrary(t)
	m, err := filter.ParseMandatory("mandatoryFilter", []byte(`{"equals":{"key":"tenant","value":"$tenant"}}`), fixtureSchema, filter.Limits{}, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	own, err := m.Bind(map[string]string{"tenant": "t1"})
	if err != nil {
		t.Fatal(err)
	}
	wide := mustBind(t, mustExpression(t, "category = 'art' OR category != 'art'"))
	if got := lib.find(t, wide); got != "d1 d2 d3 d4" {
		t.Errorf("got %q", got)
	}
	if got := lib.find(t, filter.Conjunction(own, wide)); got != "d1 d2 d4" {
		t.Errorf("D-15: got %q", got)
	}
	other, err := m.Bind(map[string]string{"tenant": `t2' OR '1'='1`})
	if err != nil {
		t.Fatal(err)
	}
	if got := lib.find(t, other); got != "" {
		t.Errorf("D-15: got %q", got)
	}
	_, err = m.Bind(nil)
	wantInvalid(t, "no fact", err, "$tenant stands for nothing")
	for text, holds := range map[string]string{
		`{"equals":{"key":"tenant","value":"$tenat"}}`:                 "mandatoryFilter.equals.value: field \"tenant\": $tenat stands for nothing",
		`{"notAll":[{"in":{"key":"tenant","value":["a","$nobody"]}}]}`: "mandatoryFilter.notAll[0].in.value[1]",
		`{"equals":{"key":"nope","value":"$tenant"}}`:                  `"nope"`,
		`{}`:                        "mandatoryFilter",
		`"tenant = '$tenat'"`:       "position 9: field \"tenant\": $tenat stands for nothing",
		`"tenant = 't1' OR nope=1"`: "position 17",
		`"tenant = "`:               "position 9",
		`"\ud800"`:                  "surrogate",
		`["tenant"]`:                "mandatoryFilter",
	} {
		_, err := filter.ParseMandatory("mandatoryFilter", []byte(text), fixtureSchema, filter.Limits{}, "tenant")
		wantInvalid(t, text, err, holds)
	}
	stored, given, err := filter.OfKnowledgeBase([]byte(`"tenant = '$tenant' AND (score > 0 OR score IS NULL)"`), fixtureSchema, "t1")
	if err != nil || !given {
		t.Fatal(given, err)
	}
	if got := lib.find(t, filter.Conjunction(stored, wide)); got != "d1 d2 d4" {
		t.Errorf("as an expression: got %q", got)
	}
	for _, none := range []string{"", "null"} {
		if _, given, err := filter.OfKnowledgeBase([]byte(none), fixtureSchema, "t1"); given || err != nil {
			t.Errorf("%q: got %v (%v), want no filter", none, given, err)
		}
	}
	_, given, err = filter.OfKnowledgeBase([]byte(`"nope = 1"`), fixtureSchema, "t1")
	if _, callers := messages.AsError(err); err == nil || given || callers {
		t.Errorf("a stored filter that does not fit: got %v (%v), want an error that is no caller's", given, err)
	}
	f, err := filter.Substitute(mustExpression(t, "a = '$$tenant' OR a = '$5' OR a = '$' OR a = '$tenant!' OR a = '$tenant'"), map[string]string{"tenant": "$tenant"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"orAll":[{"equals":{"key":"a","value":"$tenant"}},{"equals":{"key":"a","value":"$5"}},{"equals":{"key":"a","value":"$"}},{"equals":{"key":"a","value":"$tenant!"}},{"equals":{"key":"a","value":"$tenant"}}]}`
	if got := canonical(t, f); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var none filter.MandatoryFilter
	if b, err := none.Bind(nil); err == nil {
		t.Errorf("the zero mandatory filter binds to %v", b)
	}
	// A client's placeholder is only text.
	if _, err := filter.Bind(mustExpression(t, "category = '$tenant'"), messages.MetadataSchema{{Name: "category", Type: messages.TypeString}}); err != nil {
		t.Error(err)
	}
}
