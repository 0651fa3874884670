package progress_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/cmd/weir/internal/progress"
)

func view(ready, pending int) progress.View {
	return progress.View{
		Total: ready + pending, Note: "3/s",
		Rows: []progress.Row{{Label: "Pending", Count: pending}, {Label: "Ready", Count: ready}, {Label: "Failed", Count: 0}},
	}
}

func TestTerminalRedrawsInPlace(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := progress.New(&out, true, nil)
	d.Show(view(0, 4))
	d.Show(view(0, 4)) // the same: nothing to draw
	first := out.String()
	if strings.Contains(first, "\x1b[") {
		t.Errorf("first drawing moves the cursor: %q", first)
	}
	if got := strings.Count(first, "\n"); got != 4 {
		t.Errorf("lines: got %d, want 4 (three states and the total): %q", got, first)
	}
	d.Line("a.md: %s", "Failed")
	if err := d.Close(view(3, 1)); err != nil {
		t.Fatal(err)
	}
	rest := out.String()[len(first):]
	wants := []string{"\x1b[4A\r\x1b[Ja.md: Failed\n", "Pending    ████████████████████████████████      4"}
	for _, want := range wants {
		if !strings.Contains(rest, want) {
			t.Errorf("got %q, want it to contain %q", rest, want)
		}
	}
	if end := "Ready      " + strings.Repeat("█", 24) + strings.Repeat("░", 8) + "      3\n"; !strings.Contains(rest, end) {
		t.Errorf("got %q, want it to contain %q", rest, end)
	}
}

func TestPlainPrintsNowAndThen(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Unix(0, 0)
	d := progress.New(&out, false, func() time.Time { return now })
	d.Show(view(0, 4)) // too early
	now = now.Add(6 * time.Second)
	d.Show(view(1, 3))
	d.Show(view(2, 2))             // too early again
	now = now.Add(6 * time.Second) // still: the pauses grow
	d.Show(view(2, 2))
	now = now.Add(6 * time.Second)
	d.Show(view(1, 3)) // nothing new
	d.Line("note")
	if err := d.Close(view(4, 0)); err != nil {
		t.Fatal(err)
	}
	want := "4 documents: Pending 3, Ready 1 (3/s)\nnote\n4 documents: Ready 4 (3/s)\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestCloseReturnsTheFirstWriteError(t *testing.T) {
	t.Parallel()
	d := progress.New(brokenPipe{}, true, nil)
	d.Show(view(0, 1))
	if err := d.Close(view(1, 0)); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("got %v, want the writer's error", err)
	}
}
