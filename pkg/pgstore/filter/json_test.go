package filter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

func TestFiltersInJSON(t *testing.T) {
	t.Parallel()
	lib := newLibrary(t)
	for _, c := range []struct{ id, filter, want string }{
		{"CT-29", `{"andAll":[{"in":{"key":"category","value":["technology","science"]}},{"greaterThanOrEquals":{"key":"score","value":60}},{"startsWith":{"key":"title","value":"產品"}}]}`, "d1"},
		{"CT-30", `{"orAll":[{"equals":{"key":"category","value":"science"}},{"greaterThan":{"key":"score","value":90}}]}`, "d2 d3"},
		{"CT-31", `{"notAll":[{"equals":{"key":"category","value":"technology"}},{"greaterThan":{"key":"score","value":90}}]}`, "d2 d4"},
		{"CT-33", `{"andAll":[{"orAll":[{"equals":{"key":"category","value":"art"}},{"notAll":[{"lessThan":{"key":"score","value":90}}]}]},{"notAll":[{"equals":{"key":"year","value":2026}}]}]}`, "d4"},
		{"CT-36", `{"equals":{"key":"score","value":60.0}}`, "d1"},
		{"CT-36", `{"equals":{"key":"score","value":6e1}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"2024-05-01 00:00:00"}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"20240501 000000"}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"2024-05-01T00:00:00"}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"2024-05-01T02:00:00.000999+02:00"}}`, "d1"},
		{"CT-38", `{"greaterThanOrEquals":{"key":"published","value":"2024-05-02"}}`, ""},
		{"CT-39", `{"listContains":{"key":"tags","value":"prod"}}`, "d1"},
		{"CT-39", `{"in":{"key":"tags","value":["docs","x"]}}`, "d1"},
		{"CT-39", `{"notIn":{"key":"tags","value":["prod"]}}`, "d3"},
		{"CT-39", `{"equals":{"key":"tags","value":"docs"}}`, "d1"},
		{"CT-39", `{"notEquals":{"key":"tags","value":"docs"}}`, "d3"},
		{"CT-41", `{"andAll":[{"equals":{"key":"category","value":"art"}}]}`, "d4"},
		{"CT-43", `{"isNull":{"key":"published"}}`, "d2 d3 d4"},
		{"CT-43", `{"isNotNull":{"key":"published"}}`, "d1"},
		{"CT-43", `{"isNotNull":{"key":"tags"}}`, "d1 d3"},
		{"D-04", `{"notEquals":{"key":"title","value":"手冊"}}`, "d1 d2"},
		{"D-04", `{"notAll":[{"equals":{"key":"title","value":"手冊"}}]}`, "d1 d2 d4"},
		{"D-04", `{"notIn":{"key":"year","value":[2024]}}`, "d2 d3"},
		{"C-30", `{"stringContains":{"key":"title","value":"品手"}}`, "d1"},
		{"C-30", `{"stringContains":{"key":"title","value":""}}`, "d1 d2 d3"},
		{"C-30", `{"startsWith":{"key":"title","value":""}}`, "d1 d2 d3"},
		{"C-30", `{"startsWith":{"key":"category","value":"%"}}`, ""},
		{"C-30", `{"stringContains":{"key":"category","value":"_"}}`, ""},
		{"C-30", `{"startsWith":{"key":"category","value":"Tech"}}`, ""},
	} {
		t.Run(c.id, func(t *testing.T) {
			if got := lib.find(t, mustBind(t, mustJSON(t, c.filter))); got != c.want {
				t.Errorf("%s: got %q, want %q", c.filter, got, c.want)
			}
		})
	}
}

// TestApplicability is CT-34: every operator on every type.
func TestApplicability(t *testing.T) {
	t.Parallel()
	scalars := "string long double boolean date"
	lists := "string_list long_list double_list boolean_list date_list"
	table := map[string]string{
		"equals": scalars + " " + lists, "notEquals": scalars + " " + lists, "in": scalars + " " + lists, "notIn": scalars + " " + lists,
		"greaterThan": "long double date", "greaterThanOrEquals": "long double date", "lessThan": "long double date", "lessThanOrEquals": "long double date",
		"startsWith": "string", "stringContains": "string", "listContains": lists,
		"isNull": scalars + " " + lists, "isNotNull": scalars + " " + lists,
	}
	values := map[string]string{"string": `"a"`, "long": "1", "double": "1.5", "boolean": "true", "date": `"2024-05-01"`}
	seen := 0
	for _, op := range filter.OperatorNames() {
		allowed, isLeaf := table[op]
		if !isLeaf {
			continue
		}
		for _, typ := range strings.Fields(scalars + " " + lists) {
			seen++
			value := values[strings.TrimSuffix(typ, "_list")]
			if op == "in" || op == "notIn" {
				value = "[" + value + "]"
			}
			text := fmt.Sprintf(`{%q:{"key":"f","value":%s}}`, op, value)
			if op == "isNull" || op == "isNotNull" {
				text = fmt.Sprintf(`{%q:{"key":"f"}}`, op)
			}
			err := fromJSON(text, messages.MetadataSchema{{Name: "f", Type: messages.MetadataType(typ)}})
			if ok := strings.Contains(" "+allowed+" ", " "+typ+" "); ok != (err == nil) {
				t.Errorf("CT-34 %s on %s: %v, want it to apply: %v", op, typ, err, ok)
			} else if !ok {
				wantInvalid(t, text, err, fmt.Sprintf(`filter.%s: %s does not apply to field "f" of type %s`, op, op, typ))
			}
		}
	}
	if seen != 130 {
		t.Errorf("saw %d pairs: the tables differ", seen)
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, filter, holds string }{
		{"CT-35", `{"equals":{"key":"nope","value":1}}`, `filter.equals: field "nope" is not declared`},
		{"CT-35", `{"notAll":[{"orAll":[{"notAll":[{"notEquals":{"key":"nope","value":1}}]}]}]}`, `filter.notAll[0].orAll[0].notAll[0].notEquals: field "nope"`},
		{"CT-35", `{"equals":{"key":"Category","value":"art"}}`, `"Category"`},
		{"CT-70", `{"equals":{"key":"metadata.category","value":"art"}}`, `"metadata.category"`},
		{"D-23", `{"equals":{"key":"tenant","value":"t2"}}`, `field "tenant" is internal`},
		{"D-23", `{"notAll":[{"isNull":{"key":"tenant"}}]}`, `field "tenant" is internal`},
		{"CT-36", `{"equals":{"key":"score","value":"60"}}`, `filter.equals.value: field "score": must be of type long, got a string`},
		{"CT-36", `{"equals":{"key":"score","value":1.5}}`, `filter.equals.value: field "score": must be an integer of 64 bits`},
		{"CT-36", `{"equals":{"key":"score","value":9223372036854775808}}`, `filter.equals.value: field "score": must be an integer`},
		{"CT-36", `{"equals":{"key":"score","value":true}}`, `filter.equals.value`},
		{"CT-36", `{"in":{"key":"score","value":[1,2,"3"]}}`, `filter.in.value[2]: field "score": must be of type long`},
		{"CT-36", `{"equals":{"key":"published","value":"2024/05/01"}}`, `filter.equals.value`},
		{"CT-36", `{"equals":{"key":"published","value":20240501}}`, `filter.equals.value`},
		{"CT-36", `{"equals":{"key":"category","value":1}}`, `filter.equals.value`},
		{"CT-36", `{"equals":{"key":"category","value":null}}`, `filter.equals.value: must not be null`},
		{"CT-36", `{"in":{"key":"category","value":["a",null]}}`, `filter.in.value[1]: must not be null`},
		{"CT-36", `{"equals":{"key":"tags","value":[]}}`, `filter.equals.value: must be a single value, got a list`},
		{"CT-36", `{"equals":{"key":"tags","value":{}}}`, `filter.equals.value: must be a single value, got an object`},
		{"D-07", `{"equals":{"key":"category","value":"a\u0000b"}}`, `filter.equals.value`},
		{"D-07", `{"equals":{"key":"category","value":"\ud83d"}}`, `surrogate`},
		{"D-07", "{\"equals\":{\"key\":\"category\",\"value\":\"\xff\"}}", `UTF-8`},
		{"CT-41", `{}`, `filter: must have one operator, has none`},
		{"CT-41", ``, `filter: `},
		{"CT-41", `null`, `filter: must be an object with one operator, got null`},
		{"CT-41", `[]`, `filter: must be an object with one operator, got a list`},
		{"CT-41", `"a"`, `filter: must be an object with one operator, got a string`},
		{"CT-41", `{"isNull":{"key":"year"}} {}`, `filter: `},
		{"CT-41", `{"isNull":{"key":"year"}`, `filter: `},
		{"CT-41", `{"isNull":{"key":"year"},"isNotNull":{"key":"year"}}`, `filter: must have one operator, has isNull and "isNotNull"`},
		{"CT-41", `{"isNull":{"key":"year"},"isNull":{"key":"year"}}`, `filter: must have one operator`},
		{"CT-41", `{"andAll":[]}`, `filter.andAll: is empty`},
		{"CT-41", `{"orAll":[]}`, `filter.orAll: is empty`},
		{"CT-41", `{"notAll":[]}`, `filter.notAll: is empty`},
		{"CT-41", `{"andAll":{}}`, `filter.andAll: must be a list of filters, got an object`},
		{"CT-41", `{"andAll":[{"isNull":{"key":"year"}},{}]}`, `filter.andAll[1]: must have one operator, has none`},
		{"CT-41", `{"andAll":[null]}`, `filter.andAll[0]`},
		{"CT-41", `{"in":{"key":"year","value":2024}}`, `filter.in.value: must be a list of values, got a number`},
		{"CT-41", `{"in":{"key":"year","value":[]}}`, `filter.in.value: the list of values is empty`},
		{"CT-41", `{"notIn":{"key":"year","value":[[1]]}}`, `filter.notIn.value[0]: must be a single value`},
		{"C-43", `{"equals":{"key":"year","value":1,"boost":2}}`, `filter.equals.boost: is not a known key`},
		{"C-43", `{"equals":{"Key":"year","value":1}}`, `filter.equals.Key: is not a known key`},
		{"C-43", `{"equals":{"key":"year","key":"score","value":1}}`, `filter.equals.key: is given twice`},
		{"C-43", `{"equals":{"key":"year","value":1,"value":2}}`, `filter.equals.value: is given twice`},
		{"C-43", `{"equals":{"key":"year"}}`, `filter.equals.value: is required`},
		{"C-43", `{"equals":{"value":1}}`, `filter.equals.key: is required`},
		{"C-43", `{"equals":{"key":7,"value":1}}`, `filter.equals.key: must be a string, got a number`},
		{"C-43", `{"equals":{"key":"","value":1}}`, `filter.equals.key: is empty`},
		{"C-43", `{"equals":[1]}`, `filter.equals: must be an object, got a list`},
		{"C-43", `{"Equals":{"key":"year","value":1}}`, `filter.Equals: is no operator`},
		{"C-43", `{"isNull":{"key":"year","value":1}}`, `filter.isNull.value: must be absent`},
	} {
		t.Run(c.id, func(t *testing.T) {
			wantInvalid(t, c.filter, fromJSON(c.filter, fixtureSchema), c.holds)
		})
	}
}

// TestBooleansAndDoublesAreTyped is CT-36 for the types the fixture lacks.
func TestBooleansAndDoublesAreTyped(t *testing.T) {
	t.Parallel()
	schema := messages.MetadataSchema{{Name: "b", Type: messages.TypeBoolean}, {Name: "bs", Type: messages.TypeBooleanList}, {Name: "d", Type: messages.TypeDouble}}
	for text, holds := range map[string]string{
		`{"equals":{"key":"b","value":1}}`:             "filter.equals.value: field \"b\": must be of type boolean, got a number",
		`{"equals":{"key":"b","value":"true"}}`:        "filter.equals.value: field \"b\": must be of type boolean, got a string",
		`{"listContains":{"key":"bs","value":0}}`:      "filter.listContains.value: field \"bs\": must be of type boolean",
		`{"greaterThan":{"key":"d","value":"1"}}`:      "filter.greaterThan.value: field \"d\": must be of type double, got a string",
		`{"in":{"key":"d","value":[1,2.5,true]}}`:      "filter.in.value[2]: field \"d\": must be of type double, got a boolean",
		`{"notIn":{"key":"b","value":[true,"false"]}}`: "filter.notIn.value[1]",
	} {
		wantInvalid(t, "CT-36 "+text, fromJSON(text, schema), holds)
	}
	if err := fromJSON(`{"andAll":[{"equals":{"key":"b","value":true}},{"equals":{"key":"d","value":3}}]}`, schema); err != nil {
		t.Error(err)
	}
}

// TestLimits is CT-44.
func TestLimits(t *testing.T) {
	t.Parallel()
	one := `{"isNull":{"key":"year"}}`
	nested := func(n int) string { return strings.Repeat(`{"notAll":[`, n) + one + strings.Repeat(`]}`, n) }
	many := func(n int) string { return `{"orAll":[` + strings.Repeat(one+",", n-1) + one + `]}` }
	set := func(n int) string {
		return `{"in":{"key":"year","value":[` + strings.Repeat("1,", n-1) + `1]}}`
	}
	words := func(n int) string { return strings.Repeat("year = 1 OR ", n-1) + "year = 1" }
	values := func(n int) string { return "year IN (" + strings.Repeat("1,", n-1) + "1)" }
	padded := func(n int) string { return "year = 1" + strings.Repeat(" ", n-8) }
	for _, ok := range []string{nested(16), many(256), set(256)} {
		if err := fromJSON(ok, fixtureSchema); err != nil {
			t.Errorf("CT-44 %.60s: %v", ok, err)
		}
	}
	for _, ok := range []string{
		padded(2048), values(256), strings.Repeat("(", 16) + "year = 1" + strings.Repeat(")", 16), strings.Repeat("NOT ", 16) + "year = 1",
	} {
		if err := expression(ok, fixtureSchema); err != nil {
			t.Errorf("CT-44 %.60s: %v", ok, err)
		}
	}
	wantInvalid(t, "CT-44", fromJSON(nested(17), fixtureSchema), "is nested deeper than 16 levels")
	wantInvalid(t, "CT-44", fromJSON(nested(1000), fixtureSchema), "filter: is nested deeper")
	wantInvalid(t, "CT-44", fromJSON(many(257), fixtureSchema), "filter.orAll[256].isNull: has more than 256 conditions")
	wantInvalid(t, "CT-44", fromJSON(set(257), fixtureSchema), "filter.in.value: has more than 256 values")
	wantInvalid(t, "CT-44", fromJSON(`{"isNull":{"key":"`+strings.Repeat("a", 1<<20)+`"}}`, fixtureSchema), "filter: has more than 1048576 bytes")
	wantPosition(t, padded(2049), 2048)
	wantPosition(t, values(257), 9+2*256)
	wantPosition(t, strings.Repeat("(", 17)+"year = 1"+strings.Repeat(")", 17), 16)
	wantPosition(t, strings.Repeat("NOT ", 17)+"year = 1", 64)
	wide := filter.Limits{Characters: 1 << 16}
	if _, err := filter.ParseExpression("e", words(257), wide); err == nil {
		t.Error("CT-44: 257 predicates in an expression pass")
	}
	if _, err := filter.ParseExpression("e", words(256), wide); err != nil {
		t.Errorf("CT-44: 256 predicates: %v", err)
	}
	// Parentheses do not hide depth: each holds an AND in an OR.
	deep := "y = 1"
	for range 9 {
		deep = "x = 1 OR x = 2 AND (" + deep + ")"
	}
	if _, err := filter.ParseExpression("e", deep, filter.Limits{}); err == nil {
		t.Error("CT-44: a tree of depth 18 passes")
	}
}

// Trees made in Go are held to the same limits, and to form.
func TestTreesMadeInGoAreChecked(t *testing.T) {
	t.Parallel()
	leaf, err := filter.New("equals", "year", 2024)
	if err != nil {
		t.Fatal(err)
	}
	deep := leaf
	for range 100_000 {
		deep = filter.NoneOf(deep)
	}
	many, values := make([]filter.Filter, 257), make([]any, 257)
	for i := range many {
		many[i], values[i] = leaf, i
	}
	large, err := filter.New("in", "year", values...)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]filter.Filter{
		"deep": deep, "many": filter.AnyOf(many...), "large": large, "nil": nil, "empty": filter.AllOf(), "nil inside": filter.AllOf(leaf, nil),
		"zero leaf": filter.Comparison{}, "zero group": filter.Not{}, "zero inside": filter.AnyOf(leaf, filter.InSet{}),
	} {
		_, err := filter.Bind(f, fixtureSchema)
		wantInvalid(t, name, err, "")
		if name != "many" && name != "large" && name != "nil inside" && name != "empty" {
			if text, err := filter.Canonical(f); err == nil {
				t.Errorf("%s has the JSON %.60s", name, text)
			}
		}
		if _, err := filter.Substitute(f, nil); err == nil && (name == "deep" || strings.Contains(name, "nil") || strings.Contains(name, "zero")) {
			t.Errorf("%s is substituted", name)
		}
	}
	for _, bad := range []struct {
		op, key string
		values  []any
	}{
		{"andAll", "a", nil},
		{"like", "a", []any{"b"}},
		{"equals", "", []any{"b"}},
		{"equals", "a", nil},
		{"equals", "a", []any{1, 2}},
		{"in", "a", nil},
		{"isNull", "a", []any{1}},
		{"equals", "a", []any{nil}},
		{"equals", "a", []any{"\xff"}},
		{"equals", "a", []any{[]string{"b"}}},
		{"equals", "a", []any{json.Number("NaN")}},
		{"equals", "a", []any{json.Number(`"1"`)}},
		{"equals", "a", []any{filter.Literal{}}},
	} {
		_, err := filter.New(bad.op, bad.key, bad.values...)
		wantInvalid(t, fmt.Sprint(bad), err, "")
	}
}

func TestTheZeroBoundMatchesNothing(t *testing.T) {
	t.Parallel()
	all := mustBind(t, mustExpression(t, "NOT (category IS NULL AND category IS NOT NULL)"))
	for name, b := range map[string]filter.Bound{
		"zero": {}, "no conjunction": filter.Conjunction(), "with zero": filter.Conjunction(all, filter.Bound{}),
	} {
		sql, args := b.SQL("d.x", 1)
		ok, err := b.Match(json.RawMessage(`{}`))
		if sql != "false" || len(args) != 0 || ok || err != nil {
			t.Errorf("%s: %q %v, matches %v, %v", name, sql, args, ok, err)
		}
	}
	if ok, err := filter.Conjunction(all).Match(nil); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	if _, err := all.Match(json.RawMessage(`[1]`)); err == nil {
		t.Error("metadata that is a list passes")
	}
}
