package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
)

// MetadataCondition restricts documents by their metadata. It returns a boolean SQL expression over a jsonb
// column of typed metadata that is never null; arg binds a value and returns its placeholder. Predicate of a
// filter.Bound is one. nil restricts nothing.
type MetadataCondition func(column string, arg func(value any) string) string

// Typed metadata of what readers see of a document, and of the version that GetDocument describes.
const (
	liveTyped  = "d.live_typed"
	shownTyped = "(CASE WHEN v.version = d.live_version THEN d.live_typed ELSE coalesce(v.typed, d.live_typed) END)"
)

// shownQuery is the statement of a file that has a place for a condition on documents, with that put in, and
// its arguments.
func shownQuery(name, column string, shown MetadataCondition, args ...any) (string, []any) {
	text := query(name)
	if shown == nil {
		return text, args
	}
	cond := shown(column, func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	})
	before, after, found := strings.Cut(text, "true /* shown */")
	if !found {
		panic("pgstore: " + name + " has no place for a condition")
	}
	return before + "(" + cond + ")" + after, args
}

// GetDocument returns the state of a document; an unknown or deleted one is DOCUMENT_NOT_FOUND, and so is
// one whose metadata, those of the version described, do not meet shown. Its metadata may hold internal
// fields. On a replica, which has no staged vectors, Embedded of an Indexing version is 0.
func (s *Store) GetDocument(ctx context.Context, kbID int64, subspace, docID string, shown MetadataCondition) (messages.DocumentInfo, error) {
	text, args := shownQuery("document_get", shownTyped, shown, kbID, subspace, docID)
	list, err := s.documents(ctx, text, args...)
	if err != nil {
		return messages.DocumentInfo{}, fmt.Errorf("get document %s: %w", docID, err)
	}
	if len(list) == 0 {
		return messages.DocumentInfo{}, documentNotFound(docID)
	}
	return list[0], nil
}

func documentNotFound(docID string) error {
	return &messages.Error{Code: messages.CodeDocumentNotFound, Field: "docId", Message: fmt.Sprintf("there is no document %q", docID)}
}

// DocumentFilter selects documents; the zero value selects all.
type DocumentFilter struct {
	Subspaces               []string // nil: all
	Status                  messages.DocumentStatus
	AfterSubspace, AfterDoc string // where the page before ended
	Shown                   MetadataCondition
}

// ListDocuments returns up to limit documents in order of subspace and id, as GetDocument does.
func (s *Store) ListDocuments(ctx context.Context, kbID int64, f DocumentFilter, limit int) ([]messages.DocumentInfo, error) {
	text, args := shownQuery("document_list", shownTyped, f.Shown, kbID, f.AfterSubspace, f.AfterDoc, f.Subspaces, f.Status, limit)
	list, err := s.documents(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	return list, nil
}

// documents runs a statement for documents, and then counts staged vectors where there are any. That is a
// statement of its own because a server in recovery refuses to plan one that names an unlogged table, and
// on the same connection because the pool may hold both kinds of server.
func (s *Store) documents(ctx context.Context, statement string, args ...any) ([]messages.DocumentInfo, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	var keys, versions []int64 // of documents with staged vectors to count
	at, seen := map[int64]int{}, 0
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.DocumentInfo, error) {
		d, key, replica, err := scanDocument(row)
		if !replica && d.Status == messages.StatusIndexing {
			at[key] = seen
			keys, versions = append(keys, key), append(versions, d.Version)
		}
		seen++
		return d, err
	})
	if err != nil || len(keys) == 0 {
		return list, err
	}
	return list, countStaged(ctx, conn, keys, versions, func(key int64, n int) { list[at[key]].Embedded = n })
}

func countStaged(ctx context.Context, conn *pgxpool.Conn, keys, versions []int64, found func(key int64, n int)) error {
	rows, err := conn.Query(ctx, query("staged_counts"), keys, versions)
	if err != nil {
		return fmt.Errorf("count staged vectors: %w", err)
	}
	var key int64
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error { found(key, n); return nil }); err != nil {
		return fmt.Errorf("count staged vectors: %w", err)
	}
	return nil
}

func scanDocument(row pgx.Row) (d messages.DocumentInfo, key int64, replica bool, err error) {
	err = row.Scan(&d.DocID, &d.Subspace, &d.Status, &d.Version, &d.LiveVersion, &d.UpdatedAt, &d.Title, &d.OSSKey, &d.Metadata,
		&d.ContentType, &d.SizeBytes, &d.Chunks, &d.Reused, &d.Tokens, &d.Warnings, &d.Error, &d.SubmittedAt, &d.Embedded, &d.Reactivated,
		&d.Lines, &key, &replica)
	return d, key, replica, err
}

// ListChunks returns up to limit chunks of a document's live version with ordinals above after, in order;
// none when that version does not meet shown.
func (s *Store) ListChunks(ctx context.Context, kb KB, subspace, docID string, after, limit int, shown MetadataCondition) ([]messages.ChunkInfo, error) {
	text, args := shownQuery("document_chunks", liveTyped, shown, kb.Generation.ID, kb.ID, subspace, docID, after, limit)
	rows, err := s.pool.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list chunks of %s: %w", docID, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.ChunkInfo, error) {
		var c messages.ChunkInfo
		return c, row.Scan(&c.ChunkID, &c.Content, &c.HeadingPath, &c.PageFrom, &c.PageTo, &c.Origin, &c.Tokens, &c.Status)
	})
	if err != nil {
		return nil, fmt.Errorf("list chunks of %s: %w", docID, err)
	}
	return list, nil
}

// SetChunkStatus makes a chunk of a document's live version active or inactive. Doing it again changes
// nothing. It waits for a swap of the document under way and then concerns the new version. A document that
// has no live version, or whose does not meet shown, is DOCUMENT_NOT_FOUND, an ordinal it has not NOT_FOUND.
func (s *Store) SetChunkStatus(
	ctx context.Context, kbID int64, subspace, docID string, ordinal int, status messages.ChunkStatus, shown MetadataCondition,
) error {
	text, args := shownQuery("chunk_document", liveTyped, shown, kbID, subspace, docID)
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var key, version, generation int64
		err := tx.QueryRow(ctx, text, args...).Scan(&key, &version, &generation)
		if errors.Is(err, pgx.ErrNoRows) {
			return documentNotFound(docID)
		}
		if err != nil {
			return err
		}
		var found int
		generations, err := collectColumn[int64](ctx, tx, "kb_generations", kbID)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, query("chunk_status"), generation, key, version, ordinal, status == messages.ChunkActive, generations).Scan(&found)
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
