package pgstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// stepJob moves the job on, if no other hand does.
func (h *mixedHand) stepJob(ctx context.Context) error {
	if !h.job.mu.TryLock() {
		return nil
	}
	defer h.job.mu.Unlock()
	if h.job.now == nil {
		return h.startJob(ctx)
	}
	switch h.rng.IntN(30) {
	case 0:
		return h.cancelJob(ctx)
	case 1:
		return ignore(h.store.ResumeJob(ctx, h.kb.Tenant, messages.ResumeJob{ID: h.job.now.ID, RetryFailed: true}))
	}
	return h.drive(ctx)
}

func (h *mixedHand) startJob(ctx context.Context) error {
	kb, err := h.store.LoadKB(ctx, h.kb.Tenant, h.kb.Name)
	if err != nil {
		return err
	}
	if h.job.done > 0 && h.rng.IntN(3) == 0 {
		if _, err := h.store.RollbackJob(ctx, kb.Tenant, h.job.done); err != nil {
			if e, ok := messages.AsError(err); ok && e.Code == messages.CodeValidation {
				h.job.done = 0
				return nil
			}
			return err
		}
		h.count1("rollbacks")
	} else {
		n := pgstore.NewJob{KB: kb, Kind: messages.JobReindex, Target: kb.Generation, Retain: time.Hour}
		n.Target.ID = 0
		switch h.job.n++; h.rng.IntN(3) {
		case 0: // its builds can be copied
		case 1:
			n.Target.Space = &messages.Space{Model: fmt.Sprintf("m%d", h.job.n), Dims: dims, Metric: "cosine", Normalized: true}
		default:
			n.Kind = messages.JobRepair
		}
		if _, err := h.store.StartJob(ctx, n); err != nil {
			return err
		}
	}
	j, ok, err := h.store.ClaimJob(ctx, "mixed", time.Hour)
	if err != nil || !ok {
		return fmt.Errorf("claim: %v (%w)", ok, err)
	}
	h.job.now = &j
	return nil
}

func (h *mixedHand) cancelJob(ctx context.Context) error {
	if _, err := h.store.CancelJob(ctx, h.kb.Tenant, h.job.now.ID); err != nil {
		return err
	}
	h.job.now = nil
	h.count1("cancelled")
	return ignore(h.store.DropGenerations(ctx, 0))
}

// drive fills the list of the job, begins some of it and tries to end it.
func (h *mixedHand) drive(ctx context.Context) error {
	j := *h.job.now
	if j.Kind != messages.JobRepair {
		for at, n := (pgstore.ListPlace{}), 1; n > 0; {
			var err error
			if at, n, err = h.store.FillBuilds(ctx, j, at, 3); err != nil {
				return err
			}
		}
	} else if !j.Selected {
		if err := h.again(ctx, func() error { return h.store.SelectBuilds(ctx, j, nil) }); err != nil {
			return err
		}
		h.job.now.Selected = true
	}
	refs, err := h.store.NextBuilds(ctx, j, 1+h.rng.IntN(mixedDocs))
	if err != nil {
		return err
	}
	if refs, err = h.copyBuilds(ctx, j, refs); err != nil {
		return err
	}
	if err := h.again(ctx, func() error { return h.store.BuildsQueued(ctx, j, refs) }); err != nil {
		return err
	}
	for _, ref := range refs {
		h.push(mixedWork{ref: ref})
	}
	if begun, more, err := h.store.BuildsOpen(ctx, j); err != nil || j.Kind == messages.JobRepair && (begun > 0 || more) {
		return err
	}
	var f pgstore.Flip
	if err := h.again(ctx, func() (err error) { f, err = h.store.FlipJob(ctx, j); return err }); err != nil {
		return err
	}
	if f.Done {
		h.count1("flips")
		h.job.now = nil
		if j.Kind == messages.JobReindex {
			h.job.done = j.ID
		}
	}
	return nil
}

func (h *mixedHand) copyBuilds(ctx context.Context, j pgstore.Job, refs []messages.Ref) ([]messages.Ref, error) {
	live := j.Source
	if j.Phase == messages.PhaseRollback {
		live = j.Target
	}
	from, err := h.store.LoadGeneration(ctx, live)
	if err != nil {
		return nil, err
	}
	to, err := h.store.LoadGeneration(ctx, j.Goal())
	if err != nil || len(refs) == 0 || !pgstore.Copyable(from, to) {
		return refs, err
	}
	var copied int
	if err := h.again(ctx, func() (err error) { copied, refs, err = h.store.CopyBuilds(ctx, from, to, refs); return err }); err != nil {
		return nil, err
	}
	if copied > 0 {
		h.count1("copies")
	}
	return refs, nil
}
