package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// pidFile is what postmaster.pid says.
type pidFile struct{ pid, port int }

func (c *Cluster) pidPath() string { return filepath.Join(c.data(), "postmaster.pid") }

// readPIDFile returns fs.ErrNotExist when there is none. Lines: pid, data directory, start time, port.
func readPIDFile(path string) (pidFile, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return pidFile{}, fmt.Errorf("read postmaster.pid: %w", err)
	}
	lines := strings.Split(string(body), "\n")
	var f pidFile
	if f.pid, err = strconv.Atoi(strings.TrimSpace(lines[0])); err != nil || f.pid <= 0 {
		return pidFile{}, fmt.Errorf("read postmaster.pid: first line %q is not a pid", lines[0])
	}
	if len(lines) > 3 {
		f.port, _ = strconv.Atoi(strings.TrimSpace(lines[3])) // absent while it starts: 0 lets nobody in
	}
	return f, nil
}

// runningPostmaster returns the postmaster on our data, if one runs. A pid that belongs to another
// program by now does not count.
func (c *Cluster) runningPostmaster() (pidFile, bool) {
	f, err := readPIDFile(c.pidPath())
	if err != nil || !alive(f.pid) {
		return pidFile{}, false
	}
	return f, isPostgresOn(f.pid, c.data())
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// noPID is larger than any process id, so a file that names it names nobody.
const noPID = 1<<31 - 2

// disarmStalePID changes a postmaster.pid whose pid now belongs to another program: Postgres would take
// that one for a server and refuse to start. The rest of the file stays, because Postgres finds in it the
// shared memory of the dead server and makes sure that no process of it is left. A pid of nobody is
// dealt with by Postgres itself.
func (c *Cluster) disarmStalePID() error {
	f, err := readPIDFile(c.pidPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !alive(f.pid) || isPostgresOn(f.pid, c.data()) {
		return nil
	}
	body, err := os.ReadFile(c.pidPath())
	if err != nil {
		return fmt.Errorf("read stale postmaster.pid: %w", err)
	}
	_, rest, _ := strings.Cut(string(body), "\n")
	c.cfg.Logger.Warn("postmaster.pid is stale: its pid belongs to another program", "pid", f.pid)
	if err := os.WriteFile(c.pidPath(), []byte(strconv.Itoa(noPID)+"\n"+rest), 0o600); err != nil {
		return fmt.Errorf("disarm stale postmaster.pid: %w", err)
	}
	return nil
}

// startingUp tells a server that is on its way from one that refuses us.
func startingUp(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		const cannotConnectNow = "57P03"
		return refused.Code == cannotConnectNow
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
