package filter

import (
	"cmp"
	"time"
)

var (
	greaterThan         = ordering("greaterThan", ">", func(c int) bool { return c > 0 })
	greaterThanOrEquals = ordering("greaterThanOrEquals", ">=", func(c int) bool { return c >= 0 })
	lessThan            = ordering("lessThan", "<", func(c int) bool { return c < 0 })
	lessThanOrEquals    = ordering("lessThanOrEquals", "<=", func(c int) bool { return c <= 0 })
)

func ordering(name, symbol string, holds func(int) bool) *operator {
	return &operator{
		name: name, spellings: []string{symbol},
		applies: toOrdered, node: comparison,
		// Both sides are numbers in jsonb, which compares those exactly.
		sql: func(q *query, l boundLeaf) string {
			field := q.field(l)
			return "(" + q.present(l, field) + " AND " + field + " " + symbol + " " + q.jsonb(storedForm(l.values[0])) + ")"
		},
		match: func(stored fieldValue, wanted []any) bool {
			return stored.present && holds(order(stored.items[0], wanted[0]))
		},
	}
}

// order compares two values of the same ordered type.
func order(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	default:
		return a.(time.Time).Compare(b.(time.Time))
	}
}
