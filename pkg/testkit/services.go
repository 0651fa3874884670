package testkit

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Runner is a service: Run blocks until its context ends.
type Runner interface {
	Run(ctx context.Context) error
}

// Services are services that run in the test's process. Add them, each with Ready as what it calls when it is
// ready, then Start them.
type Services struct {
	t     testing.TB
	all   []Runner
	ready chan struct{}

	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error
	stop    sync.Once
}

// NewServices returns none yet.
func NewServices(t testing.TB) *Services { return &Services{t: t, ready: make(chan struct{}, 16)} }

// Ready is what a service calls once, when it serves.
func (s *Services) Ready() { s.ready <- struct{}{} }

// Add adds what a constructor returned; an error of its ends the test.
func (s *Services) Add(r Runner, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.all = append(s.all, r)
}

// Start runs the services until Stop or the end of the test, and returns when all are ready.
func (s *Services) Start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.failed = cancel, make(chan error, len(s.all))
	for _, r := range s.all {
		s.running.Go(func() {
			if err := r.Run(ctx); err != nil {
				s.failed <- err
				cancel()
			}
		})
	}
	s.t.Cleanup(s.Stop)
	for range s.all {
		select {
		case <-s.ready:
		case <-ctx.Done():
			s.t.Fatal("a service ended, and is reported below")
		case <-time.After(Patience):
			s.t.Fatal("the services do not get ready")
		}
	}
}

// Stop stops what Start started, and fails the test when a service does not end cleanly. A second call does nothing.
func (s *Services) Stop() {
	s.stop.Do(func() {
		s.cancel()
		s.running.Wait()
		close(s.failed)
		for err := range s.failed {
			s.t.Errorf("a service ended: %v", err)
		}
	})
}
