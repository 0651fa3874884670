package worker

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// isolate gives the child its own process group, killed as a whole, and ties its life to ours.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// self is this program, also after its file was replaced by a newer one.
func self() (string, error) { return "/proc/self/exe", nil }

// limitSelf sets the limits of this process for a document of size bytes. It returns the names of those
// the system lacks. A process that reads another document sets them anew.
func limitSelf(l parse.Limits, size int64) ([]string, error) {
	signal.Ignore(syscall.SIGXFSZ) // a write to a file then is an error, not a death
	// Where memory runs out the kernel takes this process first, not the service. Some systems forbid it to say so.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) //nolint:gosec // no file is made
	space, err := addressSpace()
	if err != nil {
		return nil, err
	}
	const spare = 5 // the parent's clock comes first; this one is for a parent that died
	for _, r := range []struct {
		name  string
		which int
		value uint64
	}{
		{"address space", unix.RLIMIT_AS, space + uint64(l.Memory+size)},
		{"processor time", unix.RLIMIT_CPU, uint64((processorTime() + l.Wall).Seconds()) + spare},
		{"file size", unix.RLIMIT_FSIZE, 0},
		{"open files", unix.RLIMIT_NOFILE, 64},
		{"core file", unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(r.which, &now); err != nil {
			return nil, fmt.Errorf("look up limit on %s: %w", r.name, err)
		}
		now.Cur = min(r.value, now.Max)
		if err := unix.Setrlimit(r.which, &now); err != nil {
			return nil, fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	return nil, nil
}

// newPipe takes over a file descriptor of this process. It does not block, so that waiting is the poller's: a thread
// that waits in a call keeps the runtime's monitor looking, for a third of the time that a small text takes.
func newPipe(fd int, name string) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil //nolint:gosec // a descriptor is not negative
}

// processorTime is what this process has taken.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory this process held, in bytes; 0 when that is not known. Getrusage is no use: its
// record goes on from that of the parent.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	value, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// resident is the memory a process holds now, in bytes; 0 when it has ended.
func resident(pid int) int64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat))
	const residentField = 1
	if len(fields) <= residentField {
		return 0
	}
	pages, err := strconv.ParseInt(fields[residentField], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
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
func killed(state *os.ProcessState, l parse.Limits) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok || !status.Signaled():
		return ""
	case state.UserTime()+state.SystemTime() >= l.Wall:
		return "took more processor time than the limit of " + l.Wall.String()
	case status.Signal() == syscall.SIGKILL:
		return "was ended by the system, probably for its memory"
	}
	return ""
}

// owned reports that a file is this user's.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// lockFile waits for a file of that name to be its alone.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close() //nolint:errcheck // empty
		return nil, err
	}
	return func() { f.Close() }, nil //nolint:errcheck // closing unlocks
}
