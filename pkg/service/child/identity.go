package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrGone is returned by Identify when there is no such process.
var ErrGone = errors.New("no such process")

// Identity tells a process from a later one with the same pid.
type Identity struct {
	PID int `json:"pid"`
	// Started is the start time in the words of the operating system, boot included.
	Started string `json:"started"`
	// Exe is the path of the program.
	Exe string `json:"exe"`
}

// ReadIdentity reads a record; os.ErrNotExist when there is none.
func ReadIdentity(path string) (Identity, error) {
	var id Identity
	body, err := os.ReadFile(path)
	if err != nil {
		return id, fmt.Errorf("read process record: %w", err)
	}
	if err := json.Unmarshal(body, &id); err != nil {
		return id, fmt.Errorf("read process record %s: %w", path, err)
	}
	return id, nil
}

// Alive tells whether that very process still runs.
func (id Identity) Alive() bool {
	now, err := Identify(id.PID)
	return err == nil && now == id
}

func (id Identity) end(ctx context.Context, grace time.Duration) error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := id.signal(s); err != nil {
			return err
		}
		if id.gone(ctx, grace) {
			return nil
		}
	}
	return errors.New("it does not end")
}

// signal reaches the process group where the process leads one, as our children do.
func (id Identity) signal(s syscall.Signal) error {
	target := id.PID
	if group, err := syscall.Getpgid(id.PID); err == nil && group == id.PID {
		target = -id.PID
	}
	if err := syscall.Kill(target, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s: %w", s, err)
	}
	return nil
}

func (id Identity) gone(ctx context.Context, within time.Duration) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for id.Alive() {
		select {
		case <-ctx.Done():
			return false
		case <-deadline.C:
			return false
		case <-tick.C:
		}
	}
	return true
}
