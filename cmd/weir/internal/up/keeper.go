package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/service/statedir"
)

// policy says how what dies is started again.
type policy struct {
	// first and most bound the pause before a restart, which doubles each time.
	first, most time.Duration
	// stable is how long a part must have run for its earlier deaths to be forgotten.
	stable time.Duration
	// deaths is how many in a row are accepted.
	deaths int
	// ready is how long a part may take to be ready.
	ready time.Duration
}

func defaultPolicy() policy {
	return policy{first: 500 * time.Millisecond, most: 20 * time.Second, stable: time.Minute, deaths: 6, ready: 3 * time.Minute}
}

// work runs a part until ctx is done. It calls ready, with what is to be recorded, once it works.
type work func(ctx context.Context, ready func(statedir.Part)) error

// keeper keeps one part running.
type keeper struct {
	name   string
	work   work
	policy policy
	logger *slog.Logger
	record *record

	cancel context.CancelFunc
	ready  chan struct{} // closed at the first time it is ready
	once   sync.Once
	done   chan struct{}
	err    error // why it was given up; valid once done is closed
}

func (k *keeper) start(ctx context.Context) {
	ctx, k.cancel = context.WithCancel(ctx)
	k.ready, k.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(k.done)
		k.err = k.keep(ctx)
	}()
}

// keep returns nil when ctx ended, else why the part was given up.
func (k *keeper) keep(ctx context.Context) error {
	deaths := 0
	pause := k.policy.first
	for {
		k.record.part(k.name, func(p *statedir.Part) { p.State = statedir.StateStarting })
		lived, err := k.live(ctx)
		if ctx.Err() != nil {
			k.stopped(err)
			return nil
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		if lived > k.policy.stable {
			deaths, pause = 0, k.policy.first
		}
		deaths++
		if !k.wasReady() || deaths > k.policy.deaths {
			k.record.part(k.name, func(p *statedir.Part) { p.State, p.Error, p.PID = statedir.StateFailed, err.Error(), 0 })
			return fmt.Errorf("%s: %w", k.name, err)
		}
		k.logger.Error("part died and is started again", "part", k.name, "err", err, "pause", pause, "deaths", deaths)
		k.record.part(k.name, func(p *statedir.Part) {
			p.State, p.Error, p.PID = statedir.StateRestarting, err.Error(), 0
			p.Restarts++
		})
		select {
		case <-ctx.Done():
			k.stopped(nil)
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, k.policy.most)
	}
}

func (k *keeper) stopped(err error) {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
	case !k.wasReady(): // its start was cut short, which no start takes well
		k.logger.Debug("start was cut short", "part", k.name, "err", err)
	default:
		k.logger.Error("part did not stop cleanly", "part", k.name, "err", err)
	}
	k.record.part(k.name, func(p *statedir.Part) { p.State, p.PID = statedir.StateStopped, 0 })
}

// live runs the part once and returns how long it was ready. A panic is an error like any other.
func (k *keeper) live(ctx context.Context) (lived time.Duration, err error) {
	var since time.Time
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if !since.IsZero() {
			lived = time.Since(since)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(k.policy.ready, func() {
		cancel(fmt.Errorf("it was not ready after %s", k.policy.ready))
	})
	defer late.Stop()
	err = k.work(ctx, func(part statedir.Part) {
		late.Stop()
		since = time.Now()
		k.record.part(k.name, func(p *statedir.Part) {
			p.State, p.PID, p.Port, p.Note = statedir.StateReady, part.PID, part.Port, part.Note
		})
		k.once.Do(func() { close(k.ready) })
	})
	if cause := context.Cause(ctx); cause != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = cause
	}
	return lived, err
}

func (k *keeper) wasReady() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

// Levels of parts: all of a level are stopped at once, the highest first.
const (
	levelBus = iota
	levelStore
	levelService
)

// stopLimit is how long a part below the services may take to stop; Postgres has limits of its own below it.
const stopLimit = 150 * time.Second

// group is the parts of a run.
type group struct {
	logger *slog.Logger
	record *record
	policy policy
	// grace is how long services may take to stop.
	grace time.Duration

	levels [levelService + 1][]*keeper
	fatal  chan error
}

func newGroup(logger *slog.Logger, rec *record, pol policy, grace time.Duration) *group {
	return &group{logger: logger, record: rec, policy: pol, grace: grace, fatal: make(chan error, len(partNames()))}
}

// begin starts a part. It is stopped by stop only, not by the end of a context, so that the order holds.
func (g *group) begin(name string, level int, w work) *keeper {
	k := &keeper{name: name, work: w, policy: g.policy, logger: g.logger, record: g.record}
	g.levels[level] = append(g.levels[level], k)
	k.start(context.Background())
	go func() {
		<-k.done
		if k.err != nil {
			g.fatal <- k.err
		}
	}()
	return k
}

// await waits until the parts are ready, and returns the error of the first part of the group that is
// given up, or the cause of the end of ctx.
func (g *group) await(ctx context.Context, parts ...*keeper) error {
	for _, k := range parts {
		select {
		case <-k.ready:
		case err := <-g.fatal:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// stop stops the parts, level by level. A service that does not end within the grace time is left to the
// end of the process: what lies below it must still be stopped in order.
func (g *group) stop() error {
	var problems []error
	for level := levelService; level >= levelBus; level-- {
		limit := stopLimit
		if level == levelService {
			limit = g.grace
		}
		for _, k := range g.levels[level] {
			k.cancel()
		}
		timer := time.NewTimer(limit)
		for _, k := range g.levels[level] {
			select {
			case <-k.done:
			case <-timer.C:
				timer.Reset(0) // the others of this level are out of time as well
				problems = append(problems, fmt.Errorf("%s did not stop within %s", k.name, limit))
			}
		}
		timer.Stop()
		g.levels[level] = nil
	}
	return errors.Join(problems...)
}
