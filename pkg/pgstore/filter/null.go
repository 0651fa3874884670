package filter

var isNull = &operator{
	name: "isNull", spellings: []string{"IS NULL"}, takes: takesNothing,
	applies: toAll, node: nullCheck,
	sql:   func(q *query, l boundLeaf) string { return "NOT " + q.present(l, q.field(l)) },
	match: func(stored fieldValue, _ []any) bool { return !stored.present },
}

var isNotNull = &operator{
	name: "isNotNull", spellings: []string{"IS NOT NULL"}, takes: takesNothing,
	applies: toAll, node: nullCheck,
	sql:   func(q *query, l boundLeaf) string { return q.present(l, q.field(l)) },
	match: func(stored fieldValue, _ []any) bool { return stored.present },
}
