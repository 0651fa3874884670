package pdfworker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Extract reads a PDF in a child process of program (empty: this one). Errors of the file are
// *messages.Error. Safe for concurrent use.
func Extract(ctx context.Context, program string, data []byte, limits Limits) (Document, error) {
	if program == "" {
		var err error
		if program, err = self(); err != nil {
			return Document{}, fmt.Errorf("find own program: %w", err)
		}
	}
	arg, err := json.Marshal(limits)
	if err != nil {
		return Document{}, fmt.Errorf("encode limits: %w", err)
	}
	// The parent-death signal follows the thread that forked, so it must outlive the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	c := &child{limits: limits, stderr: &head{most: 4096}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.cmd = exec.CommandContext(ctx, program, Command, string(arg))
	c.cmd.Env = []string{} // nil would inherit
	c.cmd.Dir = os.TempDir()
	c.cmd.Stdin = bytes.NewReader(data)
	c.cmd.Stderr = c.stderr
	c.cmd.WaitDelay = 5 * time.Second
	isolate(c.cmd)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return Document{}, fmt.Errorf("open pipe of PDF worker: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return Document{}, fmt.Errorf("start PDF worker: %w", err)
	}
	watch := newWatch(limits, cancel)
	readErr := c.read(out, watch)
	if readErr != nil {
		cancel(readErr)
	}
	waitErr := c.cmd.Wait()
	watch.stop()
	return c.doc, c.verdict(ctx, readErr, waitErr)
}

type child struct {
	cmd    *exec.Cmd
	limits Limits
	stderr *head
	doc    Document
	fail   *messages.Error
	ended  bool
}

// read takes frames until the child closes its output.
func (c *child) read(out io.Reader, w *watch) error {
	const perByte, most = 8, 1 << 20 // JSON escapes, positions and page frames weigh more than the text
	total := int64(c.limits.TextBytes)*perByte + int64(c.limits.Pages)*1024 + most
	lines := bufio.NewScanner(io.LimitReader(out, total))
	lines.Buffer(nil, c.limits.TextBytes*perByte+most)
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil // cut short: judged by how the child ended
		}
		w.progress()
		switch {
		case f.Start != nil:
			c.doc.Title, c.doc.Missing = f.Start.Title, f.Start.Missing
		case f.Page != nil:
			c.doc.Pages = append(c.doc.Pages, *f.Page)
		case f.Fail != nil:
			c.fail = f.Fail
		case f.End:
			c.ended = true
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return messages.Errorf(messages.CodeParseLimit, "text of one PDF page is over the limit")
	}
	return nil // no end frame: judged by how the child ended
}

// verdict turns the child's end into an error: its own word, ours, or what killed it.
func (c *child) verdict(ctx context.Context, readErr, waitErr error) error {
	switch cause := context.Cause(ctx); {
	case c.fail != nil:
		return c.fail
	case readErr != nil:
		return readErr
	case c.ended && waitErr == nil:
		return nil
	case cause != nil:
		var document *messages.Error
		if errors.As(cause, &document) {
			return document
		}
		return fmt.Errorf("read PDF: %w", cause)
	}
	return c.death()
}

// death explains a child that died by itself, from the first words of the runtime's report.
func (c *child) death() error {
	said := c.stderr.String()
	switch {
	case strings.Contains(said, "stack exceeds") || strings.Contains(said, "stack overflow"):
		return messages.Errorf(messages.CodeParseLimit, "the PDF nests more deeply than the reader's stack allows")
	case strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory") ||
		strings.Contains(said, "len out of range") || strings.Contains(said, "address space collisions"): // of race builds
		return messages.Errorf(messages.CodeParseLimit, "reading the PDF needed more than %d MiB of memory", c.limits.MemoryBytes>>20)
	case strings.HasPrefix(said, refused):
		return fmt.Errorf("PDF worker: %s", strings.TrimSpace(said))
	}
	if reason := killed(c.cmd.ProcessState, c.limits); reason != "" {
		return messages.Errorf(messages.CodeParseLimit, "reading the PDF %s", reason)
	}
	return messages.Errorf(messages.CodeDamagedDocument, "the PDF broke its reader")
}

// watch ends the child when a clock runs out.
type watch struct {
	wall, stall *time.Timer
	stallAfter  time.Duration
}

func newWatch(l Limits, cancel context.CancelCauseFunc) *watch {
	late := func(after time.Duration, what string) *time.Timer {
		return time.AfterFunc(after, func() {
			cancel(messages.Errorf(messages.CodeParseLimit, "reading the PDF took longer than %s%s", after, what))
		})
	}
	return &watch{wall: late(l.Wall, ""), stall: late(l.Stall, " for one page"), stallAfter: l.Stall}
}

func (w *watch) progress() { w.stall.Reset(w.stallAfter) }

func (w *watch) stop() {
	w.wall.Stop()
	w.stall.Stop()
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
