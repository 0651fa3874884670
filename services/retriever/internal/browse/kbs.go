package browse

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// GetKB returns a knowledge base with its counts.
func (b *Browser) GetKB(ctx context.Context, tenant, name string) (*messages.KBInfo, error) {
	kb, err := b.Store.LoadKB(ctx, tenant, name)
	if err != nil {
		return nil, outage(ctx, err)
	}
	counts, err := b.Store.CountDocuments(ctx, kb)
	if err != nil {
		return nil, outage(ctx, err)
	}
	info := kb.Info()
	info.Documents = &counts
	info.Limits, err = b.limits(kb)
	return &info, err
}

// limits are those of requests about a knowledge base.
func (b *Browser) limits(kb pgstore.KB) (*messages.RetrieveLimits, error) {
	var stored *messages.RetrievalConfiguration
	if len(kb.Retrieval) > 0 {
		if err := json.Unmarshal(kb.Retrieval, &stored); err != nil {
			return nil, fmt.Errorf("read the retrieval configuration of %s: %w", kb.Name, err)
		}
	}
	out := stored.Tightened(b.Limits)
	return &out, nil
}

// ListKBs returns a page of a tenant's knowledge bases.
func (b *Browser) ListKBs(ctx context.Context, tenant string, page messages.Page) (*messages.KBList, error) {
	limit, err := pageSize(page)
	if err != nil {
		return nil, err
	}
	place, err := decodeToken(page.NextToken, 1)
	if err != nil {
		return nil, err
	}
	kbs, err := b.Store.ListKBs(ctx, tenant, place[0], limit)
	if err != nil {
		return nil, outage(ctx, err)
	}
	out := &messages.KBList{KnowledgeBases: infos(kbs)}
	n, more, err := fitting(out.KnowledgeBases, limit, b.ReplyBytes)
	if err != nil {
		return nil, err
	}
	out.KnowledgeBases = out.KnowledgeBases[:n]
	if more {
		out.NextToken = encodeToken(kbs[n-1].Name)
	}
	return out, nil
}

func infos(kbs []pgstore.KB) []messages.KBInfo {
	out := make([]messages.KBInfo, len(kbs))
	for i := range kbs {
		out[i] = kbs[i].Info()
	}
	return out
}
