package worker

import (
	"context"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// watch ends a document's reading when a clock runs out or the process grows too large.
type watch struct {
	child      *child
	wall       *time.Timer
	stall      *time.Timer
	stallAfter time.Duration
	done       chan struct{}
	looked     sync.WaitGroup
}

// watch starts the clocks.
func (c *child) watch(l parse.Limits, size int64, cancel context.CancelCauseFunc) *watch {
	late := func(after time.Duration, format string) *time.Timer {
		return time.AfterFunc(after, func() { cancel(messages.Errorf(messages.CodeParseLimit, format, after)) })
	}
	w := &watch{
		child: c, stallAfter: l.Stall, done: make(chan struct{}),
		wall:  late(l.Wall, "reading the document took longer than the limit of %s"),
		stall: late(l.Stall, "reading the document made no progress for the limit of %s"),
	}
	w.looked.Add(1)
	go w.look(l.Memory+size, cancel)
	return w
}

// look compares the memory a process holds with its limit. The limit on its address space comes first
// where the system has one; this one also says how much it was.
func (w *watch) look(most int64, cancel context.CancelCauseFunc) {
	defer w.looked.Done()
	const often = 100 * time.Millisecond
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		held := resident(w.child.cmd.Process.Pid)
		w.child.peak.Store(max(held, w.child.peak.Load()))
		if held > most {
			cancel(messages.Errorf(messages.CodeParseLimit, "reading the document takes more than the limit of %d MiB of memory", most>>20))
			return
		}
	}
}

func (w *watch) progress() { w.stall.Reset(w.stallAfter) }

// pause stops the progress clock while the child waits for us.
func (w *watch) pause() { w.stall.Stop() }

func (w *watch) stop() {
	w.wall.Stop()
	w.stall.Stop()
	close(w.done)
	w.looked.Wait()
}
