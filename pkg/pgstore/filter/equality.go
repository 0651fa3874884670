package filter

var equals = &operator{
	name: "equals", spellings: []string{"=", "=="}, null: "isNull",
	applies: toAll, node: comparison,
	sql:   equalSQL,
	match: func(stored fieldValue, wanted []any) bool { return stored.holdsAny(wanted) },
}

var notEquals = &operator{
	name: "notEquals", spellings: []string{"!=", "<>"}, null: "isNotNull",
	applies: toAll, node: comparison,
	sql: func(q *query, l boundLeaf) string {
		return "(" + q.present(l, q.field(l)) + " AND NOT " + equalSQL(q, l) + ")"
	},
	match: func(stored fieldValue, wanted []any) bool { return stored.present && !stored.holdsAny(wanted) },
}

// equalSQL asks whether the document contains {key: value}, or {key: [value]} for an element of a list.
// jsonb containment compares strings by bytes and numbers by value, and knows no errors and no nulls.
func equalSQL(q *query, l boundLeaf) string {
	part := storedForm(l.values[0])
	if l.list {
		part = []any{part}
	}
	return q.column + " @> " + q.jsonb(map[string]any{l.key: part})
}
