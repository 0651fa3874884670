package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// headerRoom is what the headers of a message take at most beside the ones that say what they hold.
const headerRoom = 1 << 10

// textMedia is the type of the text of a submit that names none and goes to the object store.
const textMedia = "text/plain; charset=utf-8"

// message makes the message of an item, and puts its content into the object store when it is too large
// for one; undo takes it out again and is never nil.
func (p *Publisher) message(ctx context.Context, item Item, id string) (m bus.Message, undo func(), err error) {
	undo = func() {}
	m = bus.Message{Subject: messages.SubmitSubject(p.cfg.Tenant, p.cfg.KB), ID: id}
	if item.whole() {
		m.Body, err = messages.Encode(item.Submit)
		if err != nil || p.fits(len(m.Body)) {
			return m, undo, err
		}
		content := item.Submit.Data
		if item.Submit.Text != nil {
			content = []byte(*item.Submit.Text)
			if item.Submit.ContentType == "" {
				item.Submit.ContentType = textMedia
			}
		}
		return p.uploaded(ctx, m, item, bytes.NewReader(content), int64(len(content)))
	}
	if item.Data != nil {
		return p.content(ctx, m, item, bytes.NewReader(item.Data), int64(len(item.Data)))
	}
	file, size, err := item.open()
	if err != nil {
		return m, undo, fmt.Errorf("read document: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return p.content(ctx, m, item, file, size)
}

// content puts size bytes of r into the message, or beside it.
func (p *Publisher) content(ctx context.Context, m bus.Message, item Item, r io.Reader, size int64) (bus.Message, func(), error) {
	if size > MaxDocumentBytes {
		return m, func() {}, tooLarge(size)
	}
	m.Header = headers(item.Submit)
	total := size
	for k, v := range m.Header {
		total += int64(len(k) + len(v) + 4)
	}
	if !p.fits(int(total)) {
		return p.uploaded(ctx, m, item, r, size)
	}
	var err error
	if m.Body, err = io.ReadAll(io.LimitReader(r, size)); err != nil {
		return m, func() {}, fmt.Errorf("read document: %w", err)
	}
	return m, func() {}, nil
}

func headers(s messages.Submit) bus.Header {
	h := bus.Header{messages.HeaderDocID: url.PathEscape(s.DocID)}
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
	return h
}

func (p *Publisher) fits(bodyBytes int) bool {
	return int64(bodyBytes)+headerRoom <= p.nc.MaxPayload()
}

// uploaded stores the content as an object and makes the message refer to it.
func (p *Publisher) uploaded(ctx context.Context, m bus.Message, item Item, r io.Reader, size int64) (bus.Message, func(), error) {
	none := func() {}
	if size > MaxDocumentBytes {
		return m, none, tooLarge(size)
	}
	store, err := p.js.ObjectStore(ctx, messages.UploadBucket(p.cfg.Tenant))
	if err != nil {
		return m, none, fmt.Errorf("open upload bucket %s: %w", messages.UploadBucket(p.cfg.Tenant), err)
	}
	name := nuid.Next()
	if _, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, io.LimitReader(r, MaxDocumentBytes+1)); err != nil {
		return m, none, fmt.Errorf("upload %s: %w", item.Name, err)
	}
	undo := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		_ = store.Delete(ctx, name) // what stays goes with the bucket's age limit
	}
	s := item.Submit
	s.Text, s.Data, s.Upload = nil, nil, &messages.Upload{Object: name, Size: size}
	m.Header = nil
	if m.Body, err = messages.Encode(s); err != nil {
		undo()
		return m, none, err
	}
	return m, undo, nil
}
