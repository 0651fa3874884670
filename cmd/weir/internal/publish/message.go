package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/weir-project/weir/pkg/client"
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
		return nil, fmt.Errorf("read document: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size > MaxDocumentBytes {
		return nil, tooLarge(size)
	}
	d.Content = file
	return p.kb.Prepare(ctx, d, msgID)
}
