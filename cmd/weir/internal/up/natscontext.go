package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-project/weir/pkg/service/statedir"
)

// contextName is what the nats tool calls the run: nats --context weir.
const contextName = "weir"

// contextMark tells our context file from one that somebody wrote by hand under the same name.
const contextMark = "Weir on this machine (written by weir up)"

type natsContext struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	User        string `json:"user,omitempty"`
	Password    string `json:"password,omitempty"`
}

// writeContext writes a context file for the nats tool when the server is ours, unless there is one of
// that name that is not from us.
func (r *runtime) writeContext() error {
	if r.opts.NoContext || !r.opts.runs(partNATS) {
		return nil
	}
	path, err := contextPath(r.opts.Getenv)
	if err != nil {
		return err
	}
	if err := oursOrAbsent(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create directory for nats context: %w", err)
	}
	return statedir.WriteJSON(path, natsContext{
		Description: contextMark, URL: fmt.Sprintf("nats://127.0.0.1:%d", r.keys.NATSPort),
		User: natsUser, Password: r.keys.NATSPassword,
	})
}

func contextPath(getenv func(string) string) (string, error) {
	base := getenv("XDG_CONFIG_HOME")
	if base == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_CONFIG_HOME nor HOME is set")
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "nats", "context", contextName+".json"), nil
}

func oursOrAbsent(path string) error {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read nats context: %w", err)
	}
	var there natsContext
	if err := json.Unmarshal(body, &there); err != nil || there.Description != contextMark {
		return fmt.Errorf("%s is not from weir and is left alone", path)
	}
	return nil
}
