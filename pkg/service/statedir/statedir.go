// Package statedir is the directory in which `weir up` keeps everything it makes: the record of the
// running process, generated passwords, the Postgres cluster, JetStream's files and logs.
package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is returned by Lock when another process holds the directory.
var ErrLocked = errors.New("state directory is in use by another process")

// Dir is a state directory. It is safe for concurrent use as far as the files are.
type Dir struct{ path string }

// Locate returns the path of the state directory: WEIR_HOME, else /var/lib/weir as root, else .weir in
// the working directory. It creates nothing.
func Locate(getenv func(string) string) (Dir, error) {
	path := getenv("WEIR_HOME")
	switch {
	case path != "":
	case os.Geteuid() == 0:
		path = "/var/lib/weir"
	default:
		path = ".weir"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("locate state directory: %w", err)
	}
	return Dir{abs}, nil
}

// Create makes the directory and its log directory. Root's is searchable for everyone, because Postgres
// runs as another user and must reach its cluster in it; the files are not readable.
func (d Dir) Create() error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	for _, path := range []string{d.path, d.Path("log")} {
		if err := os.MkdirAll(path, mode); err != nil {
			return fmt.Errorf("create state directory: %w", err)
		}
	}
	return nil
}

// Path joins names to the directory's path.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// Lock is the exclusive use of a directory. The kernel lets go of it when the process ends, however it
// ends.
type Lock struct{ file *os.File }

// Lock takes the directory for this process, or returns ErrLocked at once.
func (d Dir) Lock() (*Lock, error) {
	f, err := os.OpenFile(d.Path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	return &Lock{f}, nil
}

// Release gives the directory back.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// InUse tells whether some process holds the directory.
func (d Dir) InUse() (bool, error) {
	f, err := os.Open(d.Path("lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock: %w", err)
	}
	defer f.Close()
	// A shared lock, so that two who ask at once do not take each other for the holder.
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at lock: %w", err)
	}
	return false, nil
}

// WriteJSON replaces a file at once, readable by its owner only.
func WriteJSON(path string, v any) error {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return WriteFile(path, append(body, '\n'))
}

// WriteFile replaces a file at once, readable by its owner only.
func WriteFile(path string, body []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = tmp.Write(body)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(tmp.Name()))
	}
	return nil
}

// readJSON returns fs.ErrNotExist for a file that is not there.
func readJSON(path string, v any) error {
	body, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
