// Package upkeep is the indexer's housekeeping: posting segments are merged, deleted knowledge bases
// purged, and what is no longer needed swept.
package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what upkeep needs of the database.
type Store interface {
	GenerationsToMerge(ctx context.Context) ([]int64, error)
	MergeSegments(ctx context.Context, generation int64) (bool, error)
	OrphanedSubmits(ctx context.Context, after pgstore.OrphanedSubmit, limit int) ([]pgstore.OrphanedSubmit, error)
	PurgeDeleted(ctx context.Context, grace time.Duration) ([]string, error)
	ExpireGenerations(ctx context.Context) (int, error)
	DropGenerations(ctx context.Context, grace time.Duration) ([]int64, error)
	Sweep(ctx context.Context, ages pgstore.SweepAges) (int, error)
}

// Merger merges the segments of generations it is told of. Run it once; Touch may be called from
// anywhere.
type Merger struct {
	store   Store
	log     *slog.Logger
	touched chan int64
}

// NewMerger returns a merger.
func NewMerger(store Store, log *slog.Logger) *Merger {
	return &Merger{store: store, log: log, touched: make(chan int64, 64)}
}

// Touch says that a generation got a new segment. It never blocks: when too many are waiting, the
// next full round finds this one.
func (m *Merger) Touch(generation int64) {
	select {
	case m.touched <- generation:
	default:
	}
}

// mergeDelay lets a burst of new segments gather, so that they are merged once.
const mergeDelay = 200 * time.Millisecond

// Run merges until ctx is done: what is touched soon, everything once at the start and every period.
func (m *Merger) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	soon := time.NewTimer(0)
	defer soon.Stop()
	pending, all := map[int64]bool{}, true
	for {
		select {
		case <-ctx.Done():
			return nil
		case g := <-m.touched:
			if len(pending) == 0 {
				soon.Reset(mergeDelay)
			}
			pending[g] = true
			continue
		case <-tick.C:
			all = true
		case <-soon.C:
		}
		if all {
			m.addAll(ctx, pending)
			all = false
		}
		for g := range pending {
			m.merge(ctx, g)
		}
		clear(pending)
	}
}

func (m *Merger) addAll(ctx context.Context, pending map[int64]bool) {
	ids, err := m.store.GenerationsToMerge(ctx)
	if err != nil {
		m.failed(ctx, "list generations to merge", err)
		return
	}
	for _, g := range ids {
		pending[g] = true
	}
}

func (m *Merger) merge(ctx context.Context, generation int64) {
	for ctx.Err() == nil {
		var merged bool
		err := guard.Call(func() (err error) {
			merged, err = m.store.MergeSegments(ctx, generation)
			return err
		})
		if err != nil && !pgstore.Conflict(err) {
			m.failed(ctx, "merge segments", err)
			return
		}
		if !merged {
			return
		}
	}
}

func (m *Merger) failed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		m.log.Error(what, "err", err)
	}
}
