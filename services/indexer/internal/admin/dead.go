package admin

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// Sizes of a page of dead letters.
const (
	defaultDeadPage = 50
	maxDeadPage     = 500
)

// States of a dead letter.
const (
	stateOpen      = "open"
	stateReplayed  = "replayed"
	stateDiscarded = "discarded"
)

// ListDead lists dead letters, newest first.
func (a *Admin) ListDead(ctx context.Context, r bus.Request) (any, error) {
	var in messages.ListDeadLetters
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	limit, err := pageSize(in.MaxResults)
	if err != nil {
		return nil, err
	}
	var before int64
	if in.NextToken != "" {
		if before, err = strconv.ParseInt(in.NextToken, 10, 64); err != nil || before < 1 {
			return nil, messages.Invalid("nextToken", "is not a token of this listing")
		}
	}
	switch in.State {
	case "":
		in.State = stateOpen
	case stateOpen, stateReplayed, stateDiscarded:
	default:
		return nil, messages.Invalid("state", "must be open, replayed or discarded")
	}
	list, err := a.store.ListDeadLetters(ctx, r.Tenant, in.KnowledgeBaseName, in.Stage, in.State, before, limit+1)
	if err != nil {
		return nil, err
	}
	reply := messages.DeadLetterList{DeadLetters: list}
	if len(list) > limit {
		reply.DeadLetters = list[:limit]
		reply.NextToken = strconv.FormatInt(list[limit-1].ID, 10)
	}
	return reply, nil
}

func pageSize(asked int) (int, error) {
	if asked < 0 || asked > maxDeadPage {
		return 0, messages.Invalid("maxResults", fmt.Sprintf("must be 1 to %d", maxDeadPage))
	}
	if asked == 0 {
		return defaultDeadPage, nil
	}
	return asked, nil
}

// GetDead returns a dead letter whole.
func (a *Admin) GetDead(ctx context.Context, r bus.Request) (any, error) {
	var in messages.DeadLetterRef
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return a.store.GetDeadLetter(ctx, r.Tenant, in.ID)
}

// DiscardDead closes a dead letter without doing anything about it.
func (a *Admin) DiscardDead(ctx context.Context, r bus.Request) (any, error) {
	var in messages.DeadLetterRef
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return in, a.store.MarkDeadLetter(ctx, r.Tenant, in.ID, stateDiscarded)
}

// ReplayDead takes the work of a dead letter up again: a failed version from its stored content, a
// refused submit by publishing it anew.
func (a *Admin) ReplayDead(ctx context.Context, r bus.Request) (any, error) {
	var in messages.DeadLetterRef
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	d, err := a.store.GetDeadLetter(ctx, r.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if d.State == stateDiscarded {
		return nil, messages.Errorf(messages.CodeNotSupported, "dead letter %d is discarded", in.ID)
	}
	msg, err := a.replay(ctx, r.Tenant, d)
	if err != nil {
		return nil, err
	}
	if msg != nil {
		if _, err := a.publish.PublishAck(ctx, *msg); err != nil {
			return nil, err
		}
	}
	return in, a.store.MarkDeadLetter(ctx, r.Tenant, in.ID, stateReplayed)
}

// replay returns the message to publish. A version that was taken up again by an earlier call, whose
// publish may have failed, is Pending and is left to the reconciler.
func (a *Admin) replay(ctx context.Context, tenant string, d messages.DeadLetterDetail) (*bus.Message, error) {
	if d.Stage == messages.StageIntake {
		return resubmit(d)
	}
	if d.Version == 0 {
		return nil, messages.Errorf(messages.CodeNotSupported, "dead letter %d is for no document", d.ID)
	}
	ref, ok, err := a.store.ReopenVersion(ctx, tenant, d.KB, d.Subspace, d.DocID, d.Version)
	if err != nil {
		return nil, err
	}
	if !ok {
		if d.State == stateReplayed {
			return nil, nil
		}
		return nil, messages.Errorf(messages.CodeNotSupported, "version %d of %q is not the newest or did not fail", d.Version, d.DocID)
	}
	msg, err := bus.Work(messages.StageParse, messages.TypeParse, ref, 0, messages.ParseWork{Ref: ref})
	return &msg, err
}

func resubmit(d messages.DeadLetterDetail) (*bus.Message, error) {
	if size, cut := d.Headers[messages.HeaderDeadTruncated]; cut {
		return nil, messages.Errorf(messages.CodeNotSupported, "dead letter %d was cut from %s bytes: publish the document again", d.ID, size)
	}
	subject := messages.SubmitSubject
	if isDelete(d.Subject) {
		subject = messages.DeleteSubject
	}
	tenant, kb, err := messages.ParseScope(d.Subject)
	if err != nil {
		return nil, err
	}
	msg := &bus.Message{Subject: subject(tenant, kb), ID: fmt.Sprintf("replay/%d/%d", d.ID, d.At.UnixNano()), Header: bus.Header{}, Body: d.Body}
	for _, name := range []string{
		messages.HeaderDocID, messages.HeaderSubspace, messages.HeaderOSSKey, messages.HeaderTitle, messages.HeaderMetadata, messages.HeaderContentType,
	} {
		if v, ok := d.Headers[name]; ok {
			msg.Header[name] = v
		}
	}
	return msg, nil
}

func isDelete(subject string) bool {
	prefix := messages.SubjectDelete + "."
	return len(subject) > len(prefix) && subject[:len(prefix)] == prefix
}
