package filter

import (
	"slices"
	"strings"
)

var andAll = &connective{
	name: "andAll", node: func(g group) Filter { return And{g} },
	sql: func(of []string) string { return "(" + strings.Join(of, " AND ") + ")" },
	match: func(of []boundNode, doc document) bool {
		return !slices.ContainsFunc(of, func(n boundNode) bool { return !n.match(doc) })
	},
}

var orAll = &connective{
	name: "orAll", node: func(g group) Filter { return Or{g} },
	sql: func(of []string) string { return "(" + strings.Join(of, " OR ") + ")" },
	match: func(of []boundNode, doc document) bool {
		return slices.ContainsFunc(of, func(n boundNode) bool { return n.match(doc) })
	},
}

// notAll is NOR. Its parts are never null, so the negation is a true complement.
var notAll = &connective{
	name: "notAll", node: func(g group) Filter { return Not{g} },
	sql: func(of []string) string { return "NOT (" + strings.Join(of, " OR ") + ")" },
	match: func(of []boundNode, doc document) bool {
		return !slices.ContainsFunc(of, func(n boundNode) bool { return n.match(doc) })
	},
}
