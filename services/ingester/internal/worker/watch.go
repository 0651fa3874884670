package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// watch ends a document's reading when a clock runs out or the process grows too large. It looks after a
// tenth of a second for the first time, or when a clock runs out before: most documents are read by then.
type watch struct {
	child   *child
	limits  parse.Limits
	memory  int64 // most that the process may hold, in bytes
	cancel  context.CancelCauseFunc
	began   time.Time
	moved   atomic.Int64 // the last progress, since began
	paused  atomic.Bool  // no progress is due
	mu      sync.Mutex   // held while it looks
	timer   *time.Timer
	stopped bool
}

// watch starts the clocks.
func (c *child) watch(l parse.Limits, size int64, cancel context.CancelCauseFunc) *watch {
	w := &watch{child: c, limits: l, memory: l.Memory + size, cancel: cancel, began: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.next(0), w.look)
	return w
}

// next is how long nothing need be looked at.
func (w *watch) next(now time.Duration) time.Duration {
	const often = 100 * time.Millisecond
	after := min(often, w.limits.Wall-now)
	if !w.paused.Load() {
		after = min(after, w.limits.Stall-w.still(now))
	}
	return max(after, time.Millisecond)
}

// still is how long nothing moved.
func (w *watch) still(now time.Duration) time.Duration { return now - time.Duration(w.moved.Load()) }

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	now := time.Since(w.began)
	if err := w.verdict(now); err != nil {
		w.cancel(err)
		return
	}
	w.timer.Reset(w.next(now))
}

// verdict is why reading must end. The limit on the address space of a process comes before the one on
// what it holds, where the system has it; this one also says how much it was.
func (w *watch) verdict(now time.Duration) error {
	held := resident(w.child.cmd.Process.Pid)
	w.child.peak.Store(max(held, w.child.peak.Load()))
	switch {
	case now >= w.limits.Wall:
		return messages.Errorf(messages.CodeParseLimit, "reading the document took longer than the limit of %s", w.limits.Wall)
	case !w.paused.Load() && w.still(now) >= w.limits.Stall:
		return messages.Errorf(messages.CodeParseLimit, "reading the document made no progress for the limit of %s", w.limits.Stall)
	case held > w.memory:
		return messages.Errorf(messages.CodeParseLimit, "reading the document takes more than the limit of %d MiB of memory", w.memory>>20)
	}
	return nil
}

func (w *watch) progress() {
	w.moved.Store(int64(time.Since(w.began)))
	w.paused.Store(false)
}

// pause stops the progress clock while the child waits for us.
func (w *watch) pause() { w.paused.Store(true) }

// stop returns when nothing looks any more.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}
