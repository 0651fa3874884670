package pgstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// ErrKBChanged says that the knowledge base was changed or deleted since it was loaded: load it again.
var ErrKBChanged = errors.New("the knowledge base has changed")

// Order places a submit among those of its document: store time, then stream sequence.
type Order struct {
	At  time.Time
	Seq uint64
}

func (o Order) before(ns, seq int64) bool {
	n := o.At.UnixNano()
	return n < ns || n == ns && int64(o.Seq) < seq
}

// Submission is a validated submit whose content is known by its hash.
type Submission struct {
	KB                         KB
	Subspace, DocID            string
	Source                     string // recognises the submit when it is delivered again
	SubmitID                   string // what its events say
	Order                      Order
	Title, OSSKey, ContentType string
	Metadata                   json.RawMessage // a JSON object
	Blob                       Blob
	Content                    []byte // content to store along; nil when PutBlob did already
}

// Outcome is what became of a submit or delete.
type Outcome string

// The outcomes. Accepted starts a new version; Unchanged and MetadataOnly leave the content as it is;
// Superseded came too late; Removed is a delete.
const (
	Accepted     Outcome = "accepted"
	Unchanged    Outcome = "unchanged"
	MetadataOnly Outcome = "metadata"
	Superseded   Outcome = "superseded"
	Removed      Outcome = "deleted"
)

// Acceptance is the verdict on a submit or delete, the same each time it is delivered.
type Acceptance struct {
	Outcome   Outcome
	DocKey    int64
	Version   int64                   // that answers the submit
	Status    messages.DocumentStatus // of the newest version now
	Run       int
	Overtaken []Receipt // submits of the open version that this one superseded
	Again     bool      // delivered before
}

// Receipt is a submit that a version answers.
type Receipt struct {
	Version  int64
	Source   string
	SubmitID string
	Outcome  Outcome
}

// current is a document's row and its newest version as intake sees them under the row's lock.
type current struct {
	key, version      int64
	status            messages.DocumentStatus
	orderNS, orderSeq int64
	live              *int64
	liveMetadata      json.RawMessage
	liveOSSKey        string
	title, ossKey     string
	contentType       string
	metadata          json.RawMessage
	sha256            []byte
	hasVersion        bool
}

// AcceptSubmit decides what a submit becomes and writes it down, in one transaction. It is idempotent
// by Source. ErrBlobGone asks for the content to be stored again, ErrKBChanged for the knowledge base to
// be loaded again.
func (s *Store) AcceptSubmit(ctx context.Context, sub Submission) (Acceptance, error) {
	typed, err := filter.Typed(sub.KB.Schema, sub.Metadata)
	if err != nil {
		return Acceptance{}, err
	}
	var a Acceptance
	err = s.pipelined(ctx, func(conn *pgxpool.Conn) error {
		cur, again, err := openDocument(ctx, conn, sub.KB, sub.Subspace, sub.DocID, sub.Source, false)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		if again != nil {
			a = *again
		} else if a, err = accept(ctx, conn, b, sub, typed, cur); err != nil {
			return err
		}
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return Acceptance{}, fmt.Errorf("accept %s: %w", sub.DocID, err)
	}
	return a, nil
}

// accept decides and queues what is to be written.
func accept(ctx context.Context, q querier, b *pgx.Batch, sub Submission, typed json.RawMessage, cur current) (Acceptance, error) {
	r := receiptRow{source: sub.Source, kbID: sub.KB.ID, key: cur.key, version: cur.version, order: sub.Order, submitID: sub.SubmitID}
	a := Acceptance{DocKey: cur.key, Version: cur.version, Status: cur.status}
	switch {
	case sub.Order.before(cur.orderNS, cur.orderSeq):
		a.Outcome = Superseded
	case cur.sameContent(sub) && cur.sameMetadata(sub):
		a.Outcome = Unchanged
	case cur.sameContent(sub) && cur.isLive():
		a.Outcome = MetadataOnly
		b.Queue(query("intake_metadata"), cur.key, sub.Metadata, typed, sub.OSSKey, sub.Order.At.UnixNano(), int64(sub.Order.Seq))
	default:
		return newVersion(ctx, q, b, sub, typed, cur, r)
	}
	r.queue(b, a.Outcome)
	return a, nil
}

// newVersion makes the submit the newest version and drops what it overtakes, but for what is live.
func newVersion(ctx context.Context, q querier, b *pgx.Batch, sub Submission, typed json.RawMessage, cur current, r receiptRow) (Acceptance, error) {
	r.version = cur.version + 1
	a := Acceptance{Outcome: Accepted, DocKey: cur.key, Version: r.version, Status: messages.StatusPending}
	var err error
	if a.Overtaken, err = overtake(ctx, q, cur, &r); err != nil {
		return a, err
	}
	holdBlob(b, sub)
	b.Queue(query("intake_advance"), cur.key, r.version, messages.StatusPending, sub.Order.At.UnixNano(), int64(sub.Order.Seq))
	b.Queue(query("intake_version"), cur.key, r.version, sub.KB.ID, sub.KB.Generation.ID, sub.Title, sub.OSSKey, sub.ContentType,
		sub.Metadata, typed, sub.Blob.SHA256[:], sub.Blob.SizeBytes)
	if cur.version > 0 {
		b.Queue(query("intake_drop_versions"), cur.key, r.version, cur.live)
		b.Queue(query("staged_drop_older"), cur.key, r.version)
	}
	r.queue(b, Accepted)
	return a, nil
}

// holdBlob stores content that came along, makes sure that content is there, and keeps the collector off
// it until the transaction ends.
func holdBlob(b *pgx.Batch, sub Submission) {
	if sub.Content != nil {
		b.Queue(query("blob_insert"), sub.KB.ID, sub.Blob.SHA256[:], sub.Blob.SizeBytes)
		for part, rest := 0, sub.Content; len(rest) > 0; part++ {
			n := min(len(rest), BlobPartBytes)
			b.Queue(query("blob_part_insert"), sub.KB.ID, sub.Blob.SHA256[:], part, rest[:n])
			rest = rest[n:]
		}
	}
	b.Queue(query("blob_lock"), sub.KB.ID, sub.Blob.SHA256[:]).QueryRow(func(row pgx.Row) error {
		var size int64
		err := row.Scan(&size)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrBlobGone
		}
		return err
	})
}

// overtake lists the submits that an open newest version answers; they end Superseded.
func overtake(ctx context.Context, q querier, cur current, r *receiptRow) ([]Receipt, error) {
	if cur.status != messages.StatusPending && cur.status != messages.StatusIndexing || cur.version == 0 {
		return nil, nil
	}
	r.overtaken = &cur.version
	return receiptsOf(ctx, q, cur.key, cur.version)
}

func receiptsOf(ctx context.Context, tx querier, key, version int64) ([]Receipt, error) {
	rows, err := tx.Query(ctx, query("receipts_of_version"), key, version)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Receipt, error) {
		r := Receipt{Version: version}
		return r, row.Scan(&r.Source, &r.SubmitID, &r.Outcome)
	})
}

// Answered returns what became of a submit or delete that was answered before; ok is false for a new one.
func (s *Store) Answered(ctx context.Context, kbID int64, source string) (a Acceptance, ok bool, err error) {
	var submitID string
	var overtaken *int64
	err = s.pool.QueryRow(ctx, query("intake_receipt"), source, kbID).Scan(&a.DocKey, &a.Version, &submitID, &a.Outcome, &overtaken)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	if err == nil && overtaken != nil {
		a.Overtaken, err = receiptsOf(ctx, s.pool, a.DocKey, *overtaken)
	}
	if err != nil {
		return a, false, fmt.Errorf("look up submit: %w", err)
	}
	a.Again = true
	return a, true, nil
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// openDocument makes sure the document has a row, locks it, and reads it with its newest version; or
// finds that this submit was answered before. It begins the transaction; the statements go out together,
// and each behind the lock sees what the lock waited for.
// what it waited for. lockKB locks the knowledge base first, against a switch of generations.
func openDocument(ctx context.Context, conn *pgxpool.Conn, kb KB, subspace, docID, source string, lockKB bool) (current, *Acceptance, error) {
	var cur current
	var again *Acceptance
	var overtaken *int64
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	if lockKB {
		b.Queue(query("kb_share"), kb.ID)
	}
	b.Queue(query("intake_open"), kb.ID, subspace, docID)
	b.Queue(query("intake_lock"), kb.ID, subspace, docID, kb.Revision).QueryRow(cur.scanRow)
	b.Queue(query("intake_state"), kb.ID, subspace, docID, source).QueryRow(func(row pgx.Row) (err error) {
		again, overtaken, err = cur.scanState(row)
		return err
	})
	err := conn.SendBatch(ctx, b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return cur, nil, ErrKBChanged
	}
	if err != nil || again == nil {
		return cur, nil, err
	}
	again.Status = cur.status
	if overtaken != nil {
		again.Overtaken, err = receiptsOf(ctx, conn, again.DocKey, *overtaken)
	}
	return cur, again, err
}

func (c *current) scanRow(row pgx.Row) error {
	return row.Scan(&c.key, &c.version, &c.status, &c.orderNS, &c.orderSeq, &c.live, &c.liveMetadata, &c.liveOSSKey)
}

// scanState reads the newest version, if there is one, and the answer to the submit, if it was answered
// before. A submit that changed nothing left the document's row alone: the newest such moves the order on.
func (c *current) scanState(row pgx.Row) (again *Acceptance, overtaken *int64, err error) {
	var generation, ns, seq, key, version *int64
	var title, ossKey, contentType *string
	var outcome *Outcome
	err = row.Scan(&generation, &title, &ossKey, &contentType, &c.metadata, &c.sha256, &ns, &seq, &key, &version, &outcome, &overtaken)
	if err != nil {
		return nil, nil, err
	}
	if generation != nil {
		c.hasVersion, c.title, c.ossKey, c.contentType = true, *title, *ossKey, *contentType
	}
	if ns != nil && (*ns > c.orderNS || *ns == c.orderNS && *seq > c.orderSeq) {
		c.orderNS, c.orderSeq = *ns, *seq
	}
	if key != nil {
		again = &Acceptance{Outcome: *outcome, DocKey: *key, Version: *version, Again: true}
	}
	return again, overtaken, nil
}

func (c *current) isLive() bool {
	return c.status == messages.StatusReady && c.live != nil && *c.live == c.version
}

// sameContent reports whether the newest version, unless it failed, would be built from the same
// bytes in the same way.
func (c *current) sameContent(sub Submission) bool {
	return c.hasVersion && c.status != messages.StatusFailed && c.status != messages.StatusDeleted &&
		bytes.Equal(c.sha256, sub.Blob.SHA256[:]) && c.title == sub.Title && c.contentType == sub.ContentType
}

func (c *current) sameMetadata(sub Submission) bool {
	if c.isLive() {
		return c.liveOSSKey == sub.OSSKey && sameJSON(c.liveMetadata, sub.Metadata)
	}
	return c.ossKey == sub.OSSKey && sameJSON(c.metadata, sub.Metadata)
}

// sameJSON compares values, not bytes: jsonb does not keep the order of keys.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := decodeNumbers(a)
	y, errY := decodeNumbers(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeNumbers(data json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// receiptRow is a row of document_receipts to be written.
type receiptRow struct {
	source, submitID   string
	kbID, key, version int64
	order              Order
	overtaken          *int64
}

func (r receiptRow) args(o Outcome) []any {
	return []any{r.source, r.kbID, r.key, r.version, r.order.At.UnixNano(), int64(r.order.Seq), r.submitID, o, r.overtaken}
}

func (r receiptRow) queue(b *pgx.Batch, o Outcome) {
	b.Queue(query("intake_write_receipt"), r.args(o)...)
}
