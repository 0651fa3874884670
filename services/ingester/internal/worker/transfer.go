package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// transfer is one document on its way.
type transfer struct {
	child  *child
	job    job
	limits parse.Limits
	result result
	texts  []string
	bytes  int   // of texts
	room   int64 // memory that what comes may still take
	fail   *messages.Error
	ended  bool
}

// errUnread says that the content could not be got; the process is not to blame.
var errUnread = errors.New("read content")

// hand sends request and document. A process that dies meanwhile is judged by its end.
func (t *transfer) hand(ctx context.Context) error {
	out := t.child.writer
	if writeMessage(out, &t.job.request) != nil {
		return nil
	}
	if t.job.open == nil {
		out.Flush() //nolint:errcheck // as below
		return nil
	}
	r := &failing{r: t.job.open(ctx)}
	n, _ := out.ReadFrom(io.LimitReader(r, t.job.request.Size))
	out.Flush() //nolint:errcheck // a writer's error is the child's end
	switch {
	case r.err != nil:
		return fmt.Errorf("%w: %w", errUnread, r.err)
	case n < t.job.request.Size && t.child.alive() && r.ended:
		return fmt.Errorf("%w: it ends after %d of %d bytes", errUnread, n, t.job.request.Size)
	}
	return nil
}

// failing remembers a reader's error, so that it is told from the writer's.
type failing struct {
	r     io.Reader
	err   error
	ended bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		f.ended = true
	} else if err != nil {
		f.err = err
	}
	return n, err
}

// Bounds of what a child may send, so that a child gone wrong cannot fill our memory.
const (
	frameBytes = 64 << 20 // of one frame: the image of a page is the largest
	perByte    = 24       // blocks and paths weigh more than the text
	perPage    = 1 << 10
	baseBytes  = 16 << 20
)

// most is how much memory what a child sends may take.
func (t *transfer) most() int64 {
	most := int64(t.limits.TextBytes)*perByte + int64(t.limits.Pages)*perPage + baseBytes
	if t.job.request.Op == opUnlock {
		most += 4 * t.job.request.Size
	}
	return most
}

func (t *transfer) read(ctx context.Context, w *watch) error {
	for !t.ended {
		var f frame
		err := readMessage(t.child.reader, &f, frameBytes, &t.room)
		switch {
		case errors.Is(err, errTooLong):
			return messages.Errorf(messages.CodeParseLimit, "a part of the document is over the limit of %d bytes", frameBytes)
		case errors.Is(err, errNoRoom):
			return messages.Errorf(messages.CodeParseLimit, "extracted text and structure are over the limit of %d bytes", t.most())
		case errors.Is(err, errBroken):
			return brokenReader()
		case err != nil:
			return nil //nolint:nilerr // cut short: judged by how the child ended
		}
		w.progress()
		if err := t.take(ctx, &f, w); err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) take(ctx context.Context, f *frame, w *watch) error {
	switch f.Kind {
	case frameText:
		if t.bytes += len(f.Text); t.bytes > t.limits.TextBytes {
			return messages.Errorf(messages.CodeParseLimit, "extracted text is over the limit of %d bytes", t.limits.TextBytes)
		}
		t.texts = append(t.texts, f.Text)
	case frameBlocks:
		if d := &t.result.doc; d.Blocks == nil {
			d.Blocks = f.Blocks // the only ones, as a rule
		} else {
			d.Blocks = append(d.Blocks, f.Blocks...)
		}
	case frameImage:
		if t.job.recognise == nil {
			return brokenReader()
		}
		w.pause()
		err := t.recognise(ctx, bytes.Clone(f.Data))
		w.progress()
		return err
	case frameData:
		if t.room -= int64(len(f.Data)); t.room < 0 {
			return messages.Errorf(messages.CodeParseLimit, "the document without its protection is over the limit of %d bytes", t.most())
		}
		t.result.data = append(t.result.data, f.Data...)
	case frameFail:
		const most = 2 << 10 // more than any reader says
		if e := &f.Fail; len(e.Code)+len(e.Message)+len(e.Field)+len(e.Stage) > most {
			return brokenReader()
		}
		t.fail = &f.Fail
	case frameEnd:
		return t.close(&f.End)
	}
	return nil
}

// recognise answers a child that wants an image read.
func (t *transfer) recognise(ctx context.Context, image []byte) error {
	var a answer
	text, err := t.job.recognise(ctx, image)
	document, ok := messages.AsError(err)
	switch {
	case ok:
		a.Failed, a.Fail = true, *document
	case err != nil:
		return fmt.Errorf("recognise text: %w", err)
	default:
		a.Text = text
	}
	if writeMessage(t.child.writer, &a) == nil {
		t.child.writer.Flush() //nolint:errcheck // it died: judged by its end
	}
	return nil
}

func (t *transfer) close(e *end) error {
	d := &t.result.doc
	d.Title, d.Warnings, d.Pages, d.Format, d.Charset, d.Engine = e.Title, e.Warnings, e.Pages, e.Format, e.Charset, e.Engine
	d.Text = strings.Join(t.texts, "")
	t.result.missing, t.result.peak, t.result.reusable = e.Missing, e.PeakBytes, e.Reusable && t.job.light && d.Light()
	if !sound(d) {
		return brokenReader()
	}
	t.ended = true
	return nil
}

// sound reports that blocks partition the text, at borders of characters, which chunking builds on.
func sound(d *parse.Document) bool {
	at := 0
	for i := range d.Blocks {
		b := &d.Blocks[i]
		if b.Start != at || b.End < at || !border(d.Text, b.End) {
			return false
		}
		if b.HeaderEnd != 0 && (b.HeaderEnd < b.Start || b.HeaderEnd > b.End || !border(d.Text, b.HeaderEnd)) {
			return false
		}
		at = b.End
	}
	return at == len(d.Text)
}

// border reports that a character of text, or its end, is at an offset that is not negative.
func border(text string, at int) bool {
	return at == len(text) || at < len(text) && utf8.RuneStart(text[at])
}

func brokenReader() error {
	return messages.Errorf(messages.CodeDamagedDocument, "the document broke its reader")
}

func (t *transfer) failure() error {
	if t.fail != nil {
		t.result.doc = parse.Document{}
		return t.fail
	}
	return nil
}

// verdict turns the end of a child that did not end as it should into an error: its own word, ours, or
// what killed it.
func (t *transfer) verdict(ctx context.Context, readErr error) error {
	switch cause := context.Cause(ctx); {
	case t.fail != nil:
		return t.fail
	case readErr != nil:
		return readErr
	case cause != nil:
		if document, ok := messages.AsError(cause); ok {
			return document
		}
		return fmt.Errorf("read document: %w", cause)
	}
	return t.death()
}

// death explains a child that died by itself, from the first words of the runtime's report.
func (t *transfer) death() error {
	said := t.child.stderr.String()
	switch {
	case strings.Contains(said, "stack exceeds") || strings.Contains(said, "stack overflow"):
		return messages.Errorf(messages.CodeParseLimit, "the document nests more deeply than the reader's stack limit allows")
	case strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory") ||
		strings.Contains(said, "len out of range") || strings.Contains(said, "address space collisions"): // of race builds
		return messages.Errorf(messages.CodeParseLimit, "reading the document takes more than the limit of %d MiB of memory", t.limits.Memory>>20)
	case strings.HasPrefix(said, refused):
		return fmt.Errorf("parse worker: %s", strings.TrimSpace(said))
	}
	if reason := killed(t.child.cmd.ProcessState, t.limits); reason != "" {
		return messages.Errorf(messages.CodeParseLimit, "reading the document %s", reason)
	}
	return brokenReader()
}

func bytesInput(data []byte) Input {
	return Input{Open: func(context.Context) io.Reader { return bytes.NewReader(data) }, Size: int64(len(data))}
}
