// Package retriever answers everything that only reads: retrieve, batch_retrieve, search, and listings of
// knowledge bases, documents and chunks, as NATS micro endpoints on weir.rpc.<tenant>.<kb>.<operation>.
//
// Tenant and knowledge base are those of the subject; a body that names another is refused. A request
// is answered from one snapshot of the database: chunks of one version of each document, vectors and
// terms of one generation. A retrieve whose knowledge base changes under way starts once more.
//
// It publishes nothing and writes nothing, needs read access to the database only, and may run any
// number of times. Requests over the limit are refused at once as OVERLOADED; what is late is
// DEADLINE_EXCEEDED; a database that is away is UNAVAILABLE; a query that cannot be embedded is
// EMBEDDING_UNAVAILABLE and a leg that fails UNAVAILABLE, unless the request allows a partial answer.
//
// The pages behind a first one are in the cursor that the client holds: nothing is kept here. Cursors are
// authenticated with the key of the configuration, or with one of the process.
//
// Query texts are never logged.
package retriever
