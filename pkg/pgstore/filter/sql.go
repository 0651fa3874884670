package filter

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/weir-project/weir/pkg/messages"
)

// Predicate returns the filter as a boolean SQL expression over a jsonb column that holds what Typed
// returns. arg binds a value and returns its placeholder; names of fields and values reach the database
// through it only, as strings. The expression is never null as long as the column is not, and raises no
// error whatever the column holds. column is SQL and must not come from a request.
func (b Bound) Predicate(column string, arg func(value any) string) string {
	if b.root == nil {
		return "false"
	}
	return b.root.sql(&query{column: column, arg: arg, keys: map[string]string{}})
}

// SQL is Predicate with the arguments collected; next is the number of the first placeholder.
func (b Bound) SQL(column string, next int) (sql string, args []any) {
	sql = b.Predicate(column, func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(next+len(args)-1)
	})
	return sql, args
}

func (l boundLeaf) sql(q *query) string { return l.op.sql(q, l) }

func (g boundGroup) sql(q *query) string {
	of := make([]string, len(g.of))
	for i, n := range g.of {
		of[i] = n.sql(q)
	}
	return g.how.sql(of)
}

// query is a predicate in the making.
type query struct {
	column string
	arg    func(any) string
	keys   map[string]string // placeholders of names of fields
}

func (q *query) key(l boundLeaf) string {
	if _, ok := q.keys[l.key]; !ok {
		q.keys[l.key] = q.arg(l.key) + "::text"
	}
	return q.keys[l.key]
}

func (q *query) field(l boundLeaf) string { return "(" + q.column + " -> " + q.key(l) + ")" }

// fieldAndText gives a field as jsonb and as text that compares by bytes.
func (q *query) fieldAndText(l boundLeaf) (field, text string) {
	return q.field(l), "(" + q.column + " ->> " + q.key(l) + `) COLLATE "C"`
}

// present asks whether the field has a value of its type. It is never null, and false where the field is:
// what is ANDed to it need not care.
func (q *query) present(l boundLeaf, field string) string {
	return "coalesce(jsonb_typeof(" + field + ") = '" + l.jsonType() + "', false)"
}

func (l boundLeaf) jsonType() string {
	switch {
	case l.list:
		return "array"
	case l.element == messages.TypeString || l.element == messages.TypeBoolean:
		return string(l.element)
	}
	return "number"
}

func (q *query) jsonb(v any) string { return q.arg(encode(v)) + "::jsonb" }

func (q *query) text(s string) string { return q.arg(s) + `::text COLLATE "C"` }

// encode writes values that binding has checked.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("filter: value %v passed binding: %v", v, err))
	}
	return string(text)
}
