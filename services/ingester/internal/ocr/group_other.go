//go:build !linux

package ocr

import "os/exec"

// group leaves the command in our group: killing it alone is what every system can do.
func group(*exec.Cmd) {}

// restrict has nothing to set here; time and output are limited all the same.
func restrict(int, Config) {}
