package filter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// States of a field in a document.
const (
	present   = "present"
	absent    = "absent"
	null      = "null"
	emptyList = "empty list"
)

// pools are values in JSON, many of them equal in different notation or equal but for a hair.
var pools = map[messages.MetadataType][]string{
	messages.TypeString: {
		`""`, `"a"`, `"A"`, `"ab"`, `"abc"`, `"b"`, `"a%"`, `"a_"`, `"%"`, `"a'b"`, `"a\"b"`, `"a\\"`, `"\\"`, `"\u0001"`, `"\n"`, `"1"`, `"true"`, `"null"`, `"2024-05-01"`,
		`"手"`, `"手冊"`, `"產品手冊"`, `"産"`, `"é"`, `"e\u0301"`, `"ß"`, `"ss"`, `"𝄞"`, `"\ud834\udd1e𝄞"`, `"\uffff"`, `"\ufffd"`, `"<&>"`, `"\u2028"`, `"$1"`,
	},
	messages.TypeLong: {
		`0`, `-0`, `1`, `1.0`, `10e-1`, `-1`, `2`, `10`, `1e1`, `9007199254740992`, `9007199254740993`, `9007199254740993.0`, `9223372036854775807`, `9223372036854775806`, `-9223372036854775808`,
	},
	messages.TypeDouble: {
		`0`, `-0.0`, `0.1`, `0.1000000000000000055511151231257827`, `0.10000000000000002`, `1`, `1.0`, `1e0`, `-1.5`, `9007199254740992`, `9007199254740993`, `1e308`,
		`1.7976931348623157e308`, `-1e308`, `5e-324`, `1e-400`, `123456789.123456789`, `1e21`, `1e-7`, `1e-399`,
	},
	messages.TypeBoolean: {`true`, `false`},
	messages.TypeDate: {
		`"2024-05-01"`, `"2024-05-01 00:00:00"`, `"2024-05-01 00:00:00.000"`, `"20240501 000000"`, `"2024-05-01T00:00:00"`, `"2024-05-01T00:00:00Z"`, `"2024-05-01T02:30:00+02:30"`,
		`"2024-04-30T16:00:00-08:00"`, `"2024-05-01T00:00:00.000999999Z"`, `"2024-05-01 00:00:00.001"`, `"2024-04-30T23:59:59.9999Z"`, `"1969-12-31T23:59:59.9995Z"`, `"1970-01-01"`,
		`"0000-01-01"`, `"0001-01-01"`, `"0000-12-31T23:59:59.1234Z"`, `"9999-12-31 23:59:59"`, `"0001-01-01T00:00:00+14:00"`, `"1582-10-10"`, `"2024-02-29"`,
	},
}

var names = []string{
	"category", "Category", "a-b", "order by", "產品", "x' OR '1'='1", `quote"d`, "back`tick", "$tenant", "and", "é", "e\u0301", "100%", "a\\b", "  ", "{}", "key", "value", "𝄞", "?", "$1",
}

// world is a random schema with documents.
type world struct {
	rng    *rand.Rand
	schema messages.MetadataSchema
	docs   []json.RawMessage
	states []map[string]string // of the fields of each document
	raw    []map[string]string // values of the fields of each document
}

func newWorld(rng *rand.Rand, docs int) *world {
	w := &world{rng: rng}
	types := everyType()
	for _, t := range append(types, types[rng.IntN(len(types))], types[rng.IntN(len(types))]) {
		name := pick(rng, names) + strings.Repeat("~", rng.IntN(3))
		if _, taken := w.schema.Field(name); taken {
			name += fmt.Sprint(len(w.schema))
		}
		w.schema = append(w.schema, messages.MetadataField{Name: name, Type: t})
	}
	for range docs {
		w.addDocument()
	}
	return w
}

func everyType() []messages.MetadataType {
	var all []messages.MetadataType
	for _, t := range []messages.MetadataType{messages.TypeString, messages.TypeLong, messages.TypeDouble, messages.TypeBoolean, messages.TypeDate} {
		all = append(all, t, t+"_list")
	}
	return all
}

func (w *world) addDocument() {
	states, raw, members := map[string]string{}, map[string]string{}, []string{}
	for _, f := range w.schema {
		state := pick(w.rng, []string{present, present, present, absent, null, emptyList})
		element, list := f.Type.Element()
		switch {
		case state == emptyList && list:
			raw[f.Name] = "[]"
		case state == null:
			raw[f.Name] = "null"
		case state == absent:
		case list:
			state = present
			items := make([]string, 1+w.rng.IntN(3))
			for i := range items {
				items[i] = pick(w.rng, pools[element])
			}
			raw[f.Name] = "[" + strings.Join(items, ",") + "]"
		default:
			state = present
			raw[f.Name] = pick(w.rng, pools[element])
		}
		states[f.Name] = state
		if value, ok := raw[f.Name]; ok {
			name, _ := json.Marshal(f.Name)
			members = append(members, string(name)+":"+value)
		}
	}
	w.docs = append(w.docs, json.RawMessage("{"+strings.Join(members, ",")+"}"))
	w.states, w.raw = append(w.states, states), append(w.raw, raw)
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// operand is a value for a condition on a field: often one that a document has, and of a string sometimes
// a part of it.
func (w *world) operand(f messages.MetadataField) any {
	element, _ := f.Type.Element()
	text := pick(w.rng, pools[element])
	if w.rng.IntN(3) > 0 {
		var items []json.RawMessage
		of := w.raw[w.rng.IntN(len(w.raw))][f.Name]
		if of != "" && of != "null" && !strings.HasPrefix(of, "[") {
			of = "[" + of + "]"
		}
		if json.Unmarshal([]byte(of), &items) == nil && len(items) > 0 {
			text = string(pick(w.rng, items))
		}
	}
	switch element {
	case messages.TypeBoolean:
		return text == "true"
	case messages.TypeLong, messages.TypeDouble:
		return json.Number(text)
	}
	var s string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	if r := []rune(s); element == messages.TypeString && len(r) > 1 && w.rng.IntN(4) == 0 {
		from := w.rng.IntN(len(r))
		s = string(r[from : from+w.rng.IntN(len(r)-from)+1])
	}
	return s
}

// leafUse is an operator on a field.
type leafUse struct{ op, field string }

// applicable are the operators that binding accepts on a type.
func applicable(t messages.MetadataType) []string {
	element, list := t.Element()
	ops := []string{"equals", "notEquals", "in", "notIn", "isNull", "isNotNull"}
	switch {
	case list:
		return append(ops, "listContains")
	case element == messages.TypeString:
		return append(ops, "startsWith", "stringContains")
	case element != messages.TypeBoolean:
		return append(ops, "greaterThan", "greaterThanOrEquals", "lessThan", "lessThanOrEquals")
	}
	return ops
}

// tree is a random filter and the conditions in it.
func (w *world) tree(depth int) (filter.Filter, []leafUse) {
	if depth == 0 || w.rng.IntN(3) == 0 {
		return w.leaf()
	}
	of, uses := make([]filter.Filter, 1+w.rng.IntN(3)), []leafUse{}
	for i := range of {
		var more []leafUse
		of[i], more = w.tree(depth - 1)
		uses = append(uses, more...)
	}
	switch w.rng.IntN(3) {
	case 0:
		return filter.AllOf(of...), uses
	case 1:
		return filter.AnyOf(of...), uses
	}
	return filter.NoneOf(of...), uses
}

func (w *world) leaf() (filter.Filter, []leafUse) {
	f := pick(w.rng, w.schema)
	op := pick(w.rng, applicable(f.Type))
	var values []any
	switch {
	case op == "in" || op == "notIn":
		for range 1 + w.rng.IntN(4) {
			values = append(values, w.operand(f))
		}
	case op != "isNull" && op != "isNotNull":
		values = []any{w.operand(f)}
	}
	out, err := filter.New(op, f.Name, values...)
	if err != nil {
		panic(fmt.Sprintf("%s %s %q: %v", op, f.Type, values, err))
	}
	return out, []leafUse{{op, f.Name}}
}

// TestRandomFiltersUseEveryOperator keeps this generator and the table in step.
func TestRandomFiltersUseEveryOperator(t *testing.T) {
	t.Parallel()
	used := []string{"andAll", "orAll", "notAll"}
	for _, typ := range everyType() {
		used = append(used, applicable(typ)...)
	}
	slices.Sort(used)
	want := filter.OperatorNames()
	slices.Sort(want)
	if got := slices.Compact(used); !slices.Equal(got, want) {
		t.Errorf("used %v, the table has %v", got, want)
	}
}
