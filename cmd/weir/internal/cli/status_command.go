package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/statedir"
)

func statusCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what `weir up` runs on this machine",
		Long:  "Shows what `weir up` runs on this machine and whether it answers.\nExits with 0 when all is well and with 4 when it does not run or a part of it does not.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runStatus(cmd, s) },
	}
}

func runStatus(cmd *cobra.Command, s *Session) error {
	dir, err := s.Dir()
	if err != nil {
		return err
	}
	status, err := up.Look(cmd.Context(), dir)
	if errors.Is(err, statedir.ErrNoRun) {
		return fmt.Errorf("%w; `weir up` starts it", err)
	}
	if err != nil {
		return err
	}
	if err := s.Print(redact(status), func(w io.Writer) error { return printStatus(w, status) }); err != nil {
		return err
	}
	switch {
	case !status.Running:
		return fmt.Errorf("%w: weir was killed and has left things behind; `weir up` starts it again, `weir down` cleans up", ErrUnavailable)
	case status.State != statedir.StateReady:
		return fmt.Errorf("%w: weir is %s", ErrUnavailable, status.State)
	case len(status.Problems) > 0:
		return fmt.Errorf("%w: not all parts work", ErrUnavailable)
	}
	return nil
}

// redact takes the passwords out: a status is pasted into reports.
func redact(s up.Status) up.Status {
	s.NATSURL = service.SecretURL(s.NATSURL).String()
	s.DatabaseURL = service.SecretURL(s.DatabaseURL).String()
	s.EmbeddingURL = service.SecretURL(s.EmbeddingURL).String()
	return s
}

func printStatus(w io.Writer, s up.Status) error {
	fmt.Fprintf(w, "Weir is %s (pid %d, since %s) in %s\n", s.State, s.PID, s.StartedAt.Local().Format(time.DateTime), s.Home)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PART\tSTATE\tPID\tPORT\tRESTARTS\tREMARKS")
	for _, p := range s.Parts {
		remarks := p.Note
		if problem := s.Problems[p.Name]; problem != "" {
			remarks = problem
		}
		if p.Error != "" {
			remarks += " (last error: " + p.Error + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", p.Name, p.State, orDash(p.PID), orDash(p.Port), p.Restarts, remarks)
	}
	return t.Flush()
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
