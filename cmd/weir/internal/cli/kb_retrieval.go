package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

const retrievalUsage = "default retrieval configuration, in JSON or as @FILE; takes the place of the whole of the one before, {} is none"

// retrievalConfiguration is what the flag says; nil when it was not given. The service checks what is in it.
func (f *kbFlags) retrievalConfiguration(cmd *cobra.Command) (json.RawMessage, error) {
	if !cmd.Flags().Changed("retrieval") {
		return nil, nil
	}
	text := []byte(f.retrieval)
	if path, isFile := strings.CutPrefix(f.retrieval, "@"); isFile {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read retrieval configuration: %w", err)
		}
	}
	if !json.Valid(text) || strings.TrimSpace(string(text))[0] != '{' {
		return nil, Usagef("--retrieval is no JSON object")
	}
	return text, nil
}
