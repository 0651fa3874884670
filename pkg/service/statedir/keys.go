package statedir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
)

// Keys are what stays the same from run to run, in keys.json with mode 0600: the generated passwords,
// and the ports of the last run so that clients find the next one where they left it.
type Keys struct {
	NATSPassword     string `json:"natsPassword"`
	PostgresPassword string `json:"postgresPassword"`
	NATSPort         int    `json:"natsPort,omitempty"`
	PostgresPort     int    `json:"postgresPort,omitempty"`
	EmbeddingPort    int    `json:"embeddingPort,omitempty"`
}

// Keys reads the keys, and makes them when there are none. The caller holds the lock.
func (d Dir) Keys() (Keys, error) {
	var k Keys
	err := readJSON(d.Path("keys.json"), &k)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	k = Keys{NATSPassword: password(), PostgresPassword: password()}
	return k, d.WriteKeys(k)
}

// WriteKeys replaces the keys.
func (d Dir) WriteKeys(k Keys) error { return WriteJSON(d.Path("keys.json"), k) }

// password is 128 random bits in letters that need no escaping anywhere.
func password() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Setup is what scripts/setup has installed and recorded in setup.json.
type Setup struct {
	Version int    `json:"version"`
	Python  string `json:"python"`
	// Postgres maps a major version to the directory of its programs.
	Postgres  map[string]string `json:"postgres"`
	Embedding struct {
		Script string `json:"script"`
		Cache  string `json:"cache"`
	} `json:"embedding"`
}

// ErrNoSetup is returned by ReadSetup when set-up has not run.
var ErrNoSetup = errors.New("set-up has not run")

// ReadSetup reads the record of set-up at path.
func ReadSetup(path string) (Setup, error) {
	var s Setup
	err := readJSON(path, &s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("%w: there is no %s; run scripts/setup (or `make demo`, which does it)", ErrNoSetup, path)
	case err != nil:
		return s, err
	case s.Version != 1:
		return s, fmt.Errorf("%s has version %d, this program knows 1; run scripts/setup again", path, s.Version)
	}
	return s, nil
}

// FreePort returns the first of the wanted ports that is free on 127.0.0.1, else any free one. Wanted
// ports that are not positive are passed over. Somebody else may take the port before it is used: the
// caller tries again then.
func FreePort(wanted ...int) (int, error) {
	for _, p := range wanted {
		if p > 0 && free(p) {
			return p, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
