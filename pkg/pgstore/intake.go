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
	"github.com/jackc/pgx/v5/pgconn"
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
	Split                      bool   // its lines become documents of their own
	Line                       Line   // the zero value: it is no line
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
	Status    messages.DocumentStatus // that the first event of the submit tells, whatever has come since
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
	split             bool // the newest version is split
	line              Line
}

// AcceptSubmit decides what a submit becomes and writes it down, in one transaction. It is idempotent
// by Source. ErrBlobGone asks for the content to be stored again, ErrKBChanged for the knowledge base to
// be loaded again.
func (s *Store) AcceptSubmit(ctx context.Context, sub Submission) (Acceptance, error) {
	all, err := s.AcceptSubmits(ctx, []Submission{sub})
	if err != nil {
		return Acceptance{}, err
	}
	return all[0], nil
}

// AcceptSubmits is AcceptSubmit for several in one transaction, or in several where one document occurs more
// than once. After an error, which may be that of one of them, run them again one by one.
func (s *Store) AcceptSubmits(ctx context.Context, subs []Submission) ([]Acceptance, error) {
	return s.acceptAll(ctx, subs, nil)
}

// acceptAll is AcceptSubmits with something that each transaction does first; nil: nothing.
func (s *Store) acceptAll(ctx context.Context, subs []Submission, first func(*pgx.Batch)) ([]Acceptance, error) {
	typed := make([]json.RawMessage, len(subs))
	for i, sub := range subs {
		var err error
		if typed[i], err = filter.Typed(sub.KB.Schema, sub.Metadata); err != nil {
			return nil, err
		}
	}
	out := make([]Acceptance, len(subs))
	for _, round := range rounds(subs, Submission.identity) {
		if err := s.acceptRound(ctx, subs, typed, round, out, first); err != nil {
			return nil, fmt.Errorf("accept %s: %w", described(subs, "submits", func(s Submission) string { return s.DocID }), err)
		}
	}
	return out, nil
}

// described names the one item of a list, or says how many of what there are.
func described[T any](items []T, what string, id func(T) string) string {
	if len(items) == 1 {
		return id(items[0])
	}
	return fmt.Sprintf("%d %s", len(items), what)
}

// rounds divides the places of items so that no key occurs twice in a round, and each comes in its order.
func rounds[T any, K comparable](items []T, key func(T) K) [][]int {
	var out [][]int
	seen := map[K]int{}
	for i, item := range items {
		k := key(item)
		n := seen[k]
		seen[k]++
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// identity of a document.
type identity struct {
	kbID            int64
	subspace, docID string
}

func (s Submission) identity() identity { return identity{s.KB.ID, s.Subspace, s.DocID} }

func (s *Store) acceptRound(ctx context.Context, subs []Submission, typed []json.RawMessage, round []int, out []Acceptance, first func(*pgx.Batch)) error {
	asked := make([]opening, len(round))
	for n, i := range round {
		asked[n] = opening{identity: subs[i].identity(), revision: subs[i].KB.Revision, source: subs[i].Source}
	}
	return s.answering(ctx, func(conn *pgxpool.Conn) error {
		docs, err := openDocuments(ctx, conn, asked, func(b *pgx.Batch) {
			b.Queue(query("lookup_plans"))
			if first != nil {
				first(b)
			}
		})
		if err != nil {
			return err
		}
		var w intakeWrites
		for n, i := range round {
			if docs[n].again != nil {
				if out[i] = *docs[n].again; out[i].Outcome == Removed {
					return errKeyOfOther(ofDelete)
				}
			} else if out[i], err = accept(ctx, conn, &w, subs[i], typed[i], docs[n].current); err != nil {
				return err
			}
		}
		if err := w.blobs.write(ctx, conn); err != nil {
			return err
		}
		b := &pgx.Batch{}
		w.queue(b)
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
}

// answering is pipelined for what writes receipts. One that is there already although the submit met no answer is of
// another document, which took the source meanwhile: those of one document wait for each other.
func (s *Store) answering(ctx context.Context, fn func(*pgxpool.Conn) error) error {
	err := s.pipelined(ctx, fn)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == uniqueViolation && pgErr.ConstraintName == "document_receipts_pkey" {
		return errKeyOfOther(ofOtherDocument)
	}
	return err
}

// accept decides and gathers what is to be written.
func accept(ctx context.Context, q querier, w *intakeWrites, sub Submission, typed json.RawMessage, cur current) (Acceptance, error) {
	r := receiptRow{source: sub.Source, kbID: sub.KB.ID, key: cur.key, version: cur.version, order: sub.Order, submitID: sub.SubmitID}
	a := Acceptance{DocKey: cur.key, Version: cur.version}
	switch {
	case sub.Order.before(cur.orderNS, cur.orderSeq):
		a.Outcome, a.Status = Superseded, messages.StatusSuperseded
	case sub.Split: // its lines may have changed, or failed
		return newVersion(ctx, q, w, sub, typed, cur, r)
	case cur.sameContent(sub) && cur.sameMetadata(sub):
		a.Outcome, a.Status = Unchanged, cur.shared()
	case cur.sameContent(sub) && cur.isLive():
		a.Outcome, a.Status = MetadataOnly, messages.StatusReady
		w.metadata = append(w.metadata, []any{cur.key, sub.Metadata, typed, sub.OSSKey, sub.Order.At.UnixNano(), int64(sub.Order.Seq)})
	default:
		return newVersion(ctx, q, w, sub, typed, cur, r)
	}
	if a.Outcome != Superseded && cur.line != sub.Line {
		w.owners.add(cur.key, sub.Line)
	}
	w.receipts.add(r, a)
	return a, nil
}

// newVersion makes the submit the newest version and drops what it overtakes, but for what is live.
func newVersion(ctx context.Context, q querier, w *intakeWrites, sub Submission, typed json.RawMessage, cur current, r receiptRow) (Acceptance, error) {
	r.version = cur.version + 1
	a := Acceptance{Outcome: Accepted, DocKey: cur.key, Version: r.version, Status: messages.StatusPending}
	var err error
	if a.Overtaken, err = overtake(ctx, q, cur, &r); err != nil {
		return a, err
	}
	w.blobs.add(sub)
	w.versions.add(sub, typed, cur.key, r.version)
	switch {
	case sub.Split:
		w.splits.add(cur.key, r.version)
	case cur.split:
		w.unsplits.add(cur.key, r.version)
	}
	if cur.version > 0 {
		w.replaced.add(cur.key, r.version, cur.live)
	}
	w.receipts.add(r, a)
	return a, nil
}

// overtake lists the submits that an open newest version answers, or the delete that is not over; they end Superseded.
func overtake(ctx context.Context, q querier, cur current, r *receiptRow) ([]Receipt, error) {
	switch cur.status {
	case messages.StatusPending, messages.StatusIndexing, messages.StatusDeleting:
	default:
		return nil, nil
	}
	if cur.version == 0 {
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

// errKeyOfOther refuses what is recognised by its source and is not what was answered then. Only callers who choose their
// keys can bring that about.
func errKeyOfOther(what string) error { return messages.Invalid(messages.HeaderIdempotencyKey, what) }

const (
	ofOtherDocument = "was given to another document"
	ofDelete        = "was given to a delete"
	ofSubmit        = "was given to a submit"
)

// Answered returns what became of a submit that was answered before; ok is false for a new one.
func (s *Store) Answered(ctx context.Context, sub Submission) (a Acceptance, ok bool, err error) {
	var same bool
	ok, err = s.answered(ctx, &a, "intake_receipt", []any{sub.Source, sub.KB.ID, sub.Subspace, sub.DocID}, &same)
	switch {
	case !ok:
	case !same:
		return a, false, errKeyOfOther(ofOtherDocument)
	case a.Outcome == Removed:
		return a, false, errKeyOfOther(ofDelete)
	}
	return a, ok, err
}

// AnsweredAs returns what became of the last submit of the document under the submit's id, and its source; ok is false when there is
// none.
func (s *Store) AnsweredAs(ctx context.Context, sub Submission) (source string, a Acceptance, ok bool, err error) {
	ok, err = s.answered(ctx, &a, "intake_copied", []any{sub.KB.ID, sub.Subspace, sub.DocID, sub.SubmitID}, &source)
	return source, a, ok, err
}

// answered reads an answer that a statement finds, behind what else it gives; false when it finds none.
func (s *Store) answered(ctx context.Context, a *Acceptance, name string, args []any, first ...any) (bool, error) {
	var overtaken *int64
	err := s.pool.QueryRow(ctx, query(name), args...).Scan(append(first, &a.DocKey, &a.Version, &a.Outcome, &a.Status, &overtaken)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err == nil && overtaken != nil {
		a.Overtaken, err = receiptsOf(ctx, s.pool, a.DocKey, *overtaken)
	}
	if err != nil {
		return false, fmt.Errorf("look up submit: %w", err)
	}
	a.Again = true
	return true, nil
}

// AnsweredBefore returns what became of a submit or delete of a document that any knowledge base of the name answered, one that is
// deleted since as well; ok is false when none did. The source is without the knowledge base's id.
func (s *Store) AnsweredBefore(ctx context.Context, tenant, name, source, subspace, docID string) (kb KB, a Acceptance, ok bool, err error) {
	kb = KB{Tenant: tenant, Name: name}
	ok, err = s.answered(ctx, &a, "intake_answered", []any{tenant, name, source, subspace, docID}, &kb.ID)
	return kb, a, ok, err
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// opening is a document to be opened for a submit or delete.
type opening struct {
	identity
	revision int64 // of the knowledge base as it was loaded
	source   string
}

// opened is a document as intake sees it under its lock, and what became of the submit when it was delivered
// before.
type opened struct {
	current
	again     *Acceptance
	overtaken *int64 // of again
}

// openDocuments makes sure that each document has a row, locks it, and reads it with its newest version. It
// begins the transaction; the statements go out together, and each behind the lock sees what the lock waited
// for. No document may occur twice. ErrKBChanged is of one of them or more: rolled back, none leaves a row.
// first queues what is to be done, such as locked, before the documents are opened.
func openDocuments(ctx context.Context, conn *pgxpool.Conn, asked []opening, first func(*pgx.Batch)) ([]opened, error) {
	n := len(asked)
	kbs, subspaces, docs, revisions, sources := make([]int64, n), make([]string, n), make([]string, n), make([]int64, n), make([]string, n)
	out := make([]opened, n)
	for i, o := range asked {
		kbs[i], subspaces[i], docs[i], revisions[i], sources[i] = o.kbID, o.subspace, o.docID, o.revision, o.source
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	first(b)
	b.Queue(query("intake_open"), kbs, subspaces, docs)
	b.Queue(query("intake_lock"), kbs, subspaces, docs, revisions).Query(func(rows pgx.Rows) error { return scanEach(rows, out, (*opened).scanRow) })
	b.Queue(query("intake_state"), kbs, subspaces, docs, sources).Query(func(rows pgx.Rows) error { return scanEach(rows, out, (*opened).scanState) })
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].key == 0 {
			return nil, ErrKBChanged
		}
		if again := out[i].again; again != nil && again.DocKey != out[i].key {
			return nil, errKeyOfOther(ofOtherDocument)
		}
		if err := out[i].complete(ctx, conn); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scanEach scans rows into the elements that their first column numbers, from 1.
func scanEach[T any](rows pgx.Rows, into []T, scan func(*T, pgx.Rows, *int64) error) error {
	for rows.Next() {
		if i := bigEndian64(rows.RawValues()[0]); i < 1 || i > int64(len(into)) {
			return fmt.Errorf("row %d of %d", i, len(into))
		} else if err := scan(&into[i-1], rows, &i); err != nil {
			return err
		}
	}
	return rows.Err()
}

// complete adds what is rarely needed.
func (o *opened) complete(ctx context.Context, q querier) (err error) {
	if o.again != nil && o.overtaken != nil {
		o.again.Overtaken, err = receiptsOf(ctx, q, o.again.DocKey, *o.overtaken)
	}
	return err
}

func (o *opened) scanRow(row pgx.Rows, i *int64) error {
	return row.Scan(i, &o.key, &o.version, &o.status, &o.orderNS, &o.orderSeq, &o.live, &o.liveMetadata, &o.liveOSSKey,
		&o.line.Parent, &o.line.Version, &o.line.Number)
}

// scanState reads the newest version, if there is one, and the answer to the submit, if it was answered
// before. A submit that changed nothing left the document's row alone: the newest such moves the order on.
func (o *opened) scanState(row pgx.Rows, i *int64) error {
	var generation, ns, seq, key, version *int64
	var title, ossKey, contentType *string
	var outcome *Outcome
	var status *messages.DocumentStatus
	err := row.Scan(i, &generation, &title, &ossKey, &contentType, &o.metadata, &o.sha256, &o.split, &ns, &seq, &key, &version, &outcome, &status, &o.overtaken)
	if err != nil {
		return err
	}
	if generation != nil {
		o.hasVersion, o.title, o.ossKey, o.contentType = true, *title, *ossKey, *contentType
	}
	if ns != nil && (*ns > o.orderNS || *ns == o.orderNS && *seq > o.orderSeq) {
		o.orderNS, o.orderSeq = *ns, *seq
	}
	if key != nil {
		o.again = &Acceptance{Outcome: *outcome, DocKey: *key, Version: *version, Status: *status, Again: true}
	}
	return nil
}

// shared is the status of a submit that changes nothing: where the version that answers it is still open, that version's
// terminal event tells this submit too.
func (c *current) shared() messages.DocumentStatus {
	if c.status == messages.StatusPending || c.status == messages.StatusIndexing {
		return messages.StatusPending
	}
	return messages.StatusReady
}

func (c *current) isLive() bool {
	return c.status == messages.StatusReady && c.live != nil && *c.live == c.version
}

// sameContent reports whether the newest version, unless it failed, would be built from the same
// bytes in the same way.
func (c *current) sameContent(sub Submission) bool {
	return c.hasVersion && !c.split && c.status != messages.StatusFailed && c.status != messages.StatusDeleted &&
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
