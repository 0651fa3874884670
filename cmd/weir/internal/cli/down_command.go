package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/up"
)

func downCommand(s *Session) *cobra.Command {
	var setup string
	wait := 3 * time.Minute
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop what `weir up` runs on this machine",
		Long: "Stops what `weir up` runs on this machine and waits until it has ended, or stops what a killed one has left.\n" +
			"Data stays. That nothing runs is no error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return runDown(ctx, s, setup)
		},
	}
	cmd.Flags().StringVar(&setup, "setup", "", "record of scripts/setup (default: setup.json in the state directory)")
	cmd.Flags().DurationVar(&wait, "wait", wait, "how long to wait for the end")
	return cmd
}

func runDown(ctx context.Context, s *Session, setup string) error {
	dir, err := s.Dir()
	if err != nil {
		return err
	}
	if setup == "" {
		setup = s.Getenv("WEIR_SETUP")
	}
	if setup == "" {
		setup = dir.Path("setup.json")
	}
	stopped, err := up.Down(ctx, dir, setup, s.Logger())
	if err != nil {
		return err
	}
	return s.Print(stopped, func(w io.Writer) error {
		if stopped == (up.Stopped{}) {
			fmt.Fprintln(w, "Nothing runs.")
		}
		for _, line := range []struct {
			what string
			pid  int
		}{{"Weir", stopped.Run}, {"the Postgres a killed Weir left", stopped.Postgres}, {"the embedding server a killed Weir left", stopped.Embedding}} {
			if line.pid != 0 {
				fmt.Fprintf(w, "Stopped %s (pid %d).\n", line.what, line.pid)
			}
		}
		return nil
	})
}
