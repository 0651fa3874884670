package filter_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/pkg/testkit"
)

// TestNoStoredValueFails puts all kinds of JSON into the column: never an error, never null.
func TestNoStoredValueFails(t *testing.T) {
	t.Parallel()
	tx := testkit.Tx(t)
	rng := rand.New(rand.NewPCG(4, 3))
	w := newWorld(rng, 8)
	junk := []string{
		`null`, `1`, `1.5`, `1e300`, `""`, `"a"`, `"2024-13-77"`, `true`, `{}`, `[]`, `{"a":1}`, `[null]`, `[[]]`, `[["a"],{"a":1},1,"a",null,true]`, `{"category":["a"]}`, `"NaN"`, `-1e308`,
	}
	var docs []string
	docs = append(docs, junk...)
	for range 60 {
		members := map[string]json.RawMessage{}
		for _, f := range w.schema {
			if rng.IntN(4) > 0 {
				members[f.Name] = json.RawMessage(pick(rng, junk))
			}
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	if _, err := tx.Exec(t.Context(), "CREATE TEMPORARY TABLE junk AS SELECT v::jsonb AS typed FROM unnest($1::text[]) AS u(v)", docs); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		f, _ := w.tree(2)
		b, err := filter.Bind(f, w.schema)
		if err != nil {
			t.Fatal(err)
		}
		sql, args := b.SQL("d.typed", 1)
		var verdicts int
		if err := tx.QueryRow(t.Context(), "SELECT count("+sql+") FROM junk d", append([]any{pgx.QueryExecModeDescribeExec}, args...)...).Scan(&verdicts); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if verdicts != len(docs) {
			t.Errorf("%s %q is null for %d documents", sql, args, len(docs)-verdicts)
		}
	}
}

// TestWrongKindsAreAbsent: where the stored value is of another kind of JSON than its field, both count it
// as absent, also where it is a list of the very value asked for, or the value instead of a list.
func TestWrongKindsAreAbsent(t *testing.T) {
	t.Parallel()
	tx := testkit.Tx(t)
	w := newWorld(rand.New(rand.NewPCG(1, 2)), 4)
	for _, f := range w.schema {
		element, _ := f.Type.Element()
		value := w.operand(f)
		for _, op := range applicable(f.Type) {
			var values []any
			if op != "isNull" && op != "isNotNull" {
				values = []any{value}
			}
			node, err := filter.New(op, f.Name, values...)
			if err != nil {
				t.Fatal(err)
			}
			b, err := filter.Bind(node, w.schema)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range wrongKinds(t, f, element, value) {
				found, matched := verdicts(t, tx, b, wrong)
				if found != matched || found != (op == "isNull") {
					t.Errorf("%s on %s with %s: SQL %v, memory %v", op, f.Type, wrong, found, matched)
				}
			}
		}
	}
}

// wrongKinds are documents with a value in its stored form, but not of the field's kind.
func wrongKinds(t *testing.T, f messages.MetadataField, element messages.MetadataType, value any) []string {
	t.Helper()
	_, list := f.Type.Element()
	raw, err := json.Marshal(map[string]any{f.Name: value})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := filter.Typed(messages.MetadataSchema{{Name: f.Name, Type: element}}, raw)
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(typed, &stored); err != nil {
		t.Fatal(err)
	}
	kinds := []any{map[string]any{"x": 1}, nil, stored[f.Name]}
	if !list {
		kinds = []any{map[string]any{"x": 1}, nil, []any{stored[f.Name]}, []any{}}
	}
	var docs []string
	for _, kind := range kinds {
		doc, err := json.Marshal(map[string]any{f.Name: kind})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
	}
	return docs
}

func verdicts(t *testing.T, tx pgx.Tx, b filter.Bound, doc string) (found, matched bool) {
	t.Helper()
	sql, args := b.SQL("d.typed", 2)
	if err := tx.QueryRow(t.Context(), "SELECT "+sql+" FROM (SELECT $1::jsonb AS typed) d", append([]any{doc}, args...)...).Scan(&found); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	matched, err := b.Match(json.RawMessage(doc))
	if err != nil {
		t.Fatal(err)
	}
	return found, matched
}

func TestTypedForm(t *testing.T) {
	t.Parallel()
	schema := messages.MetadataSchema{}
	for _, typ := range everyType() {
		schema = append(schema, messages.MetadataField{Name: string(typ), Type: typ})
	}
	for in, want := range map[string]string{
		``: `{}`, `null`: `{}`, `{"string":null,"long_list":null}`: `{}`,
		`{"long":6e1,"long_list":[9007199254740993,-0,1.0]}`:                           `{"long":60,"long_list":[9007199254740993,0,1]}`,
		`{"double":1e-399,"double_list":[0.1000000000000000055511151231257827]}`:       `{"double":0,"double_list":[0.1]}`,
		`{"date":"2024-05-01","date_list":["1969-12-31T23:59:59.9995Z","0000-01-01"]}`: `{"date":1714521600000,"date_list":[-1,-62167219200000]}`,
		`{"boolean":true,"boolean_list":[]}`:                                           `{"boolean":true,"boolean_list":[]}`,
		`{"string":"<年>","string_list":["a"]}`:                                         `{"string":"\u003c年\u003e","string_list":["a"]}`,
	} {
		got, err := filter.Typed(schema, json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{`{"nope":1}`, `{"long":1.5}`, `{"date":"yesterday"}`, `{"string_list":[null]}`, `[]`} {
		_, err := filter.Typed(schema, json.RawMessage(in))
		wantInvalid(t, in, err, "metadata")
	}
}
