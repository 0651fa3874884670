package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Identify describes the running process pid, or returns ErrGone; a zombie counts as gone.
func Identify(pid int) (Identity, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, ErrGone
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	// The name in parentheses may hold anything; the fields after it are numbers.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, startTicks = 0, 19
	if len(fields) <= startTicks {
		return Identity{}, fmt.Errorf("identify process %d: unexpected /proc format", pid)
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return Identity{}, ErrGone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, ErrGone
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Identity{PID: pid, Started: strings.TrimSpace(string(boot)) + "/" + fields[startTicks], Exe: exe}, nil
}
