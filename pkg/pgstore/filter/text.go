package filter

import "strings"

// startsWith compares bytes; no character of the prefix means anything but itself.
var startsWith = &operator{
	name: "startsWith", applies: toStrings, node: stringMatch,
	sql: func(q *query, l boundLeaf) string {
		field, text := q.fieldAndText(l)
		return "(" + q.present(l, field) + " AND starts_with(" + text + ", " + q.text(l.values[0].(string)) + "))"
	},
	match: func(stored fieldValue, wanted []any) bool {
		return stored.present && strings.HasPrefix(stored.items[0].(string), wanted[0].(string))
	},
}

// stringContains looks for the very bytes: in UTF-8 one text is in another exactly where its bytes are.
var stringContains = &operator{
	name: "stringContains", applies: toStrings, node: stringMatch,
	sql: func(q *query, l boundLeaf) string {
		field, text := q.fieldAndText(l)
		return "(" + q.present(l, field) + " AND strpos(" + text + ", " + q.text(l.values[0].(string)) + ") > 0)"
	},
	match: func(stored fieldValue, wanted []any) bool {
		return stored.present && strings.Contains(stored.items[0].(string), wanted[0].(string))
	},
}
