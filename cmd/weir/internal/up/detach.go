package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/weir-project/weir/pkg/service/statedir"
)

// logName is the log of a detached run, in the state directory.
const logName = "weir.log"

// LogPath is where a detached run writes its log.
func LogPath(dir statedir.Dir) string { return dir.Path("log", logName) }

// Detach starts this program again with args as a process of its own session, and returns its record once
// everything in it runs. When it ends before that, or ctx does, the error holds the end of its log.
func Detach(ctx context.Context, dir statedir.Dir, args []string) (statedir.Run, error) {
	if err := dir.Create(); err != nil {
		return statedir.Run{}, err
	}
	if used, err := dir.InUse(); err != nil {
		return statedir.Run{}, err
	} else if used {
		return statedir.Run{}, running(dir)
	}
	cmd, from, err := startDetached(dir, args)
	if err != nil {
		return statedir.Run{}, fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if run, err := dir.ReadRun(); err == nil && run.PID == cmd.Process.Pid && run.State == statedir.StateReady {
			return run, nil
		}
		select {
		case err := <-ended:
			return statedir.Run{}, fmt.Errorf("it ended while starting (%w); %s says:\n%s", exitError(err), LogPath(dir), tailOf(LogPath(dir), from))
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
			return statedir.Run{}, fmt.Errorf("not ready in time (%w) and told to stop; %s says:\n%s",
				context.Cause(ctx), LogPath(dir), tailOf(LogPath(dir), from))
		case <-tick.C:
		}
	}
}

func exitError(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// startDetached also returns the length of the log before.
func startDetached(dir statedir.Dir, args []string) (*exec.Cmd, int64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	log, err := os.OpenFile(LogPath(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, info.Size(), cmd.Start()
}

// tailOf returns what was written to a file from an offset on, at most its last 2,000 bytes.
func tailOf(path string, from int64) string {
	body, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	from = max(min(from, int64(len(body))), int64(len(body))-most)
	return strings.TrimSpace(string(body[from:]))
}
