//go:build !linux

package pdfworker

import (
	"os"
	"os/exec"
)

// isolate leaves the child in our group: killing it alone is what every system can do.
func isolate(*exec.Cmd) {}

// self is this program.
func self() (string, error) { return os.Executable() }

// limitSelf has nothing to set here; the parent's clocks and the runtime's own limits remain.
func limitSelf(Limits) ([]string, error) {
	return []string{"address space", "processor time", "process group"}, nil
}

// killed cannot tell here.
func killed(*os.ProcessState, Limits) string { return "" }
