package client

import (
	"context"
	"iter"

	"github.com/weir-project/weir/pkg/messages"
)

// KB is a knowledge base as a client sees it; it need not exist. Safe for concurrent use.
type KB struct {
	c    *Client
	name string
}

// KB returns the knowledge base of a name. A name that none can have is a VALIDATION_ERROR of every call.
func (c *Client) KB(name string) *KB { return &KB{c: c, name: name} }

// Name returns its name.
func (k *KB) Name() string { return k.name }

// Get describes it and counts its documents. KNOWLEDGE_BASE_NOT_FOUND says that there is none.
func (k *KB) Get(ctx context.Context, opts ...CallOption) (messages.KBInfo, error) {
	return ask[messages.KBInfo](ctx, k.c, k.name, messages.OpKBGet, messages.KBRef{}, opts)
}

// Update changes what in gives and leaves the rest.
func (k *KB) Update(ctx context.Context, in messages.UpdateKB, opts ...CallOption) (messages.KBInfo, error) {
	return ask[messages.KBInfo](ctx, k.c, k.name, messages.OpKBUpdate, in, opts)
}

// Delete deletes it with all its documents.
func (k *KB) Delete(ctx context.Context, opts ...CallOption) error {
	return k.c.Call(ctx, k.name, messages.OpKBDelete, messages.KBRef{}, nil, opts...)
}

// Submit hands in a document and returns the verdict at once; what becomes of it follows as events. The
// content must fit in one message: Publish takes larger ones.
func (k *KB) Submit(ctx context.Context, in messages.Submit, opts ...CallOption) (messages.SubmitReply, error) {
	return ask[messages.SubmitReply](ctx, k.c, k.name, messages.OpSubmit, in, opts)
}

// DeleteDocument deletes a document. DOCUMENT_NOT_FOUND says that there is none.
func (k *KB) DeleteDocument(ctx context.Context, in messages.Delete, opts ...CallOption) (messages.SubmitReply, error) {
	return ask[messages.SubmitReply](ctx, k.c, k.name, messages.OpDelete, in, opts)
}

// Document tells the state of a document.
func (k *KB) Document(ctx context.Context, in messages.DocumentRef, opts ...CallOption) (messages.DocumentInfo, error) {
	return ask[messages.DocumentInfo](ctx, k.c, k.name, messages.OpDocGet, in, opts)
}

// ListDocuments returns a page of documents, in order of subspace and id.
func (k *KB) ListDocuments(ctx context.Context, in messages.ListDocuments, opts ...CallOption) (messages.DocumentList, error) {
	return ask[messages.DocumentList](ctx, k.c, k.name, messages.OpDocList, in, opts)
}

// Documents goes through the documents that in asks for, from its page on. An error ends it.
func (k *KB) Documents(ctx context.Context, in messages.ListDocuments) iter.Seq2[messages.DocumentInfo, error] {
	first := in.NextToken
	return pages(func(token string) ([]messages.DocumentInfo, string, error) {
		in.NextToken = from(first, token)
		list, err := k.ListDocuments(ctx, in)
		return list.Documents, list.NextToken, err
	})
}

// ListChunks returns a page of the chunks of a document's live version, in order.
func (k *KB) ListChunks(ctx context.Context, in messages.ListChunks, opts ...CallOption) (messages.ChunkList, error) {
	return ask[messages.ChunkList](ctx, k.c, k.name, messages.OpDocChunks, in, opts)
}

// Chunks goes through the chunks that in asks for, from its page on. An error ends it.
func (k *KB) Chunks(ctx context.Context, in messages.ListChunks) iter.Seq2[messages.ChunkInfo, error] {
	first := in.NextToken
	return pages(func(token string) ([]messages.ChunkInfo, string, error) {
		in.NextToken = from(first, token)
		list, err := k.ListChunks(ctx, in)
		return list.Chunks, list.NextToken, err
	})
}

// UpdateChunk hides a chunk from every search, or shows it again.
func (k *KB) UpdateChunk(ctx context.Context, in messages.UpdateChunk, opts ...CallOption) (messages.ChunkState, error) {
	return ask[messages.ChunkState](ctx, k.c, k.name, messages.OpChunkUpdate, in, opts)
}

// Retrieve returns the chunks most relevant to a query. SearchBuilder makes the request.
func (k *KB) Retrieve(ctx context.Context, in messages.RetrieveRequest, opts ...CallOption) (messages.RetrieveReply, error) {
	return ask[messages.RetrieveReply](ctx, k.c, k.name, messages.OpRetrieve, in, opts)
}

// BatchRetrieve answers several queries in one call, in their order; when one fails all do.
func (k *KB) BatchRetrieve(ctx context.Context, queries []messages.RetrieveRequest, opts ...CallOption) (messages.BatchReply, error) {
	return ask[messages.BatchReply](ctx, k.c, k.name, messages.OpBatch, messages.BatchRetrieve{Queries: queries}, opts)
}

// Search is Retrieve with results in the form of a store's.
func (k *KB) Search(ctx context.Context, in messages.RetrieveRequest, opts ...CallOption) (SearchReply, error) {
	return ask[SearchReply](ctx, k.c, k.name, messages.OpSearch, in, opts)
}
