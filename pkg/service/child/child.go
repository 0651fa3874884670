// Package child runs a program as a child process in a process group of its own, and recognises
// afterwards a child that outlived the process which started it.
package child

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

// Spec describes a child.
type Spec struct {
	Name string
	Path string
	Args []string
	// Env is the whole environment of the child; nil: an empty one.
	Env []string
	Dir string
	// LogPath is a file that stdout and stderr are appended to. It is opened by us and written by the
	// child itself, so the child does not depend on our life.
	LogPath string
	// RecordPath is the file with the child's identity; empty: none is kept.
	RecordPath string
	// Grace is the time between SIGTERM and SIGKILL; 0: 5 s.
	Grace time.Duration
}

// Process is a started child. Its methods are safe for concurrent use.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	log  int64 // size of the log file at the start
	done chan struct{}
	err  error // valid once done is closed
}

// Start starts the child. The caller calls Stop, or waits for Done.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer log.Close()
	p := &Process{spec: spec, done: make(chan struct{})}
	if info, err := log.Stat(); err == nil {
		p.log = info.Size()
	}
	p.cmd = exec.Command(spec.Path, spec.Args...)
	p.cmd.Env, p.cmd.Dir = append([]string{}, spec.Env...), spec.Dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	go p.wait()
	if err := p.record(); err != nil {
		p.Stop()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

func (p *Process) record() error {
	if p.spec.RecordPath == "" {
		return nil
	}
	id, err := Identify(p.PID())
	if errors.Is(err, ErrGone) {
		return nil // it ended already: Done tells
	}
	if err != nil {
		return err
	}
	return statedir.WriteJSON(p.spec.RecordPath, id)
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // ProcessState says the same
	said := "it wrote nothing to " + p.spec.LogPath
	if tail := p.tail(); tail != "" {
		said = tail
	}
	p.err = fmt.Errorf("%s ended (%s): %s", p.spec.Name, p.cmd.ProcessState, said)
	close(p.done)
}

// tail is the end of what this child wrote to its log.
func (p *Process) tail() string {
	const most = 600
	f, err := os.Open(p.spec.LogPath)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(p.log, info.Size()-most)
	buf := make([]byte, max(0, info.Size()-from))
	n, _ := f.ReadAt(buf, from) // what was read is shown, an error shows nothing
	return strings.TrimSpace(strings.ToValidUTF8(string(buf[:n]), "?"))
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended, whoever asked for it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells how the child ended, with the end of its log. Only after Done.
func (p *Process) Err() error { return p.err }

// Stop ends the child and its process group, with SIGTERM and after the grace time SIGKILL, and waits.
// Harmless when it has ended already.
func (p *Process) Stop() {
	grace := p.spec.Grace
	if grace == 0 {
		grace = 5 * time.Second
	}
	select {
	case <-p.done:
		return // the group id may already be somebody else's
	default:
	}
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	if p.spec.RecordPath != "" {
		_ = os.Remove(p.spec.RecordPath) // a record of a dead process is recognised as such
	}
}

func (p *Process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.PID(), s) // ESRCH: it just ended
}

// StopOrphan ends the process recorded at path if it still runs, that is if pid, start time and program
// are the recorded ones, and returns its pid, or 0 when there was none. A pid that belongs to another
// process now is left alone.
func StopOrphan(ctx context.Context, path string, grace time.Duration) (int, error) {
	id, err := ReadIdentity(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	stopped := 0
	if id.Alive() {
		stopped = id.PID
		if err := id.end(ctx, grace); err != nil {
			return 0, fmt.Errorf("stop orphan %d (%s): %w", id.PID, id.Exe, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return stopped, fmt.Errorf("remove record of orphan: %w", err)
	}
	return stopped, nil
}
