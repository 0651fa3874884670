package filter

var in = &operator{
	name: "in", spellings: []string{"IN"}, takes: takesSet,
	applies: toAll, node: inSet,
	sql:   inSQL,
	match: func(stored fieldValue, wanted []any) bool { return stored.holdsAny(wanted) },
}

var notIn = &operator{
	name: "notIn", spellings: []string{"NOT IN"}, takes: takesSet,
	applies: toAll, node: inSet,
	sql: func(q *query, l boundLeaf) string {
		return "(" + q.present(l, q.field(l)) + " AND NOT " + inSQL(q, l) + ")"
	},
	match: func(stored fieldValue, wanted []any) bool { return stored.present && !stored.holdsAny(wanted) },
}

// inSQL asks whether the array of values contains the field's value, or for a list any element of it:
// jsonb lets an array contain a scalar.
func inSQL(q *query, l boundLeaf) string {
	field, set := q.field(l), make([]any, len(l.values))
	for i, v := range l.values {
		set[i] = storedForm(v)
	}
	values := q.jsonb(set)
	if !l.list {
		return "(" + q.present(l, field) + " AND " + values + " @> " + field + ")"
	}
	return "EXISTS (SELECT FROM jsonb_array_elements(CASE WHEN jsonb_typeof(" + field + ") = 'array' THEN " + field +
		" END) AS e(item) WHERE " + values + " @> e.item)"
}
