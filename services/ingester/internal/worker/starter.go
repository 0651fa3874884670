package worker

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// starter starts processes, all from one thread: the signal that ends a child with its parent follows
// the thread that forked it, which must outlive the child.
type starter struct {
	program string
	once    sync.Once
	stop    sync.Once
	asked   chan chan started
	done    chan struct{}
	ended   chan struct{}
}

type started struct {
	child *child
	err   error
}

func newStarter(program string) *starter {
	return &starter{program: program, asked: make(chan chan started), done: make(chan struct{}), ended: make(chan struct{})}
}

func (s *starter) start(ctx context.Context) (*child, error) {
	s.once.Do(func() { go s.run() })
	reply := make(chan started, 1)
	select {
	case s.asked <- reply:
		got := <-reply // a fork takes no time worth a context
		return got.child, got.err
	case <-s.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run serves until close, on a thread that ends with it.
func (s *starter) run() {
	runtime.LockOSThread()
	defer close(s.ended)
	for {
		select {
		case reply := <-s.asked:
			c, err := fork(s.program)
			reply <- started{c, err}
		case <-s.done:
			return
		}
	}
}

func (s *starter) close() {
	s.stop.Do(func() { close(s.done) })
	s.once.Do(func() { close(s.ended) })
	<-s.ended
}

// fork starts one process.
func fork(program string) (*child, error) {
	if program == "" {
		var err error
		if program, err = self(); err != nil {
			return nil, fmt.Errorf("find own program: %w", err)
		}
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe of parse worker: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close() //nolint:errcheck // unused
		in.Close()      //nolint:errcheck // unused
		return nil, fmt.Errorf("open pipe of parse worker: %w", err)
	}
	c := &child{in: in, out: out, writer: bufio.NewWriterSize(in, pipeBytes), reader: bufio.NewReaderSize(out, pipeBytes), stderr: &head{most: 4096}, gone: make(chan struct{})}
	c.cmd = exec.Command(program, Command)
	c.cmd.Env = []string{} // nil would inherit
	c.cmd.Dir = os.TempDir()
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = childIn, childOut, c.stderr
	c.cmd.WaitDelay = 5 * time.Second
	isolate(c.cmd)
	err = c.cmd.Start()
	childIn.Close()  //nolint:errcheck // the child has its own
	childOut.Close() //nolint:errcheck // the child has its own
	if err != nil {
		in.Close()  //nolint:errcheck // unused
		out.Close() //nolint:errcheck // unused
		return nil, fmt.Errorf("start parse worker: %w", err)
	}
	go func() {
		c.waitErr = c.cmd.Wait()
		close(c.gone)
	}()
	return c, nil
}
