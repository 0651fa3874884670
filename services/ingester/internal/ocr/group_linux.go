package ocr

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// group gives the command a process group of its own, which is killed as a whole.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// restrict limits a process that was just started. It may have ended already, so nothing is an error.
func restrict(pid int, cfg Config) {
	for which, value := range map[int]uint64{
		unix.RLIMIT_AS: uint64(cfg.MemoryBytes), unix.RLIMIT_CPU: uint64(cfg.Timeout.Seconds()) + 1, unix.RLIMIT_CORE: 0, //nolint:gosec // positive
	} {
		_ = unix.Prlimit(pid, which, &unix.Rlimit{Cur: value, Max: value}, nil)
	}
}
