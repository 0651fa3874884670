package intake

import (
	"context"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/pgstore"
)

// kbTTL bounds how long an unused knowledge base stays in memory. A changed one is noticed at once,
// since every write checks the revision it was decided on.
const (
	kbTTL      = time.Minute
	maxKnownKB = 4096
)

// kbs remembers knowledge bases by name. Safe for concurrent use.
type kbs struct {
	store Store
	now   func() time.Time

	mu    sync.Mutex
	known map[kbName]knownKB
}

type kbName struct{ tenant, name string }

type knownKB struct {
	kb pgstore.KB
	at time.Time
}

func (k *kbs) load(ctx context.Context, tenant, name string) (pgstore.KB, error) {
	id := kbName{tenant, name}
	k.mu.Lock()
	have, ok := k.known[id]
	k.mu.Unlock()
	if ok && k.now().Sub(have.at) < kbTTL {
		return have.kb, nil
	}
	kb, err := k.store.LoadKB(ctx, tenant, name)
	if err != nil {
		return kb, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnownKB {
		clear(k.known)
	}
	k.known[id] = knownKB{kb, k.now()}
	return kb, nil
}

func (k *kbs) forget(tenant, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, kbName{tenant, name})
}
