package chaos_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/testkit"
)

// process is a program that is started, killed and started again. It is used from one goroutine.
type process struct {
	t    *testing.T
	name string
	args []string
	env  []string
	log  string

	cmd  *exec.Cmd
	done chan error // the end of cmd

	mu     sync.Mutex
	wanted bool  // it is to live: an end of its own is a fault
	ended  error // the first end that nobody wanted
}

func newProcess(t *testing.T, dir, name string, env []string, args ...string) *process {
	p := &process{t: t, name: name, args: args, env: env, log: filepath.Join(dir, name+".log")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, tail(p.log, 6000))
		}
	})
	return p
}

// start starts the program.
func (p *process) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.log), "TMPDIR=" + filepath.Dir(p.log)}, p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.want(true)
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.name, err)
	}
	done := make(chan error, 1)
	p.cmd, p.done = cmd, done
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		if p.wanted && p.ended == nil {
			p.ended = fmt.Errorf("%s ended by itself: %v", p.name, err)
		}
		p.mu.Unlock()
		done <- err
	}()
}

func (p *process) want(alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = alive
}

// fault is the end that nobody wanted, nil when there was none.
func (p *process) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// kill ends the program at once, with whatever it has started.
func (p *process) kill() {
	p.t.Helper()
	p.want(false)
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.t.Fatalf("kill %s: %v", p.name, err)
	}
	<-p.done
	p.cmd = nil
}

// stop asks the program to end and reports how it did; killing it is the last resort.
func (p *process) stop() {
	if p.cmd == nil {
		return
	}
	p.want(false)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("stop %s: %v", p.name, err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("%s did not end cleanly: %v", p.name, err)
		}
		p.cmd = nil
	case <-time.After(testkit.Patience):
		p.t.Errorf("%s did not end within %s", p.name, testkit.Patience)
		p.kill()
	}
}

func tail(path string, most int) string {
	body, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(body[max(0, len(body)-most):]))
}
