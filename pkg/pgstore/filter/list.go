package filter

var listContains = &operator{
	name: "listContains", applies: toLists, node: containment,
	sql:   equalSQL,
	match: func(stored fieldValue, wanted []any) bool { return stored.holdsAny(wanted) },
}
