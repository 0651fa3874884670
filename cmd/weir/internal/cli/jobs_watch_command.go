package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/progress"
	"github.com/weir-project/weir/pkg/messages"
)

func jobsWatchCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "watch ID",
		Short: "Show how far a job is until it is over or waits for somebody",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			return watchJob(cmd.Context(), s, id)
		},
	}
}

// watchEvery is the pause between two looks at a job.
const watchEvery = 500 * time.Millisecond

// watchJob shows a job until it does not run any more. One that waits, was cancelled or did not do what was asked is an error.
func watchJob(ctx context.Context, s *Session, id int64) error {
	d := progress.New(s.Err, s.terminal(s.Err), nil)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		j, err := getJob(ctx, s, id)
		if err != nil {
			return err
		}
		if j.State != messages.JobRunning {
			if err := d.Close(jobView(j)); err != nil {
				return err
			}
			return jobEnd(s, j)
		}
		d.Show(jobView(j))
		select {
		case <-ctx.Done():
			fmt.Fprintf(s.Err, "\nJob %d goes on; `weir jobs watch %d` shows it again.\n", id, id)
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func jobEnd(s *Session, j messages.JobInfo) error {
	if err := s.Print(j, func(w io.Writer) error { return printJob(w, j) }); err != nil {
		return err
	}
	if (j.State == messages.JobDone || j.State == messages.JobRolledBack) && j.Reason == "" {
		return nil
	}
	return fmt.Errorf("job %d is %s: %s", j.ID, j.State, orNone(j.Reason))
}

// jobView is a job as bars.
func jobView(j messages.JobInfo) progress.View {
	v := progress.View{Total: int(totalOf(j)), Rows: []progress.Row{
		{Label: "Built", Count: int(j.Counts.Done)},
		{Label: "Failed", Count: int(j.Counts.Failed)},
	}}
	if j.Rate > 0 {
		v.Note = fmt.Sprintf("%.1f/s", j.Rate)
	}
	if j.EtaSeconds != nil {
		v.Note += fmt.Sprintf(", %s left", (time.Duration(*j.EtaSeconds) * time.Second).String())
	}
	return v
}
