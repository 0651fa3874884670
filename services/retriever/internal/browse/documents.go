package browse

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/services/retriever/internal/engine"
)

// GetDocument returns the state of a document.
func (b *Browser) GetDocument(ctx context.Context, tenant, kb string, req messages.DocumentRef) (*messages.DocumentInfo, error) {
	base, shown, err := b.document(ctx, tenant, kb, &req.Subspace, req.DocID)
	if err != nil {
		return nil, err
	}
	d, err := b.Store.GetDocument(ctx, base.ID, req.Subspace, req.DocID, shown)
	if err != nil {
		return nil, outage(ctx, err)
	}
	d.Metadata = engine.Public(base.Schema, d.Metadata)
	return &d, nil
}

// ListDocuments returns a page of documents.
func (b *Browser) ListDocuments(ctx context.Context, tenant, kb string, req messages.ListDocuments) (*messages.DocumentList, error) {
	limit, err := pageSize(req.Page)
	if err != nil {
		return nil, err
	}
	place, err := decodeToken(req.NextToken, 2)
	if err != nil {
		return nil, err
	}
	base, err := b.Store.LoadKB(ctx, tenant, kb)
	if err != nil {
		return nil, outage(ctx, err)
	}
	f := pgstore.DocumentFilter{Status: req.Status, AfterSubspace: place[0], AfterDoc: place[1]}
	if f.Subspaces, err = b.subspaces(base.Subspaces, req.Subspace); err != nil {
		return nil, err
	}
	if f.Shown, err = mandatory(base); err != nil {
		return nil, err
	}
	if req.Status != "" && !slices.Contains(statuses(), req.Status) {
		return nil, messages.Invalid("status", fmt.Sprintf("must be one of %v", statuses()))
	}
	docs, err := b.Store.ListDocuments(ctx, base.ID, f, limit)
	if err != nil {
		return nil, outage(ctx, err)
	}
	for i := range docs {
		docs[i].Metadata = engine.Public(base.Schema, docs[i].Metadata)
	}
	n, more, err := fitting(docs, limit, b.ReplyBytes)
	if err != nil {
		return nil, err
	}
	out := &messages.DocumentList{Documents: append([]messages.DocumentInfo{}, docs[:n]...)}
	if more {
		out.NextToken = encodeToken(docs[n-1].Subspace, docs[n-1].DocID)
	}
	return out, nil
}

// statuses are those a listed document may have.
func statuses() []messages.DocumentStatus {
	return []messages.DocumentStatus{messages.StatusPending, messages.StatusIndexing, messages.StatusReady, messages.StatusFailed, messages.StatusDeleting}
}

// ListChunks returns a page of the chunks of a document's live version.
func (b *Browser) ListChunks(ctx context.Context, tenant, kb string, req messages.ListChunks) (*messages.ChunkList, error) {
	limit, err := pageSize(req.Page)
	if err != nil {
		return nil, err
	}
	after, err := ordinal(req.NextToken)
	if err != nil {
		return nil, err
	}
	base, shown, err := b.document(ctx, tenant, kb, &req.Subspace, req.DocID)
	if err != nil {
		return nil, err
	}
	chunks, err := b.Store.ListChunks(ctx, base, req.Subspace, req.DocID, after, limit, shown)
	if err == nil && len(chunks) == 0 { // whether there is nothing to list, or nobody to list it of
		_, err = b.Store.GetDocument(ctx, base.ID, req.Subspace, req.DocID, shown)
	}
	if err != nil {
		return nil, outage(ctx, err)
	}
	n, more, err := fitting(chunks, limit, b.ReplyBytes)
	if err != nil {
		return nil, err
	}
	out := &messages.ChunkList{Chunks: append([]messages.ChunkInfo{}, chunks[:n]...)}
	if more {
		out.NextToken = encodeToken(strconv.Itoa(chunks[n-1].ChunkID))
	}
	return out, nil
}

// ordinal is the chunk that the page before ended with, -1 for the first page.
func ordinal(token string) (int, error) {
	if token == "" {
		return -1, nil
	}
	place, err := decodeToken(token, 1)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(place[0], 10, 32)
	if err != nil || n < 0 {
		return 0, &messages.Error{Code: messages.CodeCursorInvalid, Field: "nextToken", Message: "is none of this operation"}
	}
	return int(n), nil
}

// document checks a reference to a document, completes its subspace and returns the condition that documents
// are shown under.
func (b *Browser) document(ctx context.Context, tenant, kb string, subspace *string, docID string) (pgstore.KB, pgstore.MetadataCondition, error) {
	if docID == "" || len(docID) > messages.MaxDocIDBytes {
		return pgstore.KB{}, nil, messages.Invalid("docId", fmt.Sprintf("must have 1 to %d bytes", messages.MaxDocIDBytes))
	}
	if err := messages.ValidText("docId", docID); err != nil {
		return pgstore.KB{}, nil, err
	}
	base, err := b.Store.LoadKB(ctx, tenant, kb)
	if err != nil {
		return base, nil, outage(ctx, err)
	}
	if *subspace == "" {
		*subspace = messages.DefaultSubspace
	} else if !base.Subspaces && *subspace != messages.DefaultSubspace {
		return base, nil, messages.Invalid("subspace", "the knowledge base has no subspaces")
	} else if err := messages.ValidateName("subspace", *subspace); err != nil {
		return base, nil, err
	}
	shown, err := mandatory(base)
	return base, shown, err
}

// mandatory is the filter that documents are shown under; nil: none.
func mandatory(kb pgstore.KB) (pgstore.MetadataCondition, error) {
	b, given, err := filter.OfKnowledgeBase(kb.MandatoryFilter, kb.Schema, kb.Tenant)
	if err != nil || !given {
		return nil, err
	}
	return b.Predicate, nil
}

// subspaces is the filter of a listing; nil is all.
func (b *Browser) subspaces(enabled bool, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if !enabled && (len(names) != 1 || names[0] != messages.DefaultSubspace) {
		return nil, messages.Invalid("subspace", "the knowledge base has no subspaces")
	}
	if len(names) > b.Limits.Subspaces {
		return nil, messages.Invalid("subspace", fmt.Sprintf("names more than %d subspaces", b.Limits.Subspaces))
	}
	for i, name := range names {
		if err := messages.ValidateName(fmt.Sprintf("subspace[%d]", i), name); err != nil {
			return nil, err
		}
	}
	return names, nil
}
