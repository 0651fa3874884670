package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

const (
	// clockSlack is how much the server's clock may be behind ours.
	clockSlack = 2 * time.Second
	// lookTimeout bounds a look at a stream: a refused one is never answered.
	lookTimeout = 3 * time.Second
	// stateTimeout bounds a question for a document's state.
	stateTimeout = 10 * time.Second
)

// Ended tells from the state of the document how a submit or delete has ended whose events were missed, as
// the event would have; over is false while it cannot be told for sure. Where no event named its version, the
// document's state counts when its newest version was submitted after ours was sent, or when ours has left
// the stream of documents and is not among the dead letters of what was refused. The error is about why it could not
// be told: ErrPermission when this user may not look at that stream or list, which leaves some open for ever.
func (k *KB) Ended(ctx context.Context, s Submitted) (e messages.Event, over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	info, err := k.Document(ctx, messages.DocumentRef{DocID: s.DocID, Subspace: s.Subspace})
	coded, _ := messages.AsError(err)
	switch {
	case coded != nil && (coded.Code == messages.CodeDocumentNotFound || coded.Code == messages.CodeKBNotFound):
		return k.gone(ctx, s, coded.Code)
	case err != nil:
		return messages.Event{}, false, err
	}
	return k.standing(ctx, s, info)
}

// gone is the end of a submit whose document is not there.
func (k *KB) gone(ctx context.Context, s Submitted, code messages.Code) (messages.Event, bool, error) {
	e := k.eventOf(s)
	if s.Version > 0 {
		e.Status, e.Version = messages.StatusDeleted, s.Version
		return e, true, nil
	}
	taken, err := k.c.taken(ctx, s.Sequence)
	switch {
	case !taken:
		return messages.Event{}, false, err
	case s.Delete && code == messages.CodeDocumentNotFound:
		e.Status = messages.StatusDeleted
	default:
		e.Status = messages.StatusFailed
		e.Error = messages.Errorf(code, "the submit was refused and its event is lost; `weir dlq list` says why")
	}
	return e, true, nil
}

// standing is the end of a submit whose document is there.
func (k *KB) standing(ctx context.Context, s Submitted, info messages.DocumentInfo) (messages.Event, bool, error) {
	switch {
	case !info.Status.Terminal() || s.Version > info.Version:
		return messages.Event{}, false, nil // not yet, or the answer is of an older state than the event
	case s.Version > 0 && s.Version < info.Version:
		e := k.eventOf(s)
		e.Status, e.Version = messages.StatusSuperseded, info.Version
		return e, true, nil
	case s.Version == 0 && !info.SubmittedAt.After(s.At.Add(-clockSlack)):
		if taken, err := k.c.taken(ctx, s.Sequence); !taken {
			return messages.Event{}, false, err
		}
		refusal, err := k.refusal(ctx, s)
		if err != nil {
			return messages.Event{}, false, err
		}
		if refusal != nil {
			e := k.eventOf(s)
			e.Status, e.Error = messages.StatusFailed, refusal
			return e, true, nil
		}
	}
	e := k.eventOf(s)
	e.Status, e.Version, e.Chunks, e.Reused = info.Status, info.Version, info.Chunks, info.Reused
	e.Tokens, e.Reactivated, e.Warnings, e.Error, e.At = info.Tokens, info.Reactivated, info.Warnings, info.Error, info.UpdatedAt
	e.Lines = info.Lines
	if s.Delete && info.Status != messages.StatusDeleted {
		e.Status = messages.StatusSuperseded
	}
	return e, true, nil
}

// refusal is why intake refused a submit, nil when it did not.
func (k *KB) refusal(ctx context.Context, s Submitted) (*messages.Error, error) {
	for letter, err := range k.c.DeadLetters(ctx, messages.ListDeadLetters{KnowledgeBaseName: k.name, Stage: messages.StageIntake}) {
		switch {
		case err != nil:
			return nil, err
		case letter.At.Before(s.At.Add(-clockSlack)): // the newest come first
			return nil, nil
		case letter.DocID != s.DocID:
			continue
		}
		whole, err := k.c.DeadLetter(ctx, letter.ID)
		if err != nil {
			return nil, err
		}
		if whole.Headers[messages.HeaderDeadMsgID] == s.ID {
			return &letter.Error, nil
		}
	}
	return nil, nil
}

func (k *KB) eventOf(s Submitted) messages.Event {
	return messages.Event{Tenant: k.c.tenant, KB: k.name, DocID: s.DocID, Subspace: s.Subspace, SubmitID: s.ID}
}

// taken reports that a message is no longer in the stream of documents, which drops what is acknowledged.
func (c *Client) taken(ctx context.Context, seq uint64) (bool, error) {
	denied := fmt.Errorf("look at stream %s: %w", messages.StreamDocs, ErrPermission)
	if c.blind.Load() {
		return false, denied
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, messages.StreamDocs)
	if err == nil {
		_, err = stream.GetMsg(ctx, seq)
	}
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(c.nc.LastError(), nats.ErrPermissionViolation):
		c.blind.Store(true)
		return false, denied
	}
	return false, fmt.Errorf("look at stream %s: %w", messages.StreamDocs, err)
}
