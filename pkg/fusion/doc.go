// Package fusion turns the candidate lists of the retrieval legs into one ordered list.
//
// It is pure: no I/O, no clock, no randomness, and nothing a caller passes in is modified. The result
// does not depend on the order of the candidates. Every result carries what its score is made of.
//
// [Fuse] joins the dense and the full-text leg by one of the methods of the table in method.go; with one
// active leg nothing is fused and that leg's own scores are reported, unless a rerank model scored the
// candidates or [Config].ByRank is set. [FuseRRF] is reciprocal rank fusion
// of any number of lists of anything, keyed by the caller.
//
// Order, everywhere in Fuse: score descending, then knowledge base in request order, subspace, document id
// (both as UTF-8 bytes), chunk number ascending.
package fusion
