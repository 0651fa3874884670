package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/weir-project/weir/pkg/service/child"
	"github.com/weir-project/weir/pkg/service/localpg"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// Stopped is what Down ended. All zero: nothing ran.
type Stopped struct {
	// Run is the pid of a `weir up`; Postgres and Embedding those of what a killed one had left.
	Run       int `json:"run,omitempty"`
	Postgres  int `json:"postgres,omitempty"`
	Embedding int `json:"embedding,omitempty"`
}

// Down stops the run of the state directory and waits until it has ended. Where none runs, it stops what
// a killed one left.
func Down(ctx context.Context, dir statedir.Dir, setupFile string, logger *slog.Logger) (Stopped, error) {
	used, err := dir.InUse()
	if err != nil {
		return Stopped{}, err
	}
	if used {
		pid, err := stopRun(ctx, dir)
		return Stopped{Run: pid}, err
	}
	return stopLeftovers(ctx, dir, setupFile, logger)
}

func stopRun(ctx context.Context, dir statedir.Dir) (int, error) {
	run, err := dir.ReadRun()
	if err != nil {
		return 0, fmt.Errorf("a run holds %s and has not recorded itself: %w", dir.Path(), err)
	}
	if err := syscall.Kill(run.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, fmt.Errorf("stop pid %d: %w", run.PID, err)
	}
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		if used, err := dir.InUse(); err != nil || !used {
			return run.PID, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("pid %d has not stopped: %w; see %s", run.PID, context.Cause(ctx), LogPath(dir))
		case <-tick.C:
		}
	}
}

func stopLeftovers(ctx context.Context, dir statedir.Dir, setupFile string, logger *slog.Logger) (Stopped, error) {
	var s Stopped
	if _, err := dir.ReadRun(); errors.Is(err, statedir.ErrNoRun) {
		return s, nil // the last run ended in order
	}
	lock, err := dir.Lock()
	if err != nil {
		return s, err
	}
	defer func() { _ = lock.Release() }() // closing a file that nothing was written to
	var problems []error
	s.Embedding, err = child.StopOrphan(ctx, embeddingRecord(dir), 5*time.Second)
	problems = append(problems, err)
	s.Postgres, err = stopPostgres(ctx, dir, setupFile, logger)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return s, err
	}
	return s, dir.RemoveRun()
}

func stopPostgres(ctx context.Context, dir statedir.Dir, setupFile string, logger *slog.Logger) (int, error) {
	setup, err := statedir.ReadSetup(setupFile)
	if errors.Is(err, statedir.ErrNoSetup) {
		return 0, nil // never installed here, so never started
	}
	if err != nil {
		return 0, err
	}
	cfg, err := postgresConfig(dir, setup, "", logger)
	if err != nil {
		return 0, err
	}
	return localpg.StopLeft(ctx, cfg)
}
