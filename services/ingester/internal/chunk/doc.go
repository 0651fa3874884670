// Package chunk cuts a parsed document into chunks.
//
// Cores are cut first: they partition the text byte for byte, so no setting can lose text or loop.
// Overlap is added afterwards by moving a chunk's start to the left, inside the same token limit. A
// chunk's text is always exactly a span of the document's text; what helps to understand it (the
// headings above it, a table's header, a fence's language) is kept apart as its context and counted
// in the limit.
//
// Boundaries, best first: heading, block, sentence, clause, word, grapheme, rune. A heading or a
// table's header does not end a chunk when what follows can be put behind it; table rows and code
// blocks that fit are never cut.
//
// Time is linear in the text. Split is a pure function: the same document and configuration give the
// same chunks, for a preview as for ingestion.
//
// To add a strategy: one file, one line in strategies.
package chunk
