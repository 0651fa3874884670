package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

// IO is what a command line has around it. Tests give their own.
type IO struct {
	Args     []string // without the name of the program
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// System is the command line of this process.
func System() IO {
	return IO{Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}

// Main runs the command line and returns the exit code. Nothing is printed but by writing to the IO.
func Main(system IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &Session{IO: system}
	s.In = newInput(ctx, system.In)
	defer s.close()
	root := rootCommand(s)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if !s.begun { // the command line itself was not understood
		err = usageError{err}
		s.JSON = s.JSON || slices.Contains(s.Args, "--json") // reading ends at a flag that is not known
	}
	s.printError(err)
	return exitOf(err)
}

func rootCommand(s *Session) *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "Run Weir on one machine and operate it",
		Long:          "Weir makes documents published to NATS searchable.\n\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			s.begun = true
			return s.validate()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(s.Args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&s.natsURL, "nats-url", "", "NATS servers (default: NATS_URL, else the run of this machine)")
	flags.StringVar(&s.natsCreds, "nats-creds", "", "NATS credentials file (default: WEIR_NATS_CREDS)")
	flags.StringVar(&s.Tenant, "tenant", "default", "tenant to act for")
	flags.BoolVar(&s.JSON, "json", false, "print the result as JSON")
	flags.DurationVar(&s.Timeout, "timeout", 10*time.Second, "how long to wait for an answer")
	for _, command := range commands() {
		root.AddCommand(command(s))
	}
	return root
}

// printError says what went wrong: a line, or with --json an object on standard error.
func (s *Session) printError(err error) {
	exit := exitOf(err)
	if !s.JSON {
		fmt.Fprintf(s.Err, "weir: %v\n", err)
		if exit == ExitUsage {
			fmt.Fprintln(s.Err, "Try `weir help`.")
		}
		return
	}
	out := map[string]any{"message": err.Error(), "exit": exit}
	var refused *messages.Error
	if errors.As(err, &refused) {
		out["code"], out["message"] = refused.Code, refused.Message
		if refused.Field != "" {
			out["field"] = refused.Field
		}
	}
	_ = json.NewEncoder(s.Err).Encode(map[string]any{"error": out}) // there is no place left to complain
}
