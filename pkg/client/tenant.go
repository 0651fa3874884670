package client

import (
	"context"
	"iter"

	"github.com/weir-project/weir/pkg/messages"
)

// CreateKB creates a knowledge base. ALREADY_EXISTS says that there is one of this name.
func (c *Client) CreateKB(ctx context.Context, in messages.CreateKB, opts ...CallOption) (messages.KBInfo, error) {
	return ask[messages.KBInfo](ctx, c, messages.TenantScope, messages.OpKBCreate, in, opts)
}

// ListKBs returns a page of the tenant's knowledge bases, in order of name.
func (c *Client) ListKBs(ctx context.Context, in messages.Page, opts ...CallOption) (messages.KBList, error) {
	return ask[messages.KBList](ctx, c, messages.TenantScope, messages.OpKBList, in, opts)
}

// KBs goes through the tenant's knowledge bases. An error ends it.
func (c *Client) KBs(ctx context.Context) iter.Seq2[messages.KBInfo, error] {
	return pages(func(token string) ([]messages.KBInfo, string, error) {
		list, err := c.ListKBs(ctx, messages.Page{NextToken: token})
		return list.KnowledgeBases, list.NextToken, err
	})
}

// RetrieveMulti returns the chunks most relevant to a query from several knowledge bases, which in names, as
// one list. It needs a permission of its own.
func (c *Client) RetrieveMulti(ctx context.Context, in messages.RetrieveRequest, opts ...CallOption) (messages.RetrieveReply, error) {
	return ask[messages.RetrieveReply](ctx, c, messages.AllScope, messages.OpRetrieve, in, opts)
}

// ListDeadLetters returns a page of messages that could not be processed, newest first.
func (c *Client) ListDeadLetters(ctx context.Context, in messages.ListDeadLetters, opts ...CallOption) (messages.DeadLetterList, error) {
	return ask[messages.DeadLetterList](ctx, c, messages.TenantScope, messages.OpDLQList, in, opts)
}

// DeadLetters goes through the dead letters that in asks for, from its page on. An error ends it.
func (c *Client) DeadLetters(ctx context.Context, in messages.ListDeadLetters) iter.Seq2[messages.DeadLetter, error] {
	first := in.NextToken
	return pages(func(token string) ([]messages.DeadLetter, string, error) {
		in.NextToken = from(first, token)
		list, err := c.ListDeadLetters(ctx, in)
		return list.DeadLetters, list.NextToken, err
	})
}

// DeadLetter returns one with its headers and body.
func (c *Client) DeadLetter(ctx context.Context, id int64, opts ...CallOption) (messages.DeadLetterDetail, error) {
	return ask[messages.DeadLetterDetail](ctx, c, messages.TenantScope, messages.OpDLQGet, messages.DeadLetterRef{ID: id}, opts)
}

// ReplayDeadLetter lets it be processed again.
func (c *Client) ReplayDeadLetter(ctx context.Context, id int64, opts ...CallOption) error {
	return c.Call(ctx, messages.TenantScope, messages.OpDLQReplay, messages.DeadLetterRef{ID: id}, nil, opts...)
}

// DiscardDeadLetter gives it up.
func (c *Client) DiscardDeadLetter(ctx context.Context, id int64, opts ...CallOption) error {
	return c.Call(ctx, messages.TenantScope, messages.OpDLQDiscard, messages.DeadLetterRef{ID: id}, nil, opts...)
}
