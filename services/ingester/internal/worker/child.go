package worker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// child is one process, as the parent sees it.
type child struct {
	cmd     *exec.Cmd
	in      *os.File
	out     *os.File
	writer  *bufio.Writer // to in
	reader  *bufio.Reader // of out
	stderr  *head
	docs    int           // it has read
	gone    chan struct{} // closed when the process has ended and waitErr is set
	waitErr error
	peak    atomic.Int64 // memory seen, in bytes
}

// job is one thing to do.
type job struct {
	request   request
	open      func(ctx context.Context) io.Reader
	fresh     bool // only a process that has read nothing will do
	light     bool // may be a small text: the process may be used again
	recognise func(ctx context.Context, image []byte) (string, error)
}

// result is what came of it.
type result struct {
	doc      parse.Document
	data     []byte
	missing  []string
	peak     int64
	killed   bool // the process died, or had to be ended
	used     bool // the process had read other documents before
	reusable bool
}

func (c *child) alive() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

// end lets the process end, and makes it when it does not.
func (c *child) end() {
	c.in.Close() //nolint:errcheck // it reads the end of its input
	const patience = time.Second
	select {
	case <-c.gone:
	case <-time.After(patience):
		c.kill()
		<-c.gone
	}
	c.out.Close() //nolint:errcheck // nobody reads it any more
}

func (c *child) kill() { _ = killGroup(c.cmd) } // it may have ended already

// do hands a document over and takes what comes back.
func (c *child) do(ctx context.Context, j job) (result, error) {
	t := &transfer{child: c, job: j, limits: j.request.Limits}
	t.result.used = c.docs > 0
	t.room = t.most()
	c.docs++
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	if err := t.hand(ctx); err != nil {
		cancel(err)
		c.kill()
		<-c.gone
		return t.result, fmt.Errorf("hand document to parse worker: %w", err)
	}
	w := c.watch(t.limits, j.request.Size, cancel)
	err := t.read(ctx, w)
	w.stop()
	if t.ended && err == nil {
		return t.result, t.failure()
	}
	if err != nil {
		cancel(err)
	}
	c.kill()
	<-c.gone
	t.result.killed = true
	t.result.doc = parse.Document{}
	return t.result, t.verdict(ctx, err)
}

// head keeps the first bytes written to it and drops the rest.
type head struct {
	mu   sync.Mutex
	most int
	buf  bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Write(p[:min(len(p), h.most-h.buf.Len())])
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}
