package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// Document is what to publish: a submit that holds its content, or one without whose content is read from
// Content. Contents over the server's maximum payload travel through its object store.
type Document struct {
	Submit  messages.Submit
	Content io.Reader // nil: Submit has the content. It is read once, in a moderate amount of memory
}

// PublishOption changes one publish.
type PublishOption func(*Outgoing)

// WithMsgID gives the message an id instead of a random one, which events repeat as submit id. It does not keep a message
// from being stored twice: the stream drops a second one of the same id only within 100 ms. The same content again
// changes nothing.
func WithMsgID(id string) PublishOption { return func(o *Outgoing) { o.msg.ID = id } }

// Submitted is a submit or delete that is stored and on its way.
type Submitted struct {
	ID       string // of the message; the submit id of its events
	DocID    string
	Subspace string
	Delete   bool
	// Duplicate says that the stream held a message of this id already, and this one was dropped.
	Duplicate bool
	Sequence  uint64    // in the stream of documents
	At        time.Time // when it was sent
	// Version is the version that answers it, where an event told; 0: not known.
	Version int64
}

// Outgoing is a message that is ready to be sent, once or several times.
type Outgoing struct {
	kb     *KB
	msg    bus.Message
	about  Submitted
	object string // in the object store, "" when the message holds the content
}

// ID returns the id of the message.
func (o *Outgoing) ID() string { return o.msg.ID }

// Publish stores a document in the stream and returns; what becomes of it is told by events. ErrBackpressure
// says that the stream is full. Prepare and Send do the same in two steps, for callers who want to wait then.
func (k *KB) Publish(ctx context.Context, d Document, opts ...PublishOption) (Submitted, error) {
	o, err := k.Prepare(ctx, d, opts...)
	if err != nil {
		return Submitted{}, err
	}
	s, err := k.Send(ctx, o)
	if errors.Is(err, ErrBackpressure) {
		return s, errors.Join(err, o.Discard(ctx))
	}
	return s, err
}

// PublishDelete stores a delete in the stream and returns.
func (k *KB) PublishDelete(ctx context.Context, d messages.Delete, opts ...PublishOption) (Submitted, error) {
	o, err := k.PrepareDelete(d, opts...)
	if err != nil {
		return Submitted{}, err
	}
	return k.Send(ctx, o)
}

// Prepare makes the message of a document, uploading its content when it is too large for one: it is then
// Sent, or Discarded. A document that no service would take is a *messages.Error.
func (k *KB) Prepare(ctx context.Context, d Document, opts ...PublishOption) (*Outgoing, error) {
	s := d.Submit
	if s.DocID == "" {
		s.DocID, s.ID = s.ID, ""
	}
	if s.DocID == "" && s.OSSKey != "" {
		s.DocID = messages.IDFromOSSKey(s.Subspace, s.OSSKey)
	}
	o, err := k.outgoing(messages.SubmitSubject(k.c.tenant, k.name), s.DocID, s.Subspace, opts)
	if err != nil {
		return nil, err
	}
	checked := s
	if d.Content != nil {
		if s.Text != nil || s.Data != nil || s.Upload != nil {
			return nil, messages.Invalid("text", "the content is given twice")
		}
		checked.Data = []byte{}
	}
	if err := checked.Validate(); err != nil {
		return nil, err
	}
	if d.Content != nil {
		err = o.readFrom(ctx, s, d.Content)
	} else {
		err = o.take(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// PrepareDelete makes the message of a delete.
func (k *KB) PrepareDelete(d messages.Delete, opts ...PublishOption) (*Outgoing, error) {
	o, err := k.outgoing(messages.DeleteSubject(k.c.tenant, k.name), d.DocID, d.Subspace, opts)
	if err != nil {
		return nil, err
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	o.about.Delete = true
	o.msg.Body, err = messages.Encode(d)
	return o, err
}

func (k *KB) outgoing(subject, docID, subspace string, opts []PublishOption) (*Outgoing, error) {
	if err := messages.ValidateName("knowledgeBaseName", k.name); err != nil {
		return nil, err
	}
	o := &Outgoing{kb: k, msg: bus.Message{Subject: subject, ID: nuid.Next()}}
	for _, opt := range opts {
		opt(o)
	}
	o.about = Submitted{ID: o.msg.ID, DocID: docID, Subspace: subspace}
	return o, nil
}

// Send stores a message. It may be called again with the same one, after ErrBackpressure or a lost
// connection: a second copy in the stream changes nothing, unless another version came in between. After an error that sending again cannot help, the upload is gone.
func (k *KB) Send(ctx context.Context, o *Outgoing) (Submitted, error) {
	s := o.about
	s.At = time.Now()
	acks, err := k.c.pub.PublishAck(ctx, o.msg)
	if err != nil {
		if refusedForGood(err) {
			err = errors.Join(err, o.Discard(ctx))
		}
		return s, err
	}
	s.Sequence, s.Duplicate = acks[0].Sequence, acks[0].Duplicate
	return s, nil
}

// refusedForGood tells that the message was not stored and never will be. After a mere timeout it may be
// stored all the same, and then its upload is needed.
func refusedForGood(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, ErrPermission) || errors.As(err, &api) && api.Code < 500 && !errors.Is(err, ErrBackpressure)
}

// Discard removes what was uploaded for a message that will not be sent. What stays behind when it fails
// goes by itself after messages.UploadTTL.
func (o *Outgoing) Discard(ctx context.Context) error {
	if o.object == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	bucket := messages.UploadBucket(o.kb.c.tenant)
	store, err := o.kb.c.js.ObjectStore(ctx, bucket)
	if err == nil {
		err = store.Delete(ctx, o.object)
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("discard upload %s of %s: %w", o.object, bucket, err)
	}
	o.object = ""
	return nil
}

// take makes the message of a submit that holds its content.
func (o *Outgoing) take(ctx context.Context, s messages.Submit) error {
	var err error
	if o.msg.Body, err = messages.Encode(s); err != nil {
		return fmt.Errorf("encode submit: %w", err)
	}
	if o.fits(len(o.msg.Body)) || s.Upload != nil {
		return nil
	}
	content := s.Data
	if s.Text != nil {
		content = []byte(*s.Text)
		if s.ContentType == "" {
			s.ContentType = textMedia
		}
	}
	return o.upload(ctx, s, bytes.NewReader(content))
}

// textMedia is the type of the text of a submit that names none and goes to the object store.
const textMedia = "text/plain; charset=utf-8"

// readFrom puts what r holds into the message, or beside it.
func (o *Outgoing) readFrom(ctx context.Context, s messages.Submit, r io.Reader) error {
	headers, size := rawHeaders(s)
	room := o.kb.c.nc.MaxPayload() - headerRoom - int64(size)
	head, err := io.ReadAll(io.LimitReader(r, max(room, 0)+1))
	if err != nil {
		return fmt.Errorf("read document %q: %w", s.DocID, err)
	}
	if int64(len(head)) > room {
		return o.upload(ctx, s, io.MultiReader(bytes.NewReader(head), r))
	}
	if limit := o.kb.c.opts.MaxDocumentBytes; int64(len(head)) > limit {
		return tooLarge(limit)
	}
	o.msg.Header, o.msg.Body = headers, head
	return nil
}

// headerRoom is what the headers of a message take at most beside those that describe a document.
const headerRoom = 1 << 10

func (o *Outgoing) fits(bodyBytes int) bool {
	return int64(bodyBytes)+headerRoom <= o.kb.c.nc.MaxPayload()
}

// rawHeaders describe a submit whose content is the body, and how many bytes they take.
func rawHeaders(s messages.Submit) (h bus.Header, size int) {
	h = bus.Header{messages.HeaderDocID: url.PathEscape(s.DocID)}
	for key, value := range map[string]string{
		messages.HeaderSubspace: s.Subspace, messages.HeaderTitle: s.Title, messages.HeaderOSSKey: s.OSSKey,
		messages.HeaderMetadata: string(s.Metadata),
	} {
		if value != "" {
			h[key] = url.PathEscape(value)
		}
	}
	if s.ContentType != "" {
		h[messages.HeaderContentType] = s.ContentType
	}
	for key, value := range h {
		size += len(key) + len(value) + 4
	}
	return h, size
}

// upload stores the content as an object and makes the message refer to it.
func (o *Outgoing) upload(ctx context.Context, s messages.Submit, r io.Reader) error {
	bucket, limit := messages.UploadBucket(o.kb.c.tenant), o.kb.c.opts.MaxDocumentBytes
	store, err := o.kb.c.js.ObjectStore(ctx, bucket)
	if err != nil {
		return fmt.Errorf("open upload bucket %s: %w", bucket, err)
	}
	name := nuid.Next()
	info, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("upload document %q: %w", s.DocID, err)
	}
	o.object = name
	if int64(info.Size) > limit {
		return errors.Join(tooLarge(limit), o.Discard(ctx))
	}
	s.Text, s.Data, s.Upload = nil, nil, &messages.Upload{Object: name, Size: int64(info.Size)}
	o.msg.Header = nil
	if o.msg.Body, err = messages.Encode(s); err != nil {
		return errors.Join(fmt.Errorf("encode submit: %w", err), o.Discard(ctx))
	}
	return nil
}

// tooLarge is the error of a content over a limit.
func tooLarge(limitBytes int64) *messages.Error {
	return &messages.Error{
		Code: messages.CodeDocumentTooLarge, Field: "data", Message: fmt.Sprintf("has more than the limit of %d bytes", limitBytes),
	}
}
