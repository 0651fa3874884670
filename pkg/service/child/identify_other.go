//go:build !linux

package child

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Identify describes the running process pid, or returns ErrGone.
func Identify(pid int) (Identity, error) {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return Identity{}, ErrGone
	}
	started, err := ps(pid, "lstart=")
	if err != nil {
		return Identity{}, err
	}
	exe, err := ps(pid, "comm=")
	if err != nil {
		return Identity{}, err
	}
	if started == "" || exe == "" || strings.HasPrefix(exe, "<defunct>") {
		return Identity{}, ErrGone
	}
	return Identity{PID: pid, Started: started, Exe: exe}, nil
}

// ps returns one field of a process, "" when there is none: ps then exits with 1.
func ps(pid int, field string) (string, error) {
	out, err := exec.Command("ps", "-o", field, "-p", strconv.Itoa(pid)).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("identify process %d: %w", pid, err)
	}
	return strings.TrimSpace(string(out)), nil
}
