// Package lines ends documents that are split: Ready or Failed when all of their lines have ended, with counts; and
// it removes lines that are none any more, because a newer version lacks them or the document is deleted.
//
// Everything it needs stands in the database, so that it depends on no message. What it publishes it publishes again
// after a crash, under the same ids.
package lines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what it needs of the database.
type Store interface {
	OpenSplits(ctx context.Context, after int64, limit int) ([]pgstore.OpenSplit, error)
	OldLines(ctx context.Context, parent, below, after int64, limit int) ([]pgstore.OldLine, error)
	OldLinesGone(ctx context.Context, parent, below int64) error
	OpenLine(ctx context.Context, ref messages.Ref, from int64) (int64, error)
	EndSplit(ctx context.Context, o pgstore.OpenSplit) error
	EndDelete(ctx context.Context, key, version int64) error
	SplitTold(ctx context.Context, ref messages.Ref) error
	ReceiptsOf(ctx context.Context, key, version int64) ([]pgstore.Receipt, error)
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
	DeleteDocument(ctx context.Context, d pgstore.Deletion) (pgstore.Acceptance, error)
	ForgetLines(ctx context.Context, parent int64, keys []int64) error
	SplitEnds(ctx context.Context, after messages.Ref, limit int) ([]pgstore.SplitEnd, error)
}

// Publisher stores messages at once.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Ender ends split documents. Run it in one goroutine.
type Ender struct {
	store   Store
	publish Publisher
	log     *slog.Logger
	now     func() time.Time
	seen    places // in the pass before
}

// places is what a pass leaves for the next, so that it need not look at the same lines again.
type places struct {
	open    map[version]int64 // key of the first line of a version that is open
	removed map[version]int64 // key of the last line older than a version that was dealt with, where more are left
}

func newPlaces() places { return places{open: map[version]int64{}, removed: map[version]int64{}} }

type version struct{ key, version int64 }

// New returns one.
func New(store Store, publish Publisher, log *slog.Logger) *Ender {
	return &Ender{store: store, publish: publish, log: log, now: time.Now, seen: newPlaces()}
}

const (
	pageSize = 200
	removals = 4 // at a time
	// maxRemoved bounds the lines of a document that a pass removes, in pages: others wait for their ends meanwhile.
	maxRemoved = 5
)

// Run looks every so often until ctx is done.
func (e *Ender) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := e.Pass(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("end split documents", "err", err)
		} else if len(e.seen.removed) > 0 && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Pass does once what can be done now. One document that fails keeps no other from it; the errors are joined.
func (e *Ender) Pass(ctx context.Context) error {
	var problems []error
	seen := newPlaces()
	for after := int64(0); ; {
		page, err := e.store.OpenSplits(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for _, o := range page {
			if err := guard.Call(func() error { return e.step(ctx, o, seen) }); err != nil && !errors.Is(err, pgstore.ErrStale) && !errors.Is(err, pgstore.ErrKBChanged) {
				problems = append(problems, fmt.Errorf("end %s: %w", o.Ref.DocID, err))
			}
			after = o.Ref.DocKey
		}
		if len(page) < pageSize || ctx.Err() != nil {
			e.seen = seen
			return errors.Join(append(problems, e.tellAll(ctx))...)
		}
	}
}

func (e *Ender) step(ctx context.Context, o pgstore.OpenSplit, seen places) error {
	if o.RemoveBelow > 0 {
		if err := e.remove(ctx, o, seen); err != nil {
			return err
		}
	}
	if o.Waiting && !o.KBDeleted {
		return e.end(ctx, o, seen)
	}
	return nil
}

// end ends a version unless one of its lines is open.
func (e *Ender) end(ctx context.Context, o pgstore.OpenSplit, seen places) error {
	k := version{o.Ref.DocKey, o.Ref.Version}
	open, err := e.store.OpenLine(ctx, o.Ref, e.seen.open[k])
	if err != nil {
		return err
	}
	if open > 0 {
		seen.open[k] = open
		return pgstore.ErrStale
	}
	return e.store.EndSplit(ctx, o)
}

// errNotStored is of the bus, which has been tried for long: other ends would wait as long, for the same.
var errNotStored = errors.New("store events")

// tellAll publishes the ends that were written down, and forgets them then. One that cannot be told keeps no other from it,
// unless it is the bus that fails.
func (e *Ender) tellAll(ctx context.Context) error {
	var problems []error
	for after := (messages.Ref{}); ; {
		ends, err := e.store.SplitEnds(ctx, after, pageSize)
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
		for _, end := range ends {
			after = end.Ref
			if err := guard.Call(func() error { return e.tell(ctx, end) }); err != nil {
				problems = append(problems, fmt.Errorf("tell the end of %s: %w", end.Ref.DocID, err))
				if errors.Is(err, errNotStored) {
					return errors.Join(problems...)
				}
			}
		}
		if len(ends) < pageSize || ctx.Err() != nil {
			return errors.Join(problems...)
		}
	}
}

// tell publishes an end to every submit, or delete, that it answers.
func (e *Ender) tell(ctx context.Context, end pgstore.SplitEnd) error {
	r := end.Ref
	receipts, err := e.store.ReceiptsOf(ctx, r.DocKey, r.Version)
	if err != nil {
		return err
	}
	msgs := make([]bus.Message, len(receipts))
	for i, receipt := range receipts {
		msgs[i], err = bus.Event(messages.Event{
			Tenant: r.Tenant, KB: r.KB, KBID: r.KBID, Subspace: r.Subspace, DocID: r.DocID, Version: r.Version,
			Status: end.Status, SubmitID: receipt.SubmitID, Lines: end.Lines, Error: end.Error, At: e.now().UTC(),
		}, receipt.Source)
		if err != nil {
			return err
		}
	}
	if len(msgs) > 0 {
		if _, err := e.publish.PublishAck(ctx, msgs...); err != nil {
			return fmt.Errorf("%w: %w", errNotStored, err)
		}
	}
	return e.store.SplitTold(ctx, r)
}

// remove deletes the lines of older versions, and ends the delete that waits for that. ErrStale when some are left to the next
// pass.
func (e *Ender) remove(ctx context.Context, o pgstore.OpenSplit, seen places) error {
	if !o.KBDeleted { // else its lines are gone with it
		if err := e.removeLines(ctx, o, seen); err != nil {
			return err
		}
	}
	if o.Status == messages.StatusDeleting {
		if err := e.store.EndDelete(ctx, o.Ref.DocKey, o.Version); err != nil {
			return err
		}
	}
	return e.store.OldLinesGone(ctx, o.Ref.DocKey, o.RemoveBelow)
}

func (e *Ender) removeLines(ctx context.Context, o pgstore.OpenSplit, seen places) error {
	kb, err := e.store.LoadKB(ctx, o.Ref.Tenant, o.Ref.KB)
	if err != nil {
		return err
	}
	if kb.ID != o.Ref.KBID {
		return pgstore.ErrStale
	}
	k := version{o.Ref.DocKey, o.RemoveBelow}
	after := e.seen.removed[k]
	for range maxRemoved {
		page, err := e.store.OldLines(ctx, o.Ref.DocKey, o.RemoveBelow, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := e.removePage(ctx, kb, o, page); err != nil {
			return err
		}
		after = page[len(page)-1].Key
	}
	seen.removed[k] = after
	return pgstore.ErrStale
}

func (e *Ender) removePage(ctx context.Context, kb pgstore.KB, o pgstore.OpenSplit, page []pgstore.OldLine) error {
	g, removing := guard.WithContext(ctx)
	g.SetLimit(removals)
	for _, line := range page {
		g.Go(func() error { return e.removeLine(removing, kb, o, line) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	keys := make([]int64, len(page))
	for i, line := range page {
		keys[i] = line.Key
	}
	return e.store.ForgetLines(ctx, o.Ref.DocKey, keys)
}

// removeLine deletes a line, if it still is one, and tells so.
func (e *Ender) removeLine(ctx context.Context, kb pgstore.KB, o pgstore.OpenSplit, line pgstore.OldLine) error {
	source := fmt.Sprintf("%d/gone/%d/%d/%d", o.Ref.KBID, o.Ref.DocKey, o.RemoveBelow, line.Key)
	a, err := e.store.DeleteDocument(ctx, pgstore.Deletion{
		KB: kb, Subspace: line.Subspace, DocID: line.DocID, Source: source, SubmitID: source, Order: o.Order,
		LineOf: pgstore.Line{Parent: o.Ref.DocKey, Version: o.RemoveBelow},
	})
	if known, ok := messages.AsError(err); ok && known.Code == messages.CodeDocumentNotFound {
		return nil // it is none any more
	}
	if err != nil || a.Outcome != pgstore.Removed {
		return err
	}
	event := messages.Event{
		Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Subspace: line.Subspace, DocID: line.DocID, Version: a.Version,
		Status: messages.StatusDeleted, SubmitID: source, At: e.now().UTC(),
	}
	msg, err := bus.Event(event, source)
	if err != nil {
		return err
	}
	msgs := []bus.Message{msg}
	for _, r := range a.Overtaken {
		event.Version, event.Status, event.SubmitID = r.Version, messages.StatusSuperseded, r.SubmitID
		if msg, err = bus.Event(event, r.Source); err != nil {
			return err
		}
		msgs = append(msgs, msg)
	}
	_, err = e.publish.PublishAck(ctx, msgs...)
	return err
}
