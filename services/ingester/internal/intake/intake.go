// Package intake decides what becomes of a submit or delete: it checks it against the knowledge base,
// stores the content, registers the version, and says what is to be published. The stream and the
// request-reply door share it.
package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what intake needs of the database.
type Store interface {
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
	PutBlob(ctx context.Context, kbID int64, b pgstore.Blob, r io.Reader) error
	AcceptSubmit(ctx context.Context, sub pgstore.Submission) (pgstore.Acceptance, error)
	AcceptLines(ctx context.Context, parent messages.Ref, subs []pgstore.Submission) ([]pgstore.Acceptance, error)
	DeleteDocument(ctx context.Context, d pgstore.Deletion) (pgstore.Acceptance, error)
	Answered(ctx context.Context, sub pgstore.Submission) (pgstore.Acceptance, bool, error)
	AnsweredAs(ctx context.Context, sub pgstore.Submission) (source string, a pgstore.Acceptance, ok bool, err error)
	AnsweredBefore(ctx context.Context, tenant, name, source, subspace, docID string) (pgstore.KB, pgstore.Acceptance, bool, error)
}

// From says where a submit or delete comes from. Tenant and KB are the subject's.
type From struct {
	Tenant, KB string
	Source     string // recognises it, within its knowledge base, when it is delivered again
	SubmitID   string // what its events say
	Order      pgstore.Order
	Header     func(name string) string
	Body       []byte
	Request    bool // by request and reply, so that nothing of it was stored before
}

// Verdict is what became of it, and what is to be published before it is acknowledged.
type Verdict struct {
	Reply    messages.SubmitReply
	Messages []bus.Message
}

// Intake takes documents in. Safe for concurrent use.
type Intake struct {
	store    Store
	uploads  Uploads
	kbs      *kbs
	log      *slog.Logger
	maxBytes int64
	now      func() time.Time
	unlocker Unlocker
}

// New returns an intake that accepts documents of up to maxBytes.
func New(store Store, uploads Uploads, log *slog.Logger, maxBytes int64) *Intake {
	return &Intake{
		store: store, uploads: uploads, log: log, maxBytes: maxBytes, now: time.Now,
		kbs: &kbs{store: store, now: time.Now, known: map[kbName]knownKB{}},
	}
}

// retries bounds how often a decision is taken again after a change under it.
const retries = 3

// Submit takes a document in. Errors that belong to the submit are *messages.Error. Run again with the
// same Source it gives the same verdict.
func (in *Intake) Submit(ctx context.Context, from From) (Verdict, error) {
	s, err := messages.DecodeSubmit(from.Header, from.Body)
	if err != nil {
		return Verdict{}, err
	}
	if err := checkScope(from, s.Tenant, s.KnowledgeBaseName); err != nil {
		return Verdict{}, err
	}
	if err := in.unlock(ctx, from, s); err != nil {
		return Verdict{}, err
	}
	v, err := in.again(from, func() (Verdict, error) { return in.submit(ctx, from, s) })
	return in.refused(ctx, from, s.Subspace, s.DocID, v, err)
}

// refused looks whether what is refused now was accepted when it was delivered before, as by a knowledge base that is deleted since.
// Then it tells what it told: a dead letter would give the submit a second end. A request is told of the refusal.
func (in *Intake) refused(ctx context.Context, from From, subspace, docID string, v Verdict, err error) (Verdict, error) {
	if typed(err) == nil || from.Request {
		return v, err
	}
	if subspace == "" {
		subspace = messages.DefaultSubspace
	}
	kb, a, ok, lookup := in.store.AnsweredBefore(ctx, from.Tenant, from.KB, from.Source, subspace, docID)
	if lookup != nil {
		return v, lookup
	}
	if !ok {
		return v, err
	}
	return in.tell(kb, pgstore.Submission{Subspace: subspace, DocID: docID, Source: sourceIn(kb, from.Source), SubmitID: from.SubmitID}, a)
}

// again takes a decision anew when the knowledge base changed or the content was collected under it.
func (in *Intake) again(from From, decide func() (Verdict, error)) (Verdict, error) {
	for try := 1; ; try++ {
		v, err := decide()
		if try == retries || !errors.Is(err, pgstore.ErrKBChanged) && !errors.Is(err, pgstore.ErrBlobGone) {
			return v, err
		}
		in.kbs.forget(from.Tenant, from.KB)
	}
}

func (in *Intake) submit(ctx context.Context, from From, s *messages.Submit) (Verdict, error) {
	kb, err := in.kbs.load(ctx, from.Tenant, from.KB)
	if err != nil {
		return Verdict{}, err
	}
	from.Source = sourceIn(kb, from.Source)
	sub, err := in.prepare(kb, from, s)
	if err != nil {
		return Verdict{}, in.current(ctx, kb, err)
	}
	a, err := in.accept(ctx, kb, sub, s.Upload)
	if errors.Is(err, ErrNoUpload) && !from.Request {
		return in.copied(ctx, kb, sub, err)
	}
	if err != nil {
		return Verdict{}, err
	}
	if s.Upload != nil {
		in.removeUpload(ctx, kb.Tenant, s.Upload.Object)
	}
	return in.verdict(kb, sub, a)
}

// accept registers the submit. An upload is stored first, unless the submit was answered before: then
// the object may be gone.
func (in *Intake) accept(ctx context.Context, kb pgstore.KB, sub pgstore.Submission, up *messages.Upload) (pgstore.Acceptance, error) {
	if up == nil {
		return in.store.AcceptSubmit(ctx, sub)
	}
	a, ok, err := in.store.Answered(ctx, sub)
	if err != nil || ok {
		return a, err
	}
	if sub.Blob, err = in.storeUpload(ctx, kb, up); err != nil {
		return a, err
	}
	return in.store.AcceptSubmit(ctx, sub)
}

// copied is the verdict on a submit whose upload is gone. It may be stored in the stream more than once, as by a publisher that
// missed the acknowledgement: then the first has taken the object, and its verdict is told again.
func (in *Intake) copied(ctx context.Context, kb pgstore.KB, sub pgstore.Submission, missing error) (Verdict, error) {
	source, a, ok, err := in.store.AnsweredAs(ctx, sub)
	if err != nil {
		return Verdict{}, err
	}
	if !ok {
		return Verdict{}, missing
	}
	sub.Source = source
	return in.verdict(kb, sub, a)
}

// removeUpload drops an object whose content is stored. One that stays behind goes with the bucket's
// age limit.
func (in *Intake) removeUpload(ctx context.Context, tenant, object string) {
	if err := in.uploads.Remove(ctx, tenant, object); err != nil {
		in.log.Warn("remove upload", "tenant", tenant, "err", err)
	}
}

// sourceIn keeps the sources of a knowledge base apart from those of an earlier one of its name.
func sourceIn(kb pgstore.KB, source string) string { return fmt.Sprintf("%d/%s", kb.ID, source) }

// current is a refusal by a knowledge base as remembered: ErrKBChanged when it is not that any more, since
// a field may have been added, or another one created under its name.
func (in *Intake) current(ctx context.Context, kb pgstore.KB, refusal error) error {
	now, err := in.store.LoadKB(ctx, kb.Tenant, kb.Name)
	if err == nil && now.ID == kb.ID && now.Revision == kb.Revision {
		return refusal
	}
	if _, gone := messages.AsError(err); err != nil && !gone {
		return err
	}
	return pgstore.ErrKBChanged
}

// prepare checks the submit against the knowledge base.
func (in *Intake) prepare(kb pgstore.KB, from From, s *messages.Submit) (pgstore.Submission, error) {
	var sub pgstore.Submission
	subspace, err := resolveSubspace(kb, s.Subspace)
	if err != nil {
		return sub, err
	}
	metadata, err := kb.Schema.ValidateMetadata(s.Metadata)
	if err != nil {
		return sub, err
	}
	sub = pgstore.Submission{
		KB: kb, Subspace: subspace, DocID: s.DocID, Source: from.Source, SubmitID: from.SubmitID, Order: from.Order,
		Title: s.Title, OSSKey: s.OSSKey, ContentType: s.ContentType, Metadata: metadata,
	}
	if sub.OSSKey == "" {
		sub.OSSKey = s.DocID
	}
	if sub.ContentType == "" && s.Text != nil {
		sub.ContentType = "text/plain"
	}
	if s.Upload != nil {
		if s.Upload.Size > in.maxBytes {
			return sub, in.tooLarge(s.Upload.Size)
		}
		sub.Split = isLines(sub.ContentType, sub.OSSKey, s.DocID)
		return sub, nil
	}
	content := contentOf(s)
	if int64(len(content)) > in.maxBytes {
		return sub, in.tooLarge(int64(len(content)))
	}
	sub.Content = content
	sub.Blob = pgstore.Blob{SHA256: sha256.Sum256(content), SizeBytes: int64(len(content))}
	return sub, nil
}

// resolveSubspace applies the rules of isolation: a subspace must be named where there are some, and must
// not be where there are none, but for the default's name.
func resolveSubspace(kb pgstore.KB, subspace string) (string, error) {
	switch {
	case kb.Subspaces && subspace == "":
		return "", messages.Invalid("subspace", "is required by this knowledge base")
	case !kb.Subspaces && subspace != "" && subspace != messages.DefaultSubspace:
		return "", messages.Invalid("subspace", "this knowledge base has no subspaces")
	case subspace == "":
		return messages.DefaultSubspace, nil
	}
	return subspace, nil
}

// checkScope checks the names in the subject, which may be any bytes, and those in the body against them.
func checkScope(from From, tenant, kb string) error {
	if err := messages.ValidateName("tenant", from.Tenant); err != nil {
		return err
	}
	if err := messages.ValidateName("knowledgeBaseName", from.KB); err != nil {
		return err
	}
	if tenant != "" && tenant != from.Tenant {
		return messages.Invalid("tenant", fmt.Sprintf("is %q, but the subject says %q", tenant, from.Tenant))
	}
	if kb != "" && kb != from.KB {
		return messages.Invalid("knowledgeBaseName", fmt.Sprintf("is %q, but the subject says %q", kb, from.KB))
	}
	return nil
}

// Delete removes a document. One that does not exist is DOCUMENT_NOT_FOUND.
func (in *Intake) Delete(ctx context.Context, from From) (Verdict, error) {
	d, err := messages.DecodeDelete(from.Header, from.Body)
	if err != nil {
		return Verdict{}, err
	}
	if err := checkScope(from, d.Tenant, d.KnowledgeBaseName); err != nil {
		return Verdict{}, err
	}
	v, err := in.again(from, func() (Verdict, error) { return in.delete(ctx, from, d) })
	return in.refused(ctx, from, d.Subspace, d.DocID, v, err)
}

func (in *Intake) delete(ctx context.Context, from From, d *messages.Delete) (Verdict, error) {
	kb, err := in.kbs.load(ctx, from.Tenant, from.KB)
	if err != nil {
		return Verdict{}, err
	}
	from.Source = sourceIn(kb, from.Source)
	subspace, err := resolveSubspace(kb, d.Subspace)
	if err != nil {
		return Verdict{}, in.current(ctx, kb, err)
	}
	a, err := in.store.DeleteDocument(ctx, pgstore.Deletion{
		KB: kb, Subspace: subspace, DocID: d.DocID, Source: from.Source, SubmitID: from.SubmitID, Order: from.Order,
	})
	if err != nil {
		return Verdict{}, err
	}
	sub := pgstore.Submission{Subspace: subspace, DocID: d.DocID, Source: from.Source, SubmitID: from.SubmitID}
	return in.verdict(kb, sub, a)
}

// verdict says what is to be published: what tell says, and the work that follows.
func (in *Intake) verdict(kb pgstore.KB, sub pgstore.Submission, a pgstore.Acceptance) (Verdict, error) {
	v, err := in.tell(kb, sub, a)
	if err == nil && a.Outcome == pgstore.Accepted {
		var msg bus.Message
		msg, err = parseWork(kb, sub, a)
		v.Messages = append(v.Messages, msg)
	}
	return v, err
}

// tell is the submit's own event and those of the submits it overtook.
func (in *Intake) tell(kb pgstore.KB, sub pgstore.Submission, a pgstore.Acceptance) (Verdict, error) {
	v := Verdict{Reply: messages.SubmitReply{
		DocID: sub.DocID, Subspace: sub.Subspace, Version: a.Version, Status: a.Status, SubmitID: sub.SubmitID,
		Unchanged: a.Outcome == pgstore.Unchanged || a.Outcome == pgstore.MetadataOnly,
	}}
	e := messages.Event{
		Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Subspace: sub.Subspace, DocID: sub.DocID, Version: a.Version,
		Status: v.Reply.Status, SubmitID: sub.SubmitID, Unchanged: v.Reply.Unchanged && v.Reply.Status == messages.StatusReady, At: in.now().UTC(),
	}
	msg, err := bus.Event(e, sub.Source)
	if err != nil {
		return v, err
	}
	v.Messages = append(v.Messages, msg)
	for _, o := range a.Overtaken {
		e.Version, e.Status, e.SubmitID, e.Unchanged = o.Version, messages.StatusSuperseded, o.SubmitID, false
		if msg, err = bus.Event(e, o.Source); err != nil {
			return v, err
		}
		v.Messages = append(v.Messages, msg)
	}
	return v, nil
}

func parseWork(kb pgstore.KB, sub pgstore.Submission, a pgstore.Acceptance) (bus.Message, error) {
	ref := messages.Ref{
		Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Generation: kb.Generation.ID, Subspace: sub.Subspace, DocID: sub.DocID,
		DocKey: a.DocKey, Version: a.Version, Run: a.Run,
	}
	return bus.Work(messages.StageParse, messages.TypeParse, ref, 0, messages.ParseWork{Ref: ref, SubmitID: sub.SubmitID, Source: sub.Source})
}
