// Package embedder turns chunk texts and queries into vectors. It has no database.
//
// It consumes the stage [messages.StageEmbed]: every message carries some chunks of one document
// version, as the exact strings for the model, and is answered by exactly one message of
// [messages.StageIndex] with the same part number. It serves [messages.SubjectEmbed], by which the
// retriever embeds queries through the same governor, ahead of batch work, with a cache.
//
// Guarantees: at least once, and idempotent: the answer's message id depends on the document version
// and the part alone, so the index stream keeps a repeated answer once.
//
// Failure: while the provider is down, throttles or refuses its configuration (key, address, model),
// the stage pauses and no try is counted. A text the provider will never accept is EMBEDDING_REJECTED
// and names the chunk; vectors of another length are DIMENSION_MISMATCH; both are dead letters of that
// message only. An answer that makes no sense is a failed try.
package embedder
