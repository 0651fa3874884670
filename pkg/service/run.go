package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// ErrStopping is the cause of a context that ended because the process was told to stop, so that
// context.Cause tells stopping from failing.
var ErrStopping = errors.New("stopping")

// ErrGrace is returned by Run when the work did not end within the grace time, or a second signal came.
var ErrGrace = errors.New("stopped before work in hand was done")

// Run calls work with a context that SIGINT, SIGTERM or the end of ctx cancels, with the cause ErrStopping
// for a signal. Afterwards work has the grace time to return; then, or at a second signal, Run returns
// ErrGrace and leaves the work to the end of the process. A panic of work is returned as an error.
func Run(ctx context.Context, logger *slog.Logger, grace time.Duration, work func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	return run(ctx, logger, grace, signals, work)
}

func run(parent context.Context, logger *slog.Logger, grace time.Duration, signals <-chan os.Signal, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- guarded(ctx, work) }()

	select {
	case err := <-done:
		return clean(ctx, err)
	case s := <-signals:
		logger.Info("stopping", "signal", s.String(), "grace", grace)
		cancel(fmt.Errorf("%w: %s", ErrStopping, s))
	case <-parent.Done():
		cancel(context.Cause(parent))
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return clean(ctx, err)
	case s := <-signals:
		return fmt.Errorf("%w: second signal (%s)", ErrGrace, s)
	case <-timer.C:
		return fmt.Errorf("%w: grace time of %s is over", ErrGrace, grace)
	}
}

// clean makes nil of the error of work that ended because its context did.
func clean(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStopping)) {
		return nil
	}
	return err
}

func guarded(ctx context.Context, work func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work(ctx)
}
