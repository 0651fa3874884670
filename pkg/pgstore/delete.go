package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
)

// Deletion is a validated delete.
type Deletion struct {
	KB              KB
	Subspace, DocID string
	Source          string
	SubmitID        string
	Order           Order
	// LineOf says that it is removed as a line of an older version of that document; one that is none, or not any
	// more, is as one that does not exist. The zero value: it is removed whatever it is.
	LineOf Line
}

// errNoDocument rolls back the row that a delete of an unknown document opened.
var errNoDocument = errors.New("no such document")

// DeleteDocument removes a document with its chunks, vectors, postings, staged rows and contents in
// one transaction, and leaves a tombstone that fences late work. It is idempotent by Source. A
// document that does not exist, or is deleted already, is DOCUMENT_NOT_FOUND. One that is split is Deleting until its
// lines are gone.
func (s *Store) DeleteDocument(ctx context.Context, d Deletion) (Acceptance, error) {
	var a Acceptance
	err := s.answering(ctx, func(conn *pgxpool.Conn) error {
		found, err := openDocuments(ctx, conn, []opening{{identity{d.KB.ID, d.Subspace, d.DocID}, d.KB.Revision, d.Source}}, func(b *pgx.Batch) {
			b.Queue(query("kb_share"), d.KB.ID)
		})
		if err != nil {
			return err
		}
		doc := found[0]
		b := &pgx.Batch{}
		if doc.again != nil {
			if a = *doc.again; a.Outcome != Removed && a.Outcome != Superseded {
				return errKeyOfOther(ofSubmit)
			}
		} else if a, err = remove(ctx, conn, b, d, doc.current); err != nil {
			return err
		}
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, errNoDocument) {
		return a, &messages.Error{Code: messages.CodeDocumentNotFound, Field: "docId", Message: fmt.Sprintf("there is no document %q", d.DocID)}
	}
	if err != nil {
		return Acceptance{}, fmt.Errorf("delete %s: %w", d.DocID, err)
	}
	return a, nil
}

func remove(ctx context.Context, q querier, b *pgx.Batch, d Deletion, cur current) (Acceptance, error) {
	r := receiptRow{source: d.Source, kbID: d.KB.ID, key: cur.key, version: cur.version, order: d.Order, submitID: d.SubmitID}
	a := Acceptance{DocKey: cur.key, Version: cur.version}
	if cur.version == 0 || cur.status == messages.StatusDeleted || cur.status == messages.StatusDeleting || !d.LineOf.olderIs(cur.line) {
		return a, errNoDocument
	}
	if d.Order.before(cur.orderNS, cur.orderSeq) {
		a.Outcome, a.Status = Superseded, messages.StatusSuperseded
		r.queue(b, a)
		return a, nil
	}
	r.version = cur.version + 1
	a = Acceptance{Outcome: Removed, DocKey: cur.key, Version: r.version, Status: messages.StatusDeleted}
	if cur.split {
		a.Status = messages.StatusDeleting // until its lines are gone
		b.Queue(query("delete_lines"), cur.key, r.version)
	}
	var err error
	if a.Overtaken, err = overtake(ctx, q, cur, &r); err != nil {
		return a, err
	}
	r.queue(b, a)
	return a, dropDocument(ctx, q, b, d.KB.ID, cur.key, r.version, d.Order, a.Status, d.LineOf != Line{})
}

// dropDocument removes everything of a document from every generation and marks its tombstone, Deleted or Deleting.
func dropDocument(ctx context.Context, q querier, b *pgx.Batch, kbID, key, version int64, order Order, status messages.DocumentStatus, line bool) error {
	generations, err := collectColumn[int64](ctx, q, "kb_generations", kbID)
	if err != nil {
		return err
	}
	blobs, err := collectColumn[[]byte](ctx, q, "version_blobs", key)
	if err != nil {
		return err
	}
	claimed, err := collectColumn[[]byte](ctx, q, "blob_claim", kbID, blobs)
	if err != nil {
		return err
	}
	for _, g := range generations {
		b.Queue(query("live_drop"), g, []int64{key})
	}
	b.Queue(query("staged_drop_older"), key, version)
	if len(generations) > 1 {
		b.Queue(query("build_skip"), []int64{key}, []int64{version})
	}
	b.Queue(query("delete_versions"), key) // and with them what jobs build of them
	b.Queue(query("delete_mark"), key, version, order.At.UnixNano(), int64(order.Seq), status, line)
	b.Queue(query("blob_drop"), kbID, claimed)
	return nil
}

func collectColumn[T any](ctx context.Context, tx querier, name string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, query(name), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}
