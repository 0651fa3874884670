// Package upkeep is the indexer's housekeeping: posting segments are merged, deleted knowledge bases
// purged, and what is no longer needed swept.
package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what upkeep needs of the database.
type Store interface {
	GenerationsToMerge(ctx context.Context) ([]int64, error)
	MergeSegments(ctx context.Context, generation int64) (bool, error)
	PurgeDeleted(ctx context.Context, grace time.Duration) ([]string, error)
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
		merged, err := m.store.MergeSegments(ctx, generation)
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

// Ages of what is swept, and how long a deleted knowledge base's rows outlive the queries on it.
const (
	blobAge      = time.Hour
	receiptAge   = 30 * 24 * time.Hour
	tombstoneAge = 30 * 24 * time.Hour
)

// Housekeeper purges and sweeps.
type Housekeeper struct {
	store Store
	log   *slog.Logger
	grace time.Duration
}

// NewHousekeeper returns a housekeeper; grace is how long a deleted knowledge base's partitions outlive
// it, at least the longest deadline of a query.
func NewHousekeeper(store Store, log *slog.Logger, grace time.Duration) *Housekeeper {
	return &Housekeeper{store: store, log: log, grace: grace}
}

// Run works at once and every period until ctx is done.
func (h *Housekeeper) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		h.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (h *Housekeeper) round(ctx context.Context) {
	gone, err := h.store.PurgeDeleted(ctx, h.grace)
	for _, name := range gone {
		h.log.Info("purged a deleted knowledge base", "kb", name)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Error("purge deleted knowledge bases", "err", err)
	}
	n, err := h.store.Sweep(ctx, pgstore.SweepAges{Blobs: blobAge, Receipts: receiptAge, Tombstones: tombstoneAge})
	if n > 0 {
		h.log.Debug("swept", "rows", n)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Error("sweep", "err", err)
	}
}
