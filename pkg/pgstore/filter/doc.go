// Package filter is the language of conditions on the metadata of documents.
//
// A filter is written in one of three ways, and all give the same tree of Filter values: JSON
// (ParseJSON), an expression in the manner of SQL (ParseExpression), or Go (ConditionBuilder). A
// SchemaBinder ties the tree to the fields of a knowledge base: it refuses fields that are not declared,
// operators that do not apply to a field's type and values of another type. What it returns, a Bound,
// becomes one parameterised SQL predicate or is evaluated in memory.
//
// # Logic
//
// There are two truth values. An operator on a field that a document lacks, or has as null, is false,
// except isNull; so notEquals and notIn hold only where the field is present. andAll, orAll and notAll
// are AND, OR and "none of", so notAll (NOT in expressions) also holds for documents that lack the field.
// On a list field equals and in ask for any element, notEquals and notIn for no element of a list that is
// present; an empty list is present.
//
// # Stored form
//
// The SQL reads one jsonb column that holds Typed of a document's metadata: dates as milliseconds since
// 1970, doubles in their shortest notation, no nulls. It compares jsonb with jsonb and casts nothing, so
// no stored value, well-formed or not, makes a statement fail.
//
// # Adding an operator
//
// One file with an operator value and one line in the table operators. Both parsers, the errors about
// types and the test that compares SQL with memory read the table.
//
// Everything here is safe for concurrent use except ConditionBuilder.
package filter
