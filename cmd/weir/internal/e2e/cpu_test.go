package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Processor times tell on a busy machine what wall clocks cannot. clockTick is the unit of /proc, which
// Linux fixes at a hundredth of a second.
const clockTick = time.Second / 100

// ownCPU is the processor time of this process: services, NATS server and fake embedding server.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// postgresCPU is the processor time of the server and all its processes, ended ones included; 0 where
// it cannot be read.
func (s *system) postgresCPU() time.Duration {
	backend := s.count("SELECT pg_backend_pid()")
	fields := procStat(backend)
	if fields == nil {
		return 0
	}
	postmaster, _ := strconv.Atoi(fields[1]) //nolint:errcheck // 0 finds no process
	total := cpuOf(procStat(postmaster), true)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if err != nil {
		return 0
	}
	for _, pid := range strings.Fields(string(children)) {
		child, _ := strconv.Atoi(pid) //nolint:errcheck // as above
		total += cpuOf(procStat(child), false)
	}
	return total
}

// procStat returns the fields of /proc/PID/stat behind the command's name: state, parent and so on.
func procStat(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.Fields(rest)
}

func cpuOf(fields []string, ended bool) time.Duration {
	if len(fields) < 15 {
		return 0
	}
	at := []int{11, 12}
	if ended {
		at = append(at, 13, 14)
	}
	var ticks int64
	for _, i := range at {
		n, _ := strconv.ParseInt(fields[i], 10, 64) //nolint:errcheck // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
