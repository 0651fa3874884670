// Package dead records messages that could not be processed: Postgres is the record, the stream only
// carries them here.
package dead

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what the stage needs of the database.
type Store interface {
	RecordDeadLetter(ctx context.Context, d pgstore.NewDeadLetter) (failed bool, err error)
	ReceiptsOf(ctx context.Context, key, version int64) ([]pgstore.Receipt, error)
}

// Handler handles dead letters. Safe for concurrent use.
type Handler struct {
	store Store
	now   func() time.Time
}

// New returns a handler.
func New(store Store) *Handler { return &Handler{store: store, now: time.Now} }

// Handle records a dead letter and fails the version it was for, in one transaction, and returns the
// Failed events. A letter of a version that ended otherwise meanwhile is recorded and fails nothing.
func (h *Handler) Handle(ctx context.Context, d bus.Delivery) ([]bus.Message, error) {
	letter := describe(d)
	failed, err := h.store.RecordDeadLetter(ctx, letter)
	if err != nil {
		return nil, err
	}
	e := messages.Event{
		Tenant: letter.Tenant, KB: letter.KB, Subspace: letter.Subspace, DocID: letter.DocID, Status: messages.StatusFailed,
		Error: &letter.Error, Attempt: letter.Attempts, At: h.now().UTC(),
	}
	if letter.Ref != nil {
		if !failed {
			return nil, nil
		}
		return h.failVersion(ctx, e, *letter.Ref)
	}
	e.SubmitID = submitID(d)
	msg, err := bus.Event(e, letter.Source)
	return []bus.Message{msg}, err
}

// failVersion tells every submit that the failed version answered.
func (h *Handler) failVersion(ctx context.Context, e messages.Event, ref messages.Ref) ([]bus.Message, error) {
	receipts, err := h.store.ReceiptsOf(ctx, ref.DocKey, ref.Version)
	if err != nil {
		return nil, err
	}
	e.KBID, e.Version = ref.KBID, ref.Version
	out := make([]bus.Message, 0, len(receipts))
	for _, r := range receipts {
		e.SubmitID = r.SubmitID
		// A version that is taken up again may fail again: each run has an event of its own.
		msg, err := bus.Event(e, fmt.Sprintf("%s/%d", r.Source, ref.Run))
		if err != nil {
			return nil, err
		}
		out = append(out, msg)
	}
	return out, nil
}

func describe(d bus.Delivery) pgstore.NewDeadLetter {
	stage := d.Header[messages.HeaderDeadStage]
	letter := pgstore.NewDeadLetter{
		Source: fmt.Sprintf("%d/%d", d.StreamCreated.UnixNano(), d.Sequence),
		Tenant: d.Tenant, KB: d.KB, Stage: stage, Subject: d.Header[messages.HeaderDeadSubject], Headers: d.Header, Body: d.Body,
		Error: messages.Error{
			Code: messages.Code(d.Header[messages.HeaderDeadCode]), Message: d.Header[messages.HeaderDeadReason],
			Field: d.Header[messages.HeaderDeadField], Stage: stage,
		},
	}
	letter.Attempts, _ = strconv.Atoi(d.Header[messages.HeaderDeadTries]) //nolint:errcheck // a missing count is 0
	if letter.Headers == nil {
		letter.Headers = map[string]string{}
	}
	if letter.Body == nil {
		letter.Body = []byte{}
	}
	if stage == messages.StageIntake {
		letter.DocID, letter.Subspace = documentOf(d)
		return letter
	}
	if ref, ok := messages.RefOf(d.Body); ok {
		letter.Ref, letter.DocID, letter.Subspace = &ref, ref.DocID, ref.Subspace
	}
	return letter
}

// documentOf finds which document a refused submit was for, as far as it can be read.
func documentOf(d bus.Delivery) (docID, subspace string) {
	if id := d.Header[messages.HeaderDocID]; id != "" {
		return document(unescape(id), unescape(d.Header[messages.HeaderSubspace]))
	}
	var body struct {
		DocID    string `json:"docId"`
		ID       string `json:"_id"`
		Subspace string `json:"subspace"`
	}
	if !utf8.Valid(d.Body) || json.Unmarshal(d.Body, &body) != nil { // the decoder would repair an id
		return "", ""
	}
	if body.DocID == "" {
		body.DocID = body.ID
	}
	return document(body.DocID, body.Subspace)
}

// document keeps what can be an id and a subspace: anything else may be why the submit was refused.
func document(docID, subspace string) (string, string) {
	if len(docID) > messages.MaxDocIDBytes || messages.ValidText("docId", docID) != nil {
		docID = ""
	}
	if messages.ValidateName("subspace", subspace) != nil {
		subspace = ""
	}
	return docID, subspace
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil && messages.ValidText("", plain) == nil {
		return plain
	}
	return ""
}

func submitID(d bus.Delivery) string {
	seq, _ := strconv.ParseUint(d.Header[messages.HeaderDeadSeq], 10, 64) //nolint:errcheck // a missing one is 0
	return messages.SubmitRef(d.Header[messages.HeaderDeadMsgID], d.Header[messages.HeaderDeadStream], seq)
}
