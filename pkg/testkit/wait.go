package testkit

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come. It is the end of a hang, not a bar: the machine may be
// busy, so a test that means "soon" compares with something else than time.
const Patience = 2 * time.Minute

// Eventually calls check until it returns nil, and fails the test with the last error when that has
// not happened within Patience. The pause between calls grows from 1 to 50 ms.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	EventuallyWithin(t, Patience, check)
}

// EventuallyWithin is Eventually for work that may take longer, such as a run at full size.
func EventuallyWithin(t testing.TB, deadline time.Duration, check func() error) {
	t.Helper()
	until := time.Now().Add(deadline)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("not so after %s: %v", deadline, err)
		}
		time.Sleep(pause)
	}
}

// Logger writes to the log of the test, debug level included. Lines that come after the test's end
// (a goroutine that outlives it) are dropped rather than panicking.
func Logger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct {
	mu   sync.Mutex
	t    testing.TB
	over bool
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.t.Log(strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}

func (w *testWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}
