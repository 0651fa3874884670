package worker

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"
)

// pipe is an end of a pipe to the parent, for one goroutine at a time. The calls it makes never block, so the
// scheduler is not told about them: it would wake its monitor for each, which then looks about every 20 µs
// and takes as much processor time as reading a small text. Waiting is left to the runtime's poller.
type pipe struct {
	file *os.File
	conn syscall.RawConn
}

// newPipe takes over a file descriptor of this process.
func newPipe(fd int, name string) (*pipe, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name) //nolint:gosec // a descriptor is not negative
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return &pipe{f, conn}, nil
}

func (p *pipe) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	waited := p.conn.Read(func(fd uintptr) bool {
		n, err = once(syscall.SYS_READ, fd, b)
		return err != syscall.EAGAIN //nolint:errorlint // as the system gives it
	})
	switch {
	case waited != nil:
		return 0, waited
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}

func (p *pipe) Write(b []byte) (n int, err error) {
	waited := p.conn.Write(func(fd uintptr) bool {
		for err = nil; n < len(b) && err == nil; {
			var more int
			more, err = once(syscall.SYS_WRITE, fd, b[n:])
			n += more
		}
		return err != syscall.EAGAIN //nolint:errorlint // as the system gives it
	})
	if waited != nil {
		err = waited
	}
	return n, err
}

// once makes one call that does not block.
func once(call, fd uintptr, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil //nolint:gosec // at most len(b)
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
