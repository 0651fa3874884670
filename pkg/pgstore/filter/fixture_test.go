package filter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/pkg/testkit"
)

// fixture is fixture F of the specification.
var fixtureSchema = messages.MetadataSchema{
	{Name: "category", Type: messages.TypeString},
	{Name: "score", Type: messages.TypeLong},
	{Name: "title", Type: messages.TypeString},
	{Name: "year", Type: messages.TypeLong},
	{Name: "published", Type: messages.TypeDate},
	{Name: "tags", Type: messages.TypeStringList},
	{Name: "tenant", Type: messages.TypeString, Internal: true},
}

var fixtureDocs = []struct{ id, metadata string }{
	{"d1", `{"category":"technology","score":60,"title":"產品手冊","year":2024,"published":"2024-05-01","tags":["prod","docs"],"tenant":"t1"}`},
	{"d2", `{"category":"science","score":59,"title":"產品簡介","year":2025,"published":null,"tenant":"t1"}`},
	{"d3", `{"category":"technology","score":95,"title":"手冊","year":2026,"tags":[],"tenant":"t2"}`},
	{"d4", `{"category":"art","score":90,"tenant":"t1"}`},
}

// library answers filters over the fixture, with SQL and in memory.
type library struct {
	t  *testing.T
	tx pgx.Tx
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{t, testkit.Tx(t)}
	l.exec("CREATE TEMPORARY TABLE d (id text, live_typed jsonb NOT NULL)")
	for _, d := range fixtureDocs {
		typed, err := filter.Typed(fixtureSchema, json.RawMessage(d.metadata))
		if err != nil {
			t.Fatal(err)
		}
		l.exec("INSERT INTO d VALUES ($1, $2)", d.id, typed)
	}
	return l
}

func (l *library) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.tx.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatal(err)
	}
}

// find gives the ids of the documents that match, on which SQL and memory must agree.
func (l *library) find(t *testing.T, b filter.Bound) string {
	t.Helper()
	sql, args := b.SQL("d.live_typed", 1)
	rows, err := l.tx.Query(t.Context(), "SELECT id FROM d WHERE "+sql+" ORDER BY id", args...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var matched []string
	for _, d := range fixtureDocs {
		ok, err := b.Match(json.RawMessage(d.metadata))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			matched = append(matched, d.id)
		}
	}
	if !slices.Equal(found, matched) {
		t.Errorf("SQL finds %v, memory %v: %s %v", found, matched, sql, args)
	}
	return strings.Join(found, " ")
}

func mustJSON(t *testing.T, text string) filter.Filter {
	t.Helper()
	f, err := filter.ParseJSON("filter", json.RawMessage(text), filter.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

func mustExpression(t *testing.T, text string) filter.Filter {
	t.Helper()
	f, err := filter.ParseExpression("filterExpression", text, filter.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

func mustBind(t *testing.T, f filter.Filter) filter.Bound {
	t.Helper()
	b, err := filter.Bind(f, fixtureSchema)
	if err != nil {
		t.Fatalf("%s: %v", canonical(t, f), err)
	}
	return b
}

func canonical(t *testing.T, f filter.Filter) string {
	t.Helper()
	text, err := filter.Canonical(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expression parses and binds.
func expression(text string, schema messages.MetadataSchema) error {
	f, err := filter.ParseExpression("filterExpression", text, filter.Limits{})
	if err != nil {
		return err
	}
	_, err = filter.Bind(f, schema)
	return err
}

// fromJSON parses and binds.
func fromJSON(text string, schema messages.MetadataSchema) error {
	f, err := filter.ParseJSON("filter", json.RawMessage(text), filter.Limits{})
	if err != nil {
		return err
	}
	_, err = filter.Bind(f, schema)
	return err
}

// wantInvalid asks for a VALIDATION_ERROR that holds a text.
func wantInvalid(t *testing.T, what string, err error, holds string) {
	t.Helper()
	e, ok := messages.AsError(err)
	if !ok || e.Code != messages.CodeValidation {
		t.Errorf("%.200s: got %v, want a VALIDATION_ERROR", what, err)
		return
	}
	if !strings.Contains(e.Error(), holds) {
		t.Errorf("%.200s: %q does not name %q", what, e.Error(), holds)
	}
}

func wantPosition(t *testing.T, text string, pos int) {
	t.Helper()
	_, err := filter.ParseExpression("filterExpression", text, filter.Limits{})
	var at *filter.ExpressionError
	if !errors.As(err, &at) || at.Pos != pos {
		t.Errorf("%.80q: got %v, want an error at %d", text, err, pos)
		return
	}
	wantInvalid(t, text, err, fmt.Sprintf("filterExpression: position %d: ", pos))
}
