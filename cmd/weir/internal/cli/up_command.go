package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/statedir"
)

const (
	// detachWait covers a first start on a slow machine.
	detachWait = 5 * time.Minute
	// stopWait is added to the grace time of the services for Postgres's last checkpoint.
	stopWait = 2 * time.Minute
)

type upFlags struct {
	opts   up.Options
	fs     *flag.FlagSet
	detach bool
	show   bool
}

func upCommand(s *Session) *cobra.Command {
	f := &upFlags{opts: up.DefaultOptions(), fs: flag.NewFlagSet("up", flag.ContinueOnError)}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run NATS, Postgres, the embedding server and the services on this machine",
		Long: `Runs everything Weir needs on this machine, on 127.0.0.1 only, until it is interrupted.

DATABASE_URL, NATS_URL and EMBEDDING_BASE_URL replace Postgres, NATS and the embedding server. --only
names the parts to run. Every flag can be set by an environment variable (--log-level is
WEIR_LOG_LEVEL) or in the file of --config. What it makes lives in the state directory: WEIR_HOME, else
/var/lib/weir as root, else .weir in the working directory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUp(cmd, s, f) },
	}
	f.opts.Flags(f.fs)
	cmd.Flags().AddGoFlagSet(f.fs)
	cmd.Flags().StringVar(&f.opts.SettingsFile, "config", "", "file of settings, one \"name value\" a line, or JSON when it ends in .json")
	cmd.Flags().BoolVar(&f.show, "print-config", false, "print the settings in effect, secrets redacted, and exit")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "run in the background; return when everything works")
	return cmd
}

func runUp(cmd *cobra.Command, s *Session, f *upFlags) error {
	if err := f.fill(cmd, s); err != nil {
		return err
	}
	if f.show {
		return service.PrintSettings(f.fs, s.Out)
	}
	if err := f.opts.Validate(); err != nil {
		return usageError{err}
	}
	if f.detach {
		return detach(cmd.Context(), s, f.opts.Dir)
	}
	logger, err := service.NewLogger(s.Err, f.opts.Process.LogFormat, f.opts.Process.LogLevel)
	if err != nil {
		return usageError{err}
	}
	// Run has the signals to itself, so that a second one ends the wait.
	ctx := context.WithoutCancel(cmd.Context())
	return service.Run(ctx, logger, f.opts.Process.Grace+stopWait, func(ctx context.Context) error {
		return up.Run(ctx, f.opts, logger, func(run statedir.Run) {
			if err := s.Print(run, func(w io.Writer) error { return printUp(w, f.opts.Dir, run) }); err != nil {
				logger.Error("cannot print", "err", err)
			}
		})
	})
}

// fill adds environment and file to what the command line said.
func (f *upFlags) fill(cmd *cobra.Command, s *Session) error {
	var err error
	if f.opts.Dir, err = s.Dir(); err != nil {
		return err
	}
	f.opts.Getenv = s.Getenv
	if f.opts.SettingsFile == "" {
		f.opts.SettingsFile = s.Getenv("WEIR_CONFIG")
	}
	given := map[string]bool{}
	cmd.Flags().Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	if err := service.Fill(f.fs, given, s.Getenv, f.opts.SettingsFile, true); err != nil {
		return usageError{err}
	}
	return nil
}

func detach(ctx context.Context, s *Session, dir statedir.Dir) error {
	ctx, cancel := context.WithTimeout(ctx, detachWait)
	defer cancel()
	args := slices.DeleteFunc(slices.Clone(s.Args), func(a string) bool {
		return a == "--detach" || strings.HasPrefix(a, "--detach=")
	})
	run, err := up.Detach(ctx, dir, args)
	if err != nil {
		return err
	}
	return s.Print(run, func(w io.Writer) error { return printUp(w, dir, run) })
}

func printUp(w io.Writer, dir statedir.Dir, run statedir.Run) error {
	fmt.Fprintf(w, "Weir runs (pid %d).\n", run.PID)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"NATS", service.SecretURL(run.NATSURL).String()},
		{"Postgres", service.SecretURL(run.DatabaseURL).String()},
		{"Embedding", service.SecretURL(run.EmbeddingURL).String()},
		{"State", dir.Path()},
	} {
		if line[1] != "" {
			fmt.Fprintf(t, "  %s\t%s\n", line[0], line[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "`weir status` shows it, `weir down` stops it. Passwords are in run.json of the state directory.")
	return err
}
