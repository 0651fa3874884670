package admin

import (
	"context"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// UpdateChunk hides a chunk of a live version from every search, or shows it again.
func (a *Admin) UpdateChunk(ctx context.Context, r bus.Request) (any, error) {
	var in messages.UpdateChunk
	if err := decodeScoped(r, &in, &in.KnowledgeBaseName); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	kb, err := a.store.LoadKB(ctx, r.Tenant, r.Scope)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Subspace == "":
		in.Subspace = messages.DefaultSubspace
	case !kb.Subspaces && in.Subspace != messages.DefaultSubspace:
		return nil, messages.Invalid("subspace", "the knowledge base has no subspaces")
	}
	shown, err := mandatory(kb)
	if err != nil {
		return nil, err
	}
	out := messages.ChunkState{DocID: in.DocID, Subspace: in.Subspace, ChunkID: in.ChunkID, Status: in.Status}
	return out, a.store.SetChunkStatus(ctx, kb.ID, in.Subspace, in.DocID, in.ChunkID, in.Status, shown)
}

// mandatory is the filter that requests about documents are under; nil: none.
func mandatory(kb pgstore.KB) (pgstore.MetadataCondition, error) {
	b, given, err := filter.OfKnowledgeBase(kb.MandatoryFilter, kb.Schema, kb.Tenant)
	if err != nil || !given {
		return nil, err
	}
	return b.Predicate, nil
}
