package localpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// isPostgresOn tells whether pid is a postgres program whose working directory, which Postgres always
// sets to its data, is data.
func isPostgresOn(pid int, data string) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(proc + "/exe")
	if err != nil {
		return false
	}
	// An upgrade may have removed the file of the running program.
	if filepath.Base(strings.TrimSuffix(exe, " (deleted)")) != "postgres" {
		return false
	}
	at, err := os.Stat(proc + "/cwd")
	if err != nil {
		return false
	}
	want, err := os.Stat(data)
	return err == nil && os.SameFile(at, want)
}
