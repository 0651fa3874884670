package cli

import (
	"context"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

func jobsCommand(s *Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Start, watch, approve and roll back jobs that build an index anew",
		Long: `A reindex builds a second index of a knowledge base beside the one that is searched, and switches to it when nothing is
missing. A repair builds documents of the index that is searched anew, in place. A knowledge base has one job at a time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(jobsStartCommand(s), jobsListCommand(s), jobsGetCommand(s), jobsWatchCommand(s),
		jobsChangeCommand(s, "pause", "Begin nothing more of a job; what is on its way is finished", messages.OpJobPause),
		jobsResumeCommand(s),
		jobsChangeCommand(s, "cancel", "End a job and drop what it has built; a rollback that is cancelled changes nothing", messages.OpJobCancel),
		jobsApproveCommand(s), jobsRollbackCommand(s))
	return cmd
}

func jobsListCommand(s *Session) *cobra.Command {
	var in messages.ListJobs
	limit := 50
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := in.Validate(); err != nil {
				return usageError{err}
			}
			list, err := listJobs(cmd.Context(), s, in, limit)
			if err != nil {
				return err
			}
			return s.Print(list, func(w io.Writer) error { return printJobs(w, list) })
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&in.KnowledgeBaseName, "kb", "", "only of this knowledge base")
	fl.StringVar((*string)(&in.State), "state", "", "running, paused, waiting, done, cancelled or rolled_back")
	fl.IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}

func listJobs(ctx context.Context, s *Session, in messages.ListJobs, limit int) (messages.JobList, error) {
	all := messages.JobList{Jobs: []messages.JobInfo{}}
	for {
		var page messages.JobList
		if err := s.Request(ctx, messages.TenantScope, messages.OpJobList, in, &page); err != nil {
			return all, err
		}
		all.Jobs = append(all.Jobs, page.Jobs...)
		all.NextToken, in.NextToken = page.NextToken, page.NextToken
		if page.NextToken == "" || len(all.Jobs) >= limit {
			all.Jobs = all.Jobs[:min(len(all.Jobs), limit)]
			return all, nil
		}
	}
}

func printJobs(w io.Writer, list messages.JobList) error {
	if len(list.Jobs) == 0 {
		_, err := fmt.Fprintln(w, "No jobs.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tKB\tKIND\tSTATE\tDONE\tFAILED\tSTARTED\tREASON")
	for _, j := range list.Jobs {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", j.ID, j.KnowledgeBaseName, j.Kind, stateText(j), doneText(j), j.Counts.Failed,
			j.CreatedAt.Local().Format(time.DateTime), orNone(j.Reason))
	}
	return t.Flush()
}

func stateText(j messages.JobInfo) string {
	if j.State.Active() && j.Phase == messages.PhaseRollback {
		return string(j.State) + ", rolling back"
	}
	return string(j.State)
}

func doneText(j messages.JobInfo) string {
	return fmt.Sprintf("%d of %d", j.Counts.Done, totalOf(j))
}

// totalOf is how many documents a job has, as far as it knows.
func totalOf(j messages.JobInfo) int64 {
	if j.Kind == messages.JobRepair || j.Phase == messages.PhaseRollback {
		return j.Counts.Total
	}
	return max(j.Counts.Total, j.Estimate.Documents)
}

func jobsGetCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID",
		Short: "Show a job with its counts and errors",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			j, err := getJob(cmd.Context(), s, id)
			if err != nil {
				return err
			}
			return s.Print(j, func(w io.Writer) error { return printJob(w, j) })
		},
	}
}

func getJob(ctx context.Context, s *Session, id int64) (j messages.JobInfo, err error) {
	return j, s.Request(ctx, messages.TenantScope, messages.OpJobGet, messages.JobRef{ID: id}, &j)
}

func jobID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, Usagef("%q is no number of a job; `weir jobs list` shows them", text)
	}
	return id, nil
}

func printJob(w io.Writer, j messages.JobInfo) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if j.ID > 0 {
		line("job", "%d", j.ID)
		line("state", "%s", stateText(j))
	}
	if j.Reason != "" {
		line("reason", "%s", j.Reason)
	}
	line("knowledge base", "%s, %s", j.KnowledgeBaseName, j.Kind)
	line("generations", "%d to %d", j.Source, j.Target)
	line("configuration", "%s; %s; %s; parser %s", spaceText(j.Config.Embedding), chunkingText(j.Config.Chunking), j.Config.Analyzer, j.Config.Parser)
	line("estimate", "%s", estimateText(j.Estimate))
	if j.ID > 0 {
		c := j.Counts
		line("documents", "%s, %d failed, %d skipped", doneText(j), c.Failed, c.Skipped)
		line("chunks", "%d, %d reused, %d embedded (%d tokens)", c.Chunks, c.Reused, c.Embedded, c.Tokens)
		line("started", "%s", j.CreatedAt.Local().Format(time.DateTime))
	}
	if j.Rate > 0 {
		line("rate", "%.1f documents a second", j.Rate)
	}
	if j.EtaSeconds != nil {
		line("left", "about %s", (time.Duration(*j.EtaSeconds) * time.Second).String())
	}
	if r := j.GateResult; r != nil {
		line("gate", "%s", gateText(*r))
	}
	if j.Approver != "" {
		line("approved by", "%s", j.Approver)
	}
	for _, at := range []struct {
		name string
		time *time.Time
	}{{"switched", j.FlippedAt}, {"ended", j.EndedAt}, {"rollback until", j.RetainedUntil}} {
		if at.time != nil {
			line(at.name, "%s", at.time.Local().Format(time.DateTime))
		}
	}
	for _, e := range j.Errors {
		line("error", "%d documents: %s: %s, such as %s", e.Count, e.Code, e.Message, e.Documents[0])
	}
	return t.Flush()
}

func estimateText(e messages.JobEstimate) string {
	how := "chunks are taken as they are"
	if e.Parse {
		how = "contents are parsed anew"
	}
	return fmt.Sprintf("%d documents, %d chunks, %d texts to embed (%d tokens); %s", e.Documents, e.Chunks, e.Texts, e.Tokens, how)
}

func gateText(r messages.JobGateResult) string {
	verdict := "not passed"
	if r.Passed {
		verdict = "passed"
	}
	text := fmt.Sprintf("%s, %d queries", verdict, r.Queries)
	if r.Live != nil && r.Target != nil {
		text += fmt.Sprintf(", nDCG@%d %.3f, was %.3f", r.K, *r.Target, *r.Live)
	}
	if r.Overlap != nil {
		text += fmt.Sprintf(", overlap@%d %.2f", r.K, *r.Overlap)
	}
	return text
}

// jobsChangeCommand is a command that names a job and nothing else.
func jobsChangeCommand(s *Session, name, short, op string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			return changeJob(cmd.Context(), s, op, messages.JobRef{ID: id})
		},
	}
}

func changeJob(ctx context.Context, s *Session, op string, in any) error {
	var j messages.JobInfo
	if err := s.Request(ctx, messages.TenantScope, op, in, &j); err != nil {
		return err
	}
	return s.Print(j, func(w io.Writer) error { return printJob(w, j) })
}

func jobsResumeCommand(s *Session) *cobra.Command {
	var in messages.ResumeJob
	var rate float64
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Have a paused or waiting job go on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if in.ID, err = jobID(args[0]); err != nil {
				return err
			}
			if cmd.Flags().Changed("rate") {
				in.RateLimit = &rate
			}
			if err := in.Validate(); err != nil {
				return usageError{err}
			}
			return changeJob(cmd.Context(), s, messages.OpJobResume, in)
		},
	}
	cmd.Flags().BoolVar(&in.RetryFailed, "retry-failed", false, "take up again what failed")
	cmd.Flags().Float64Var(&rate, "rate", 0, "documents a second from now on; 0 for no limit (default: as before)")
	return cmd
}

func jobsApproveCommand(s *Session) *cobra.Command {
	var in messages.ApproveJob
	var failed int
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Have a job switch to what it has built, whatever its gate found",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if in.ID, err = jobID(args[0]); err != nil {
				return err
			}
			if cmd.Flags().Changed("max-failed") {
				in.MaxFailed = &failed
			}
			if in.Approver == "" {
				in.Approver = whoami()
			}
			if err := in.Validate(); err != nil {
				return usageError{err}
			}
			return changeJob(cmd.Context(), s, messages.OpJobApprove, in)
		},
	}
	cmd.Flags().StringVar(&in.Approver, "by", "", "who approves, for the record (default: the user of this machine)")
	cmd.Flags().IntVar(&failed, "max-failed", 0, "how many documents may be lost from the new index (default: as before)")
	return cmd
}

// whoami is the user's name, empty where there is none.
func whoami() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

func jobsRollbackCommand(s *Session) *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use:   "rollback ID",
		Short: "Bring the index from before a job up to date and switch back to it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			if !wait {
				return changeJob(cmd.Context(), s, messages.OpJobRollback, messages.JobRef{ID: id})
			}
			if err := s.Request(cmd.Context(), messages.TenantScope, messages.OpJobRollback, messages.JobRef{ID: id}, nil); err != nil {
				return err
			}
			return watchJob(cmd.Context(), s, id)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "watch until it is over")
	return cmd
}
