//go:build !linux

package worker

import (
	"os"
	"os/exec"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// isolate leaves the child in our group: killing it alone is what every system can do.
func isolate(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// self is this program.
func self() (string, error) { return os.Executable() }

// limitSelf has nothing to set here; the parent's clocks and the runtime's own limits remain.
func limitSelf(parse.Limits, int64) ([]string, error) {
	return []string{"address space", "processor time", "process group"}, nil
}

// killed cannot tell here.
func killed(*os.ProcessState, parse.Limits) string { return "" }

// newPipe gives a file descriptor of this process.
func newPipe(fd int, name string) (*os.File, error) { return os.NewFile(uintptr(fd), name), nil } //nolint:gosec // a descriptor is not negative

// peak is not known here.
func peak() int64 { return 0 }

func resident(int) int64 { return 0 }

// owned cannot be told here in one way.
func owned(os.FileInfo) bool { return true }

// lockFile locks nothing here: the cache is filled more than once then.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
