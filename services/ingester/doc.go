// Package ingester takes documents in and prepares them for indexing.
//
// It consumes submits and deletes (weir.docs.>) and serves the same operations as request-reply:
// intake validates a submit against its knowledge base, stores the content, registers the version and
// publishes parse work. It consumes the parse stage: the content is parsed (PDFs in a child process),
// cut into chunks, analysed and staged, with vectors that are known already; then the rest goes to the
// embedder, or straight to the indexer where nothing is left to embed.
//
// Everything is idempotent: a submit is recognised by where its stream stored it, a staged version is
// not staged twice, and a message handled again publishes the same messages under the same ids.
package ingester
