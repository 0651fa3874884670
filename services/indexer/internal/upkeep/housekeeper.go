package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Ages of what is swept, and how long a deleted knowledge base's rows outlive the queries on it.
const (
	blobAge      = time.Hour
	receiptAge   = 30 * 24 * time.Hour
	tombstoneAge = 30 * 24 * time.Hour
	recordAge    = 90 * 24 * time.Hour
)

// Publisher stores messages.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Housekeeper ends what deleted knowledge bases left open, purges them, drops generations that are over, and sweeps.
type Housekeeper struct {
	store   Store
	publish Publisher
	log     *slog.Logger
	grace   time.Duration
	woken   chan struct{}
}

// NewHousekeeper returns a housekeeper; grace is how long a deleted knowledge base's partitions outlive
// it, at least the longest deadline of a query.
func NewHousekeeper(store Store, publish Publisher, log *slog.Logger, grace time.Duration) *Housekeeper {
	return &Housekeeper{store: store, publish: publish, log: log, grace: grace, woken: make(chan struct{}, 1)}
}

// Wake asks for a round soon. It never blocks and may be called from anywhere.
func (h *Housekeeper) Wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

// Run works at once, when it is woken and every period, until ctx is done.
func (h *Housekeeper) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := guard.Call(func() error {
			h.round(ctx)
			return nil
		})
		h.failed(ctx, "keep house", err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-h.woken:
		}
	}
}

func (h *Housekeeper) round(ctx context.Context) {
	// Only what has been told may go: a failure leaves the rows for the next round.
	if err := h.endOrphans(ctx); err != nil {
		h.failed(ctx, "end submits of deleted knowledge bases", err)
		return
	}
	gone, err := h.store.PurgeDeleted(ctx, h.grace)
	for _, name := range gone {
		h.log.Info("purged a deleted knowledge base", "kb", name)
	}
	h.failed(ctx, "purge deleted knowledge bases", err)
	h.dropGenerations(ctx)
	n, err := h.store.Sweep(ctx, pgstore.SweepAges{Blobs: blobAge, Receipts: receiptAge, Tombstones: tombstoneAge, Records: recordAge})
	if n > 0 {
		h.log.Debug("swept", "rows", n)
	}
	h.failed(ctx, "sweep", err)
}

// dropGenerations ends what jobs have kept for a rollback and drops what they left.
func (h *Housekeeper) dropGenerations(ctx context.Context) {
	_, err := h.store.ExpireGenerations(ctx)
	h.failed(ctx, "expire retained generations", err)
	dropped, err := h.store.DropGenerations(ctx, h.grace)
	for _, id := range dropped {
		h.log.Info("dropped a generation", "generation", id)
	}
	h.failed(ctx, "drop generations", err)
}

func (h *Housekeeper) failed(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		h.log.Error(what, "err", err)
	}
}

const orphanPage = 500

// endOrphans tells submits that were open when their knowledge base was deleted that they failed. Told
// again in the next round, an event is stored once.
func (h *Housekeeper) endOrphans(ctx context.Context) error {
	var last pgstore.OrphanedSubmit
	for {
		page, err := h.store.OrphanedSubmits(ctx, last, orphanPage)
		if err != nil || len(page) == 0 {
			return err
		}
		msgs := make([]bus.Message, len(page))
		for i, o := range page {
			if msgs[i], err = orphanEvent(o); err != nil {
				return err
			}
		}
		if _, err := h.publish.PublishAck(ctx, msgs...); err != nil {
			return err
		}
		last = page[len(page)-1]
	}
}

func orphanEvent(o pgstore.OrphanedSubmit) (bus.Message, error) {
	return bus.Event(messages.Event{
		Tenant: o.Ref.Tenant, KB: o.Ref.KB, KBID: o.Ref.KBID, Subspace: o.Ref.Subspace, DocID: o.Ref.DocID, Version: o.Ref.Version,
		Status: messages.StatusFailed, SubmitID: o.SubmitID, At: time.Now().UTC(),
		Error: messages.Errorf(messages.CodeKBNotFound, "the knowledge base was deleted before the document was ready"),
	}, o.Source)
}
