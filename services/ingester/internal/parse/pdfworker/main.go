package pdfworker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/weir-project/weir/pkg/messages"
)

// refused starts the report of a worker that could not begin; that is not the document's fault.
const refused = "worker cannot start: "

// Main takes the process over when it was started as a worker, and never returns then. Otherwise it
// does nothing.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != Command {
		return
	}
	if err := work(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, refused+err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func work(args []string, in io.Reader, out io.Writer) error {
	var limits Limits
	if len(args) != 1 {
		return fmt.Errorf("want one argument, got %d", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &limits); err != nil {
		return fmt.Errorf("decode limits: %w", err)
	}
	const stack = 64 << 20 // an endless recursion then ends in under a second
	debug.SetMaxStack(stack)
	debug.SetMemoryLimit(limits.MemoryBytes / 10 * 7)
	missing, err := limitSelf(limits)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(in, limits.FileBytes+1))
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	e := &emitter{out: bufio.NewWriter(out), limits: limits}
	return e.run(data, missing)
}

// emitter writes frames; every page is flushed at once, so that the parent sees progress.
type emitter struct {
	out    *bufio.Writer
	limits Limits
	text   int
}

func (e *emitter) run(data []byte, missing []string) error {
	if int64(len(data)) > e.limits.FileBytes {
		return e.fail(messages.Errorf(messages.CodeParseLimit, "the file is over the limit of %d bytes", e.limits.FileBytes))
	}
	doc, err := open(data)
	if err != nil {
		return e.fail(err)
	}
	if err := e.frame(frame{Start: &start{Title: doc.title(), Missing: missing}}); err != nil {
		return err
	}
	pages, err := doc.pages(e.limits.Pages)
	if err != nil {
		return e.fail(err)
	}
	for i, p := range pages {
		page := p.read(i + 1)
		for _, b := range page.Blocks {
			for _, l := range b.Lines {
				e.text += len(l.Text)
			}
		}
		if e.text > e.limits.TextBytes {
			return e.fail(messages.Errorf(messages.CodeParseLimit, "extracted text is over the limit of %d bytes", e.limits.TextBytes))
		}
		if err := e.frame(frame{Page: &page}); err != nil {
			return err
		}
	}
	return e.frame(frame{End: true})
}

func (e *emitter) fail(err error) error {
	document, ok := messages.AsError(err)
	if !ok {
		return err
	}
	return e.frame(frame{Fail: document})
}

func (e *emitter) frame(f frame) error {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if _, err := e.out.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return e.out.Flush()
}
