package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

// kbFlag adds --kb, whose default is WEIR_KB. The function it returns gives the name, or what is wrong.
func kbFlag(s *Session, cmd *cobra.Command) func() (string, error) {
	var given string
	cmd.Flags().StringVar(&given, "kb", "", "knowledge base (default: WEIR_KB)")
	return func() (string, error) {
		name := given
		if name == "" {
			name = s.Getenv("WEIR_KB")
		}
		if name == "" {
			return "", Usagef("name the knowledge base with --kb or WEIR_KB; `weir kb list` lists them")
		}
		return name, checkName("kb", name)
	}
}

// checkName is the usage error of a name no knowledge base can have.
func checkName(field, name string) error {
	if err := messages.ValidateName(field, name); err != nil {
		return usageError{err}
	}
	return nil
}

// confirm asks on standard error and reads the answer; --yes is the caller's business. No answer is no.
func (s *Session) confirm(question string) error {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if answer == "" {
		fmt.Fprintln(s.Err)
	}
	return Usagef("not done: answer y, or give --yes")
}

// terminal reports whether w is a terminal that draws.
func (s *Session) terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && s.Getenv("TERM") != "dumb"
}

// pairs reads values of the form key=value.
func pairs(flag string, values []string) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range values {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, Usagef("--%s: %q is not key=value", flag, v)
		}
		out[key] = value
	}
	return out, nil
}

// fields reads declarations of the form name:type or name:type:internal.
func fields(values []string) (messages.MetadataSchema, error) {
	var schema messages.MetadataSchema
	for _, v := range values {
		parts := strings.Split(v, ":")
		f := messages.MetadataField{Name: parts[0]}
		switch {
		case len(parts) == 3 && parts[2] == "internal":
			f.Internal = true
		case len(parts) != 2:
			return nil, Usagef("--field: %q is not name:type or name:type:internal", v)
		}
		f.Type = messages.MetadataType(parts[1])
		schema = append(schema, f)
	}
	if err := schema.Validate("field"); err != nil {
		return nil, usageError{err}
	}
	return schema, nil
}
