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
	if len(kb.MandatoryFilter) > 0 && string(kb.MandatoryFilter) != "null" {
		m, err := mandatory(kb)
		if err != nil { // never left out, and no caller's fault
			return nil, fmt.Errorf("read the mandatory filter of %s: %v", kb.Name, err) //nolint:errorlint // it must not pass for a VALIDATION_ERROR of the request
		}
		r.mandatory = &m
	}
	if len(kb.Retrieval) > 0 {
		r.defaults = new(messages.RetrievalConfiguration)
		if err := json.Unmarshal(kb.Retrieval, r.defaults); err != nil {
			return nil, fmt.Errorf("read the retrieval configuration of %s: %w", kb.Name, err)
		}
	}
	var err error
	if r.analyzer, err = lexical.Lookup(kb.Generation.Analyzer); err != nil {
		return nil, err
	}
	return r, nil
}

// mandatory binds the mandatory filter of a knowledge base to its tenant.
func mandatory(kb pgstore.KB) (filter.Bound, error) {
	const tenant = "tenant"
	m, err := filter.ParseMandatory("mandatoryFilter", kb.MandatoryFilter, kb.Schema, filter.Limits{}, tenant)
	if err != nil {
		return filter.Bound{}, err
	}
	return m.Bind(map[string]string{tenant: kb.Tenant})
}
