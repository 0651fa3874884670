package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// process is weir as a process whose standard input stays open.
type process struct {
	*exec.Cmd
	in     io.Writer
	errOut *bufio.Reader
}

func (d *desk) process(args ...string) *process {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), testkit.Patience) // killed when it hangs
	d.t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, self, args...)}
	p.Env = append(os.Environ(), actAsWeir+"=1")
	for k, v := range d.env {
		p.Env = append(p.Env, k+"="+v)
	}
	in, err := p.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	errOut, err := p.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		d.t.Fatal(err)
	}
	p.in, p.errOut = in, bufio.NewReader(errOut)
	return p
}

// interrupted gives the exit code after an interrupt, -1 when it had to be killed.
func (p *process) interrupted() int {
	_ = p.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, p.errOut)
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func TestAnInterruptEndsWhatWaitsForInput(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books")
	asking := d.process("kb", "delete", "books")
	if question, err := asking.errOut.ReadString('['); err != nil || !strings.Contains(question, "Delete knowledge base books") {
		t.Fatalf("got %q, %v, want the question", question, err)
	}
	if code := asking.interrupted(); code != ExitInterrupted {
		t.Errorf("a question: got %d, want %d", code, ExitInterrupted)
	}
	reading := d.process("publish", "--kb", "books", "--jsonl", "-")
	if _, err := io.WriteString(reading.in, `{"docId":"a","text":"alpha"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if _, _, found := d.fake.Document("books", "", "a"); !found {
			return errors.New("the first line is not published")
		}
		return nil
	})
	if code := reading.interrupted(); code != ExitInterrupted {
		t.Errorf("lines: got %d, want %d", code, ExitInterrupted)
	}
}

func TestInputIsReadAsItIs(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("0123456789abcdef", 10_000)
	got, err := io.ReadAll(newInput(t.Context(), iotest.HalfReader(strings.NewReader(want))))
	if err != nil || string(got) != want {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
	broken := errors.New("broken")
	in := newInput(t.Context(), iotest.DataErrReader(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken))))
	if got, err := io.ReadAll(iotest.OneByteReader(in)); string(got) != "ab" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v, want ab and the error", got, err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, broken) {
		t.Errorf("again: got %v, want the error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newInput(ctx, iotest.ErrReader(messages.Errorf(messages.CodeInternal, "x"))).Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: got %v, want canceled", err)
	}
}
