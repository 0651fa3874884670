package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-project/weir/pkg/messages"
)

// KB is a knowledge base with its live generation.
type KB struct {
	ID              int64
	Tenant, Name    string
	Revision        int64 // raised by every change readers must see
	IndexType       messages.IndexType
	Subspaces       bool
	Schema          messages.MetadataSchema
	Description     string
	Tags            map[string]string
	Retrieval       json.RawMessage // default retrieval configuration, nil when none
	MandatoryFilter json.RawMessage // pkg/pgstore/filter reads it; nil when none
	CreatedAt       time.Time
	UpdatedAt       time.Time
	Generation      Generation
}

// Generation is one immutable indexing configuration.
type Generation struct {
	ID       int64
	Space    *messages.Space // nil without vectors
	Parser   string
	Chunking messages.Chunking
	Analyzer string
	// Fingerprint is that of the analyzer's output when the generation was made; empty: not recorded, or not read.
	Fingerprint string
}

// NewKB is what CreateKB needs beyond the request: everything resolved, nothing left to defaults.
type NewKB struct {
	Tenant      string
	Name        string
	IndexType   messages.IndexType
	Subspaces   bool
	Schema      messages.MetadataSchema
	Description string
	Tags        map[string]string
	Retrieval   json.RawMessage
	Mandatory   json.RawMessage // the mandatory filter, checked
	Generation  Generation
}

const uniqueViolation = "23505"

// CreateKB creates a knowledge base with its first generation and that one's partition. An existing
// name is ALREADY_EXISTS.
func (s *Store) CreateKB(ctx context.Context, n NewKB) (KB, error) {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var id int64
		var created time.Time
		err := tx.QueryRow(ctx, query("kb_create"), n.Tenant, n.Name, n.IndexType, n.Subspaces, orEmpty(n.Schema),
			n.Description, orNoTags(n.Tags), n.Retrieval, n.Mandatory).Scan(&id, &created)
		if err != nil {
			return err
		}
		_, err = createGeneration(ctx, tx, id, stateLive, n.Generation)
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == uniqueViolation {
		return KB{}, &messages.Error{Code: messages.CodeAlreadyExists, Field: "knowledgeBaseName", Message: fmt.Sprintf("knowledge base %q exists", n.Name)}
	}
	if err != nil {
		return KB{}, fmt.Errorf("create knowledge base %s: %w", n.Name, err)
	}
	return s.LoadKB(ctx, n.Tenant, n.Name)
}

func orEmpty(s messages.MetadataSchema) messages.MetadataSchema {
	if s == nil {
		return messages.MetadataSchema{}
	}
	return s
}

func orNoTags(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return tags
}

// LoadKB returns a knowledge base by name; an unknown one is KNOWLEDGE_BASE_NOT_FOUND.
func (s *Store) LoadKB(ctx context.Context, tenant, name string) (KB, error) {
	kb, err := scanKB(s.pool.QueryRow(ctx, query("kb_load"), tenant, name))
	if errors.Is(err, pgx.ErrNoRows) {
		return KB{}, kbNotFound(name)
	}
	if err != nil {
		return KB{}, fmt.Errorf("load knowledge base %s: %w", name, err)
	}
	return kb, nil
}

func kbNotFound(name string) error {
	return &messages.Error{Code: messages.CodeKBNotFound, Field: "knowledgeBaseName", Message: fmt.Sprintf("there is no knowledge base %q", name)}
}

// ListKBs returns up to limit knowledge bases of a tenant with names after the given one, in order
// of name.
func (s *Store) ListKBs(ctx context.Context, tenant, after string, limit int) ([]KB, error) {
	rows, err := s.pool.Query(ctx, query("kb_list"), tenant, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list knowledge bases: %w", err)
	}
	kbs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (KB, error) { return scanKB(row) })
	if err != nil {
		return nil, fmt.Errorf("list knowledge bases: %w", err)
	}
	return kbs, nil
}

func scanKB(row pgx.Row) (KB, error) {
	var k KB
	err := row.Scan(&k.ID, &k.Tenant, &k.Name, &k.Revision, &k.IndexType, &k.Subspaces, &k.Schema, &k.Description, &k.Tags,
		&k.Retrieval, &k.MandatoryFilter, &k.CreatedAt, &k.UpdatedAt,
		&k.Generation.ID, &k.Generation.Space, &k.Generation.Parser, &k.Generation.Chunking, &k.Generation.Analyzer)
	return k, err
}

// KBUpdate lists what UpdateKB changes; nil fields stay as they are.
type KBUpdate struct {
	Description  *string
	Tags         map[string]string
	AddFields    messages.MetadataSchema
	Retrieval    json.RawMessage
	SetRetrieval bool // Retrieval replaces what was there, nil included
	Mandatory    json.RawMessage
	SetMandatory bool // the same
}

// UpdateKB changes a knowledge base. A field declared already, with any type, is a VALIDATION_ERROR.
func (s *Store) UpdateKB(ctx context.Context, tenant, name string, u KBUpdate) (KB, error) {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var id int64
		var schema messages.MetadataSchema
		err := tx.QueryRow(ctx, query("kb_lock"), tenant, name).Scan(&id, &schema)
		if errors.Is(err, pgx.ErrNoRows) {
			return kbNotFound(name)
		}
		if err != nil {
			return err
		}
		var merged *messages.MetadataSchema
		if len(u.AddFields) > 0 {
			all := append(schema, u.AddFields...)
			if err := all.Validate("metadata"); err != nil {
				return err
			}
			merged = &all
		}
		_, err = tx.Exec(ctx, query("kb_update"), id, u.Description, u.Tags, merged, u.Retrieval, u.SetRetrieval, u.Mandatory, u.SetMandatory)
		return err
	})
	if err != nil {
		return KB{}, fmt.Errorf("update knowledge base %s: %w", name, err)
	}
	return s.LoadKB(ctx, tenant, name)
}

// shareKB keeps a knowledge base from being deleted, or what is live in it from being changed, until the transaction ends; false when it is
// deleted.
func shareKB(ctx context.Context, tx pgx.Tx, id int64) (bool, error) {
	err := tx.QueryRow(ctx, query("kb_share"), id).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// DeleteKB hides a knowledge base at once and for ever; PurgeDeleted removes its data.
func (s *Store) DeleteKB(ctx context.Context, tenant, name string) error {
	var id int64
	err := s.pool.QueryRow(ctx, query("kb_delete"), tenant, name).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return kbNotFound(name)
	}
	if err != nil {
		return fmt.Errorf("delete knowledge base %s: %w", name, err)
	}
	return nil
}

// CountDocuments counts the documents of a knowledge base by status, and its retrievable chunks.
func (s *Store) CountDocuments(ctx context.Context, kb KB) (messages.DocumentCounts, error) {
	var c messages.DocumentCounts
	err := s.pool.QueryRow(ctx, query("kb_counts"), kb.ID).Scan(&c.Pending, &c.Indexing, &c.Ready, &c.Failed)
	if err != nil {
		return c, fmt.Errorf("count documents of %s: %w", kb.Name, err)
	}
	err = s.pool.QueryRow(ctx, "SELECT count(*) FROM "+partition(kb.Generation.ID)).Scan(&c.Chunks)
	if err != nil {
		return c, fmt.Errorf("count chunks of %s: %w", kb.Name, err)
	}
	return c, nil
}

// Info describes the knowledge base for callers.
func (k KB) Info() messages.KBInfo {
	return messages.KBInfo{
		KnowledgeBaseName: k.Name, ID: k.ID, Description: k.Description, Tags: k.Tags, IndexType: k.IndexType, Subspace: k.Subspaces,
		Metadata: orEmpty(k.Schema), Embedding: k.Generation.Space, Chunking: k.Generation.Chunking, Analyzer: k.Generation.Analyzer,
		Retrieval: k.Retrieval, MandatoryFilter: k.MandatoryFilter, Generation: k.Generation.ID, CreatedAt: k.CreatedAt.UTC(), UpdatedAt: k.UpdatedAt.UTC(),
	}
}
