package worker

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
)

// pipes makes both ends of one.
func pipes(t *testing.T) (r, w *pipe) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, err := newPipe(fds[0], "r")
	if err != nil {
		t.Fatal(err)
	}
	w, err = newPipe(fds[1], "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.file.Close() //nolint:errcheck // may be closed
		w.file.Close() //nolint:errcheck // may be closed
	})
	return r, w
}

// TestAPipeCarriesMoreThanItHolds has both ends wait for each other.
func TestAPipeCarriesMoreThanItHolds(t *testing.T) {
	t.Parallel()
	r, w := pipes(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	done := make(chan error, 1)
	go func() {
		n, err := w.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		done <- errors.Join(err, w.file.Close())
	}()
	got, err := io.ReadAll(r)
	if writeErr := <-done; err != nil || writeErr != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes, read: %v, write: %v", len(got), len(sent), err, writeErr)
	}
}

func TestAPipeWithoutAReaderIsAnError(t *testing.T) {
	t.Parallel()
	r, w := pipes(t)
	if err := r.file.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %d, %v, want EPIPE", n, err)
	}
}
