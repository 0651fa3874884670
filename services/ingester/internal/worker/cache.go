package worker

import (
	"errors"
	"fmt"
	"os"
)

// errShared says that others can write to a directory whose content is run.
var errShared = errors.New("others may write to it")

// prepareCache makes the directory of the PDF engine's code, and refuses one that others can write to or
// that is not ours.
func prepareCache(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make cache directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at cache directory: %w", err)
	}
	const others = 0o022
	if info.Mode().Perm()&others != 0 || !owned(info) {
		return fmt.Errorf("cache directory %s: %w", dir, errShared)
	}
	return nil
}
