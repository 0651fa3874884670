// Package client is how Go programs use Weir: over a NATS connection that they own, in the types of
// pkg/messages.
//
// [New] makes a [Client] of one tenant. It calls the operations of the tenant; [Client.KB] gives those of a
// knowledge base: to publish documents and wait for what becomes of them, to watch events, to look at
// documents and chunks, and to retrieve. Errors of a service are [*messages.Error]s (errors.As) with a code, a
// field and a reason; everything else is a wrapped error of the connection, [ErrPermission] or
// [ErrBackpressure]. The deadline of a context travels with the request, so that a service does not work on
// what nobody waits for any more.
//
// # Searching
//
// [SearchBuilder] puts a request together: text or vector, how many results, a lowest similarity, and
// conditions on metadata, which are never lost on the way: a faulty condition fails the whole request.
//
// [VectorRetriever], [SparseRetriever], [HybridRetriever] and [MultiRetriever] are the shape that programs
// around language models expect: a text in, passages out. They look into a [VectorStore]; [Client.Store] is a
// knowledge base as one. Whoever implements [Retriever] and [BatchRetriever] can stand in their place.
//
// GraphRetriever and AgenticRetriever of the same family are not there yet. Each will be a file of its own
// here, built like multi.go upon other retrievers, and needs nothing of this package to change.
package client
