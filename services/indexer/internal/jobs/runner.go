// Package jobs runs what is recorded in the table of jobs: it fills the generation that a job builds with work for the
// stages every document passes, watches it arrive, and makes the generation live when nothing is missing.
//
// A job's row is its whole state. Whoever holds the lease goes on from there, so a runner may die at any moment;
// its successor's fencing number keeps it from writing should it only have been slow.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what running jobs needs of the database.
type Store interface {
	ClaimJob(ctx context.Context, owner string, lease time.Duration) (pgstore.Job, bool, error)
	RenewJob(ctx context.Context, j pgstore.Job, lease time.Duration) (pgstore.Job, error)
	ReleaseJob(ctx context.Context, j pgstore.Job) error
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
	SelectBuilds(ctx context.Context, j pgstore.Job, schema messages.MetadataSchema) error
	FillBuilds(ctx context.Context, j pgstore.Job, after pgstore.ListPlace, limit int) (pgstore.ListPlace, int, error)
	NextBuilds(ctx context.Context, j pgstore.Job, limit int) ([]messages.Ref, error)
	BuildsQueued(ctx context.Context, j pgstore.Job, refs []messages.Ref) error
	LoadGeneration(ctx context.Context, id int64) (pgstore.Generation, error)
	CopyBuilds(ctx context.Context, from, to pgstore.Generation, refs []messages.Ref) (copied int, left []messages.Ref, err error)
	BuildsOpen(ctx context.Context, j pgstore.Job) (begun int, more bool, err error)
	CountJob(ctx context.Context, j pgstore.Job) (messages.JobCounts, error)
	SetGateResult(ctx context.Context, j pgstore.Job, r messages.JobGateResult) error
	WaitJob(ctx context.Context, j pgstore.Job, reason string) error
	FlipJob(ctx context.Context, j pgstore.Job) (pgstore.Flip, error)
	FailRollback(ctx context.Context, j pgstore.Job, reason string) error
}

// Publisher stores messages.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Gate compares the generation that a job has built with the live one.
type Gate interface {
	Measure(ctx context.Context, j pgstore.Job) (messages.JobGateResult, error)
}

// Config is how jobs are run. The zero value means the defaults.
type Config struct {
	Owner string // of leases, for people
	// Lease is how long a job waits for a runner that died; 0: 15 s.
	Lease time.Duration
	// Window is how many documents of a job are on their way at once; 0: 6. They share the lane of their
	// knowledge base with its submits, which wait no longer than these take, and the processors with queries.
	Window int
	// Idle is the time between looks for jobs; 0: 1 s. Tick is that between looks at a running one; 0: 50 ms.
	Idle, Tick time.Duration
}

// WithDefaults returns c with nothing left open.
func (c Config) WithDefaults() Config {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Lease, 15 * time.Second}, {&c.Idle, time.Second}, {&c.Tick, 50 * time.Millisecond}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if c.Window == 0 {
		c.Window = 6
	}
	return c
}

// maxParallel bounds the jobs that one runner has in hand.
const maxParallel = 4

// Runner runs jobs. Run it once; Wake may be called from anywhere.
type Runner struct {
	store   Store
	publish Publisher
	gate    Gate
	swapped func(generation int64) // called when a generation got new chunks
	log     *slog.Logger
	cfg     Config
	woken   chan struct{}
}

// New returns a runner; swapped is told of generations that got new chunks.
func New(store Store, publish Publisher, gate Gate, swapped func(generation int64), log *slog.Logger, cfg Config) *Runner {
	return &Runner{store: store, publish: publish, gate: gate, swapped: swapped, log: log, cfg: cfg.WithDefaults(), woken: make(chan struct{}, 1)}
}

// Wake asks for a look for jobs soon. It never blocks.
func (r *Runner) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// Run takes jobs that nobody runs until ctx is done, and gives back what it has in hand.
func (r *Runner) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxParallel)
	tick := time.NewTicker(r.cfg.Idle)
	defer tick.Stop()
	for {
		r.claimAll(ctx, slots, &running)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.woken:
		}
	}
}

func (r *Runner) claimAll(ctx context.Context, slots chan struct{}, running *sync.WaitGroup) {
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		default:
			return // enough in hand
		}
		j, ok, err := r.store.ClaimJob(ctx, r.cfg.Owner, r.cfg.Lease)
		if err != nil && ctx.Err() == nil {
			r.log.Error("look for jobs", "err", err)
		}
		if err != nil || !ok {
			<-slots
			return
		}
		running.Add(1)
		go func() {
			defer running.Done()
			defer func() { <-slots }()
			r.hold(ctx, j)
		}()
	}
}

const (
	firstDelay  = 200 * time.Millisecond
	maxDelay    = 10 * time.Second
	releaseTime = 5 * time.Second
)

// hold drives a job until it is over, waits, or belongs to somebody else. What fails is tried again for as long
// as the lease holds.
func (r *Runner) hold(ctx context.Context, j pgstore.Job) {
	log := r.log.With("job", j.ID, "kb", j.KnowledgeBaseName, "fence", j.Fence)
	log.Info("running a job", "phase", j.Phase, "generation", j.Goal())
	d := &drive{Runner: r, log: log}
	delay := firstDelay
	for {
		err := guard.Call(func() error { return d.run(ctx, j) })
		switch {
		case err == nil || errors.Is(err, pgstore.ErrLeaseLost):
			log.Info("job is out of hand", "ended", err == nil)
			return
		case ctx.Err() != nil:
			release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
			defer cancel()
			if err := r.store.ReleaseJob(release, j); err != nil {
				log.Warn("release job", "err", err)
			}
			return
		}
		log.Error("run job", "err", err)
		if !pause(ctx, delay) {
			continue // released above
		}
		delay = min(2*delay, maxDelay)
	}
}

// pause waits; false when ctx was done first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
