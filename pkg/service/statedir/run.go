package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// States of a run and of its parts.
const (
	StateStarting   = "starting"
	StateReady      = "ready" // of a part: it runs
	StateRestarting = "restarting"
	StateStopping   = "stopping"
	StateStopped    = "stopped"
	StateExternal   = "external" // of a part: somebody else's, found by its URL
	StateFailed     = "failed"
	StateKilled     = "killed" // never recorded: its process is gone without having stopped
	StateLeft       = "left"   // never recorded: of a part that still runs though its run was killed
)

// Run is the record of a running `weir up`, kept in run.json with mode 0600: it holds passwords. It is
// removed at a clean stop.
type Run struct {
	PID          int       `json:"pid"`
	StartedAt    time.Time `json:"startedAt"`
	State        string    `json:"state"`
	NATSURL      string    `json:"natsUrl,omitempty"`
	DatabaseURL  string    `json:"databaseUrl,omitempty"`
	EmbeddingURL string    `json:"embeddingUrl,omitempty"`
	HTTPAddr     string    `json:"httpAddr,omitempty"`
	Parts        []Part    `json:"parts"`
}

// Part is one thing that a run runs or uses.
type Part struct {
	Name     string    `json:"name"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	PID      int       `json:"pid,omitempty"` // of a process of its own
	Port     int       `json:"port,omitempty"`
	Restarts int       `json:"restarts,omitempty"`
	Note     string    `json:"note,omitempty"`
	Error    string    `json:"error,omitempty"` // the last one
}

// ErrNoRun is returned by ReadRun when no run is recorded.
var ErrNoRun = errors.New("no run of weir is recorded")

// ReadRun returns the record. It may be that of a run that was killed: InUse tells.
func (d Dir) ReadRun() (Run, error) {
	var r Run
	err := readJSON(d.Path("run.json"), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%w in %s", ErrNoRun, d.path)
	}
	return r, err
}

// WriteRun replaces the record.
func (d Dir) WriteRun(r Run) error { return WriteJSON(d.Path("run.json"), r) }

// RemoveRun removes the record, if there is one.
func (d Dir) RemoveRun() error {
	if err := os.Remove(d.Path("run.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of the run: %w", err)
	}
	return nil
}
