package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// maxKnown bounds the knowledge bases kept; beyond it all are forgotten, which costs a query each.
const maxKnown = 10_000

// resolved is a knowledge base with everything that is read out of it once.
type resolved struct {
	pgstore.KB
	defaults *messages.RetrievalConfiguration
	analyzer *lexical.Analyzer
	// mandatory is the filter that every request is under; nil: none.
	mandatory *filter.Bound
}

// Loader reads knowledge bases; *pgstore.Store is one.
type Loader interface {
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
}

// kbs remembers knowledge bases by name. Entries may be stale: every search proves that its one is
// current and has it forgotten otherwise.
type kbs struct {
	load  Loader
	mu    sync.Mutex
	known map[[2]string]*resolved
}

func newKBs(load Loader) *kbs { return &kbs{load: load, known: map[[2]string]*resolved{}} }

func (k *kbs) get(ctx context.Context, tenant, name string) (*resolved, error) {
	key := [2]string{tenant, name}
	k.mu.Lock()
	kb := k.known[key]
	k.mu.Unlock()
	if kb != nil {
		return kb, nil
	}
	loaded, err := k.load.LoadKB(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	if kb, err = resolve(loaded); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnown {
		clear(k.known)
	}
	k.known[key] = kb
	return kb, nil
}

// forget drops what is known of a name, unless somebody has read it again already.
func (k *kbs) forget(kb *resolved) {
	key := [2]string{kb.Tenant, kb.Name}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[key] == kb {
		delete(k.known, key)
	}
}

func resolve(kb pgstore.KB) (*resolved, error) {
	r := &resolved{KB: kb}
	mandatory, given, err := filter.OfKnowledgeBase(kb.MandatoryFilter, kb.Schema, kb.Tenant)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", kb.Name, err)
	}
	if given {
		r.mandatory = &mandatory
	}
	if len(kb.Retrieval) > 0 {
		r.defaults = new(messages.RetrievalConfiguration)
		if err := json.Unmarshal(kb.Retrieval, r.defaults); err != nil {
			return nil, fmt.Errorf("read the retrieval configuration of %s: %w", kb.Name, err)
		}
	}
	if r.analyzer, err = lexical.Lookup(kb.Generation.Analyzer); err != nil {
		return nil, err
	}
	return r, nil
}
