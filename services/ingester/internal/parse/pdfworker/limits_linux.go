package pdfworker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate gives the child its own process group, killed as a whole, and ties its life to ours.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// self is this program, also after its file was replaced by a newer one.
func self() (string, error) { return "/proc/self/exe", nil }

// limitSelf sets the limits of this process. It returns the names of those the system lacks.
func limitSelf(l Limits) ([]string, error) {
	space, err := addressSpace()
	if err != nil {
		return nil, err
	}
	cpu := uint64(l.Wall.Seconds()) + 5 // the parent's clock comes first; this one is for a parent that died
	for _, r := range []struct {
		name  string
		which int
		value uint64
	}{
		{"address space", unix.RLIMIT_AS, space + uint64(l.MemoryBytes)},
		{"processor time", unix.RLIMIT_CPU, cpu},
		{"file size", unix.RLIMIT_FSIZE, 0},
		{"open files", unix.RLIMIT_NOFILE, 64},
		{"core file", unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(r.which, &unix.Rlimit{Cur: r.value, Max: r.value}); err != nil {
			return nil, fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	return nil, nil
}

// addressSpace is what the process has mapped already, in bytes: the runtime reserves some, race and
// coverage builds far more.
func addressSpace() (uint64, error) {
	stat, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("read own size: %w", err)
	}
	first, _, _ := strings.Cut(string(stat), " ")
	pages, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read own size: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}

// killed tells what ended a process that did not end itself: "" when nothing did.
func killed(state *os.ProcessState, l Limits) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok || !status.Signaled():
		return ""
	case state.UserTime()+state.SystemTime() >= l.Wall:
		return "took more processor time than allowed"
	case status.Signal() == syscall.SIGKILL:
		return "was ended by the system, probably for its memory"
	}
	return ""
}
