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

// Start runs the services until the test ends, and returns when all are ready. It fails the test when one does not get
// ready or does not end cleanly.
func (s *Services) Start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	failed := make(chan error, len(s.all))
	for _, r := range s.all {
		running.Go(func() {
			if err := r.Run(ctx); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	s.t.Cleanup(func() {
		cancel()
		running.Wait()
		close(failed)
		for err := range failed {
			s.t.Errorf("a service ended: %v", err)
		}
	})
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
