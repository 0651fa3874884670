//go:build !linux

package localpg

import (
	"os/exec"
	"strconv"
	"strings"
)

// isPostgresOn tells whether pid is a postgres program started on data.
func isPostgresOn(pid int, data string) bool {
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false
	}
	command := string(out)
	return strings.Contains(command, "postgres") && strings.Contains(command, data)
}
