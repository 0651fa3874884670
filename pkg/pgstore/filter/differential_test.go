package filter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/pkg/testkit"
)

// Extent of the differential test: worlds × treesPerWorld filters, each over every document of its world.
const (
	worlds        = 56
	docsPerWorld  = 7
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
		f, uses := w.tree(1 + w.rng.IntN(3))
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
