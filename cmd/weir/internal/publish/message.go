package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
)

// prepare makes the message of an item.
func (p *Publisher) prepare(ctx context.Context, item Item, id string) (o *client.Outgoing, err error) {
	d, msgID := client.Document{Submit: item.Submit}, client.WithMsgID(id)
	if item.whole() {
		return p.kb.Prepare(ctx, d, msgID)
	}
	if item.Data != nil {
		d.Content = bytes.NewReader(item.Data)
		return p.kb.Prepare(ctx, d, msgID)
	}
	file, size, err := item.open()
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size > MaxDocumentBytes {
		return nil, tooLarge(size)
	}
	d.Content = content{file}
	return p.kb.Prepare(ctx, d, msgID)
}

// content reads a file; its errors tell that the document is to blame and not the bus.
type content struct{ file io.Reader }

func (c content) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unreadable(err)
	}
	return n, err
}

func unreadable(err error) error {
	return fmt.Errorf("%w: %w", messages.Invalid("data", "cannot be read: "+err.Error()), err)
}
