package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// GetDocument returns the state of a document; an unknown or deleted one is DOCUMENT_NOT_FOUND. Its
// metadata may hold internal fields.
func (s *Store) GetDocument(ctx context.Context, kbID int64, subspace, docID string) (messages.DocumentInfo, error) {
	d, err := scanDocument(s.pool.QueryRow(ctx, query("document_get"), kbID, subspace, docID))
	if errors.Is(err, pgx.ErrNoRows) {
		return d, documentNotFound(docID)
	}
	if err != nil {
		return d, fmt.Errorf("get document %s: %w", docID, err)
	}
	return d, nil
}

func documentNotFound(docID string) error {
	return &messages.Error{Code: messages.CodeDocumentNotFound, Field: "docId", Message: fmt.Sprintf("there is no document %q", docID)}
}

// DocumentFilter selects documents; the zero value selects all.
type DocumentFilter struct {
	Subspaces               []string // nil: all
	Status                  messages.DocumentStatus
	AfterSubspace, AfterDoc string // where the page before ended
}

// ListDocuments returns up to limit documents in order of subspace and id.
func (s *Store) ListDocuments(ctx context.Context, kbID int64, f DocumentFilter, limit int) ([]messages.DocumentInfo, error) {
	rows, err := s.pool.Query(ctx, query("document_list"), kbID, f.AfterSubspace, f.AfterDoc, f.Subspaces, f.Status, limit)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.DocumentInfo, error) {
		return scanDocument(row)
	})
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	return list, nil
}

func scanDocument(row pgx.Row) (messages.DocumentInfo, error) {
	var d messages.DocumentInfo
	err := row.Scan(&d.DocID, &d.Subspace, &d.Status, &d.Version, &d.LiveVersion, &d.UpdatedAt, &d.Title, &d.OSSKey, &d.Metadata,
		&d.ContentType, &d.SizeBytes, &d.Chunks, &d.Reused, &d.Tokens, &d.Warnings, &d.Error, &d.SubmittedAt, &d.Embedded, &d.Reactivated)
	return d, err
}

// ListChunks returns up to limit chunks of a document's live version with ordinals above after, in order.
func (s *Store) ListChunks(ctx context.Context, kb KB, subspace, docID string, after, limit int) ([]messages.ChunkInfo, error) {
	rows, err := s.pool.Query(ctx, query("document_chunks"), kb.Generation.ID, kb.ID, subspace, docID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list chunks of %s: %w", docID, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.ChunkInfo, error) {
		var c messages.ChunkInfo
		return c, row.Scan(&c.ChunkID, &c.Content, &c.HeadingPath, &c.PageFrom, &c.PageTo, &c.Tokens, &c.Status)
	})
	if err != nil {
		return nil, fmt.Errorf("list chunks of %s: %w", docID, err)
	}
	return list, nil
}

// SetChunkStatus makes a chunk of a document's live version active or inactive. Doing it again changes
// nothing. It waits for a swap of the document under way and then concerns the new version. A document that
// has no live version is DOCUMENT_NOT_FOUND, an ordinal it has not NOT_FOUND.
func (s *Store) SetChunkStatus(ctx context.Context, kbID int64, subspace, docID string, ordinal int, status messages.ChunkStatus) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var key, version, generation int64
		err := tx.QueryRow(ctx, query("chunk_document"), kbID, subspace, docID).Scan(&key, &version, &generation)
		if errors.Is(err, pgx.ErrNoRows) {
			return documentNotFound(docID)
		}
		if err != nil {
			return err
		}
		var found int
		err = tx.QueryRow(ctx, query("chunk_status"), generation, key, version, ordinal, status == messages.ChunkActive).Scan(&found)
		if err == nil && found == 0 {
			return &messages.Error{Code: messages.CodeNotFound, Field: "chunkId", Message: fmt.Sprintf("the document has no chunk %d", ordinal)}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("set chunk %d of %s %s: %w", ordinal, docID, status, err)
	}
	return nil
}
