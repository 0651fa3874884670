package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// drive is one job in the hands of a runner. What it remembers only saves work: a new one finds everything in the
// database.
type drive struct {
	*Runner
	log *slog.Logger

	from, to  pgstore.Generation // the live one, and the one to fill
	copyable  bool               // from has everything that documents need in to
	at        pgstore.ListPlace  // how far the pass over the documents is
	found     bool               // the pass found something
	passed    bool               // a whole pass found nothing
	allowance float64            // documents that the rate limit allows now
	earned    time.Time
	renewed   time.Time
	counted   time.Time
	countTook time.Duration
}

// fillPage is how many documents go on the list at once.
const fillPage = 1000

// run drives the job; nil when there is nothing more to do for this runner.
func (d *drive) run(ctx context.Context, j pgstore.Job) (err error) {
	d.at, d.found, d.passed = pgstore.ListPlace{}, false, false
	if err := d.look(ctx, j); err != nil {
		return err
	}
	for {
		if j, err = d.renew(ctx, j); err != nil {
			return err
		}
		idle, busy, err := d.step(ctx, j)
		if err != nil {
			return err
		}
		if idle {
			over, err := d.finish(ctx, j)
			if err != nil || over {
				return err
			}
			d.at, d.found, d.passed = pgstore.ListPlace{}, false, false
		}
		if busy && ctx.Err() == nil {
			continue
		}
		if !pause(ctx, d.cfg.Tick) {
			return context.Cause(ctx)
		}
	}
}

// look finds out whether documents can be copied from the live generation.
func (d *drive) look(ctx context.Context, j pgstore.Job) error {
	live := j.Source
	if j.Phase == messages.PhaseRollback {
		live = j.Target
	}
	var err error
	if d.from, err = d.store.LoadGeneration(ctx, live); err != nil {
		return err
	}
	if d.to, err = d.store.LoadGeneration(ctx, j.Goal()); err != nil {
		return err
	}
	d.copyable = pgstore.Copyable(d.from, d.to)
	return nil
}

// renew keeps the lease and reads the job anew, several times in a lease: it may have been paused meanwhile.
func (d *drive) renew(ctx context.Context, j pgstore.Job) (pgstore.Job, error) {
	every := min(d.cfg.Lease/4, time.Second/2)
	if time.Since(d.renewed) < every {
		return j, nil
	}
	now, err := d.store.RenewJob(ctx, j, d.cfg.Lease)
	if err == nil {
		d.renewed = time.Now()
	}
	return now, err
}

// step moves the job on; idle when all documents have a build and none is open, busy when there is more to do at once.
func (d *drive) step(ctx context.Context, j pgstore.Job) (idle, busy bool, err error) {
	begun, more, err := d.store.BuildsOpen(ctx, j)
	if err != nil {
		return false, false, err
	}
	if !more && !d.passed {
		if err := d.fill(ctx, j); err != nil {
			return false, false, err
		}
		more = true
	}
	if more {
		published, copied, err := d.begin(ctx, j, d.cfg.Window-begun)
		if err != nil {
			return false, false, err
		}
		begun, busy = begun+published, copied > 0
	}
	if err := d.count(ctx, j, false); err != nil {
		return false, false, err
	}
	return d.passed && begun == 0 && !busy, busy, nil
}

// fill puts the next documents on the list. Those of a repair are chosen at once.
func (d *drive) fill(ctx context.Context, j pgstore.Job) error {
	if j.Kind == messages.JobRepair {
		d.passed = true
		if j.Selected {
			return nil
		}
		kb, err := d.store.LoadKB(ctx, j.Tenant, j.KnowledgeBaseName)
		if err != nil {
			return err
		}
		return d.store.SelectBuilds(ctx, j, kb.Schema)
	}
	var last pgstore.ListPlace
	var n int
	err := d.keeping(ctx, j, func(ctx context.Context) (err error) { // where few are left to list, it looks at all
		last, n, err = d.store.FillBuilds(ctx, j, d.at, fillPage)
		return err
	})
	if err != nil {
		return err
	}
	if n > 0 {
		d.at, d.found = last, true
		return nil
	}
	d.passed = !d.found
	d.at, d.found = pgstore.ListPlace{}, false
	return nil
}

// begin takes up to room builds off the list: it copies those it can and publishes the work of the others.
func (d *drive) begin(ctx context.Context, j pgstore.Job, room int) (published, copied int, err error) {
	if d.copyable {
		room = copyPage // they are nobody's work on its way
	}
	if room = d.allowed(j.RateLimit, room); room <= 0 {
		return 0, 0, nil
	}
	refs, err := d.store.NextBuilds(ctx, j, room)
	if err != nil || len(refs) == 0 {
		return 0, 0, err
	}
	if d.copyable {
		if copied, refs, err = d.store.CopyBuilds(ctx, d.from, d.to, refs); err != nil {
			return 0, 0, err
		}
		if copied > 0 {
			d.swapped(d.to.ID)
		}
	}
	d.allowance -= float64(copied + len(refs))
	return len(refs), copied, d.publishBuilds(ctx, j, refs)
}

// copyPage is how many builds are copied by one transaction. One is under way at a time: two are a quarter faster, and
// cost queries beside them more than twice their time on two cores.
const copyPage = 512

// publishBuilds publishes the work of builds and records that. After a crash in between it is published again under
// the same ids.
func (d *drive) publishBuilds(ctx context.Context, j pgstore.Job, refs []messages.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	msgs := make([]bus.Message, len(refs))
	for i, ref := range refs {
		var err error
		if msgs[i], err = bus.Work(messages.StageParse, messages.TypeParse, ref, 0, messages.ParseWork{Ref: ref}); err != nil {
			return err
		}
	}
	if _, err := d.publish.PublishAck(ctx, msgs...); err != nil {
		return fmt.Errorf("publish builds: %w", err)
	}
	return d.store.BuildsQueued(ctx, j, refs)
}

// allowed is how many of room documents the rate limit lets begin now; 0 is no limit.
func (d *drive) allowed(rate float64, room int) int {
	if rate <= 0 {
		return room
	}
	now := time.Now()
	if !d.earned.IsZero() {
		d.allowance = min(d.allowance+rate*now.Sub(d.earned).Seconds(), max(rate, 1))
	} else {
		d.allowance = 1
	}
	d.earned = now
	return min(room, int(d.allowance))
}

// count records how far the job is, often enough for people to watch, and so that it costs a twentieth at most.
func (d *drive) count(ctx context.Context, j pgstore.Job, now bool) error {
	if !now && time.Since(d.counted) < max(time.Second, 20*d.countTook) {
		return nil
	}
	began := time.Now()
	_, err := d.store.CountJob(ctx, j)
	d.counted, d.countTook = time.Now(), time.Since(began)
	return err
}

// finish makes the job's generation live, or has the job wait for somebody; over when it is not running any more.
func (d *drive) finish(ctx context.Context, j pgstore.Job) (over bool, err error) {
	counts, err := d.store.CountJob(ctx, j)
	if err != nil {
		return false, err
	}
	if !j.Approved && j.Kind == messages.JobReindex {
		if reason, err := d.hindrance(ctx, j, counts); reason != "" || err != nil {
			return err == nil, d.wait(ctx, j, reason, err)
		}
	}
	f, err := d.store.FlipJob(ctx, j)
	if err != nil {
		return false, err
	}
	switch {
	case f.Done:
		d.log.Info("job is done", "generation", j.Goal(), "documents", counts.Done, "failed", counts.Failed)
		return true, nil
	case f.Missing > 0:
		return false, nil // there are new documents to build
	case j.Phase == messages.PhaseRollback:
		return true, d.store.FailRollback(ctx, j, fmt.Sprintf("the rollback failed: %s", failures(f.Failed, j.MaxFailed)))
	}
	return true, d.wait(ctx, j, failures(f.Failed, j.MaxFailed), nil)
}

func (d *drive) wait(ctx context.Context, j pgstore.Job, reason string, err error) error {
	if err != nil {
		return err
	}
	d.log.Info("job waits", "reason", reason)
	return d.store.WaitJob(ctx, j, reason)
}

func failures(n int64, accepted int) string {
	return fmt.Sprintf("%d documents failed, %d are accepted (maxFailed): approve with a larger number, resume with retryFailed, or cancel", n, accepted)
}

// hindrance is why a job that built everything must wait; empty when it need not.
func (d *drive) hindrance(ctx context.Context, j pgstore.Job, counts messages.JobCounts) (string, error) {
	if counts.Failed > int64(j.MaxFailed) {
		return failures(counts.Failed, j.MaxFailed), nil
	}
	if j.Gate != nil {
		result, err := d.measure(ctx, j)
		if err != nil {
			return "", err
		}
		if !result.Passed {
			return "the gate was not passed: approve or cancel", nil
		}
	}
	if j.Manual {
		return "everything is built: approve or cancel", nil
	}
	return "", nil
}

// measure runs the gate.
func (d *drive) measure(ctx context.Context, j pgstore.Job) (result messages.JobGateResult, err error) {
	err = d.keeping(ctx, j, func(ctx context.Context) (err error) {
		result, err = d.gate.Measure(ctx, j)
		return err
	})
	if err != nil {
		return result, fmt.Errorf("measure: %w", err)
	}
	return result, d.store.SetGateResult(ctx, j, result)
}

// keeping does what may take longer than a lease, and keeps the lease meanwhile. When that fails it is given up: somebody else
// does it.
func (d *drive) keeping(ctx context.Context, j pgstore.Job, do func(context.Context) error) error {
	within, cancel := context.WithCancelCause(ctx)
	var keep guard.Group
	defer keep.Wait() //nolint:errcheck // it is the cause of the end
	defer cancel(nil)
	keep.Go(func() error {
		defer cancel(nil) // also of a panic
		for pause(within, d.cfg.Lease/4) {
			if _, err := d.store.RenewJob(within, j, d.cfg.Lease); err != nil {
				cancel(err)
				return err
			}
		}
		return nil
	})
	err := do(within)
	if cause := context.Cause(within); err != nil && cause != nil {
		return fmt.Errorf("keep the lease: %w", cause)
	}
	return err
}
