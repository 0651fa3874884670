package filter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/pkg/testkit"
)

// Extent of the differential test: worlds × treesPerWorld filters, each over every document of its world.
const (
	worlds        = 60
	docsPerWorld  = 16
	treesPerWorld = 180
	batch         = 60 // filters a statement
	minUses       = 100
)

// candidate is a filter and what memory says of each document.
type candidate struct {
	bound filter.Bound
	text  string
	want  []bool
}

// tally counts what the differential test has seen.
type tally struct {
	filters, trivial, cases int
	uses                    map[string]int // operator, type, state of the field
}

// TestSQLAgreesWithMemory compares the statement's verdict with the one in memory on random schemas,
// documents and filters.
func TestSQLAgreesWithMemory(t *testing.T) {
	t.Parallel()
	conn := testkit.Tx(t)
	rng := rand.New(rand.NewPCG(20, 26))
	seen := tally{uses: map[string]int{}}
	for i := range worlds {
		w := newWorld(rng, docsPerWorld)
		table := fmt.Sprintf("w%d", i)
		fillWorld(t, conn, table, w)
		for range treesPerWorld / batch {
			candidates := make([]candidate, batch)
			for j := range candidates {
				candidates[j] = seen.candidate(t, w)
			}
			compareBatch(t, conn, table, w, candidates)
		}
		if t.Failed() {
			return
		}
	}
	seen.check(t)
}

func fillWorld(t *testing.T, tx pgx.Tx, table string, w *world) {
	t.Helper()
	exec := func(sql string, args ...any) {
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TEMPORARY TABLE " + table + " (id int, typed jsonb NOT NULL)")
	ids, typed := make([]int, len(w.docs)), make([]string, len(w.docs))
	for i, doc := range w.docs {
		v, err := filter.Typed(w.schema, doc)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		ids[i], typed[i] = i, string(v)
	}
	exec("INSERT INTO "+table+" SELECT i, v::jsonb FROM unnest($1::int[], $2::text[]) AS u(i, v)", ids, typed)
}

// candidate makes a filter, through JSON, that is not trivial whenever the trivial ones are half of all.
func (s *tally) candidate(t *testing.T, w *world) candidate {
	t.Helper()
	for {
		f, uses := w.tree(1 + w.rng.IntN(4))
		text, err := filter.Canonical(f)
		if err != nil {
			t.Fatal(err)
		}
		if f, err = filter.ParseJSON("filter", text, filter.Limits{}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		c := candidate{text: string(text), want: make([]bool, len(w.docs))}
		if c.bound, err = filter.Bind(f, w.schema); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		matches := 0
		for i, doc := range w.docs {
			if c.want[i], err = c.bound.Match(doc); err != nil {
				t.Fatal(err)
			}
			if c.want[i] {
				matches++
			}
		}
		if trivial := matches == 0 || matches == len(w.docs); trivial {
			if 2*(s.trivial+1) > s.filters {
				continue
			}
			s.trivial++
		}
		s.count(w, uses)
		return c
	}
}

func (s *tally) count(w *world, uses []leafUse) {
	s.filters++
	s.cases += len(w.docs)
	for _, u := range uses {
		field, _ := w.schema.Field(u.field)
		for _, states := range w.states {
			s.uses[u.op+" on "+string(field.Type)+" "+states[u.field]]++
		}
	}
}

func compareBatch(t *testing.T, tx pgx.Tx, table string, w *world, candidates []candidate) {
	t.Helper()
	var args []any
	columns := []string{"id"}
	for _, c := range candidates {
		sql, more := c.bound.SQL("d.typed", len(args)+1)
		columns, args = append(columns, sql), append(args, more...)
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM " + table + " d"
	rows, err := tx.Query(t.Context(), sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		count++
		id := int(values[0].(int32))
		for i, got := range values[1:] {
			if c := candidates[i]; got != c.want[id] {
				one, args := c.bound.SQL("d.typed", 1)
				t.Errorf("%s of %s: SQL %v, memory %v\n%s %q", c.text, w.docs[id], got, c.want[id], one, args)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	if count != len(w.docs) {
		t.Fatalf("%d rows", count)
	}
}

// check holds the test to its own extent.
func (s *tally) check(t *testing.T) {
	t.Helper()
	t.Logf("%d filters, %d of them match none or all, %d cases", s.filters, s.trivial, s.cases)
	if s.filters < 10_000 || 2*s.trivial > s.filters {
		t.Errorf("%d filters, %d trivial", s.filters, s.trivial)
	}
	least, where := 1<<62, ""
	for _, typ := range everyType() {
		states := []string{present, absent, null}
		if _, list := typ.Element(); list {
			states = append(states, emptyList)
		}
		for _, op := range applicable(typ) {
			for _, state := range states {
				what := op + " on " + string(typ) + " " + state
				if n := s.uses[what]; n < least {
					least, where = n, what
				}
			}
		}
	}
	t.Logf("at least %d uses of everything (%s)", least, where)
	if least < minUses {
		t.Errorf("%s was used %d times", where, least)
	}
}

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
// as absent.
func TestWrongKindsAreAbsent(t *testing.T) {
	t.Parallel()
	tx := testkit.Tx(t)
	w := newWorld(rand.New(rand.NewPCG(1, 2)), 4)
	for _, f := range w.schema {
		wrong := `{"x":1}`
		if _, list := f.Type.Element(); list {
			wrong = `"a"`
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		doc := "{" + string(name) + ":" + wrong + "}"
		for _, op := range applicable(f.Type) {
			var values []any
			if op != "isNull" && op != "isNotNull" {
				values = []any{w.operand(f)}
			}
			node, err := filter.New(op, f.Name, values...)
			if err != nil {
				t.Fatal(err)
			}
			b, err := filter.Bind(node, w.schema)
			if err != nil {
				t.Fatal(err)
			}
			sql, args := b.SQL("d.typed", 2)
			var found bool
			if err := tx.QueryRow(t.Context(), "SELECT "+sql+" FROM (SELECT $1::jsonb AS typed) d", append([]any{doc}, args...)...).Scan(&found); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			matched, err := b.Match(json.RawMessage(doc))
			if err != nil {
				t.Fatal(err)
			}
			if found != matched || found != (op == "isNull") {
				t.Errorf("%s on %s with %s: SQL %v, memory %v", op, f.Type, wrong, found, matched)
			}
		}
	}
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
		`{"double":1e-999999,"double_list":[0.1000000000000000055511151231257827]}`:    `{"double":0,"double_list":[0.1]}`,
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
