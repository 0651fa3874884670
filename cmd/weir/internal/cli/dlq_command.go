package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

func dlqCommand(s *Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, show, replay and discard dead letters",
		Long:  "A dead letter is a message that could not be processed: a document that cannot be read, or work that failed too often.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(dlqListCommand(s), dlqGetCommand(s),
		dlqChangeCommand(s, "replay", "Publish a dead letter again, once what it failed for is repaired", messages.OpDLQReplay, "Replayed"),
		dlqChangeCommand(s, "discard", "Give a dead letter up", messages.OpDLQDiscard, "Discarded"))
	return cmd
}

func dlqListCommand(s *Session) *cobra.Command {
	in := messages.ListDeadLetters{}
	limit := 50
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listDead(cmd, s, in, limit)
			if err != nil {
				return err
			}
			return s.Print(list, func(w io.Writer) error { return printDead(w, list) })
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&in.KnowledgeBaseName, "kb", "", "only of this knowledge base")
	fl.StringVar(&in.Stage, "stage", "", "only of this stage: intake, parse, embed or index")
	fl.StringVar(&in.State, "state", "", "open, replayed or discarded (default open)")
	fl.IntVar(&limit, "limit", limit, "how many at most")
	return cmd
}

func listDead(cmd *cobra.Command, s *Session, in messages.ListDeadLetters, limit int) (messages.DeadLetterList, error) {
	all := messages.DeadLetterList{DeadLetters: []messages.DeadLetter{}}
	for {
		var page messages.DeadLetterList
		if err := s.Request(cmd.Context(), messages.TenantScope, messages.OpDLQList, in, &page); err != nil {
			return all, err
		}
		all.DeadLetters = append(all.DeadLetters, page.DeadLetters...)
		all.NextToken, in.NextToken = page.NextToken, page.NextToken
		if page.NextToken == "" || len(all.DeadLetters) >= limit {
			if len(all.DeadLetters) > limit {
				all.DeadLetters = all.DeadLetters[:limit]
			}
			return all, nil
		}
	}
}

func printDead(w io.Writer, list messages.DeadLetterList) error {
	if len(list.DeadLetters) == 0 {
		_, err := fmt.Fprintln(w, "No dead letters.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tAT\tKB\tDOCUMENT\tSTAGE\tTRIES\tERROR")
	for _, d := range list.DeadLetters {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", d.ID, d.At.Local().Format(time.DateTime), d.KB, orNone(d.DocID), d.Stage, d.Attempts, d.Error.Error())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if list.NextToken != "" {
		fmt.Fprintln(w, "There are more: raise --limit.")
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func dlqGetCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID",
		Short: "Show a dead letter with its headers and body",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := deadRef(args[0])
			if err != nil {
				return err
			}
			var d messages.DeadLetterDetail
			if err := s.Request(cmd.Context(), messages.TenantScope, messages.OpDLQGet, ref, &d); err != nil {
				return err
			}
			return s.Print(d, func(w io.Writer) error { return printDeadDetail(w, d) })
		},
	}
}

func printDeadDetail(w io.Writer, d messages.DeadLetterDetail) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"id", fmt.Sprint(d.ID)},
		{"state", d.State},
		{"at", d.At.Local().Format(time.DateTime)},
		{"knowledge base", orNone(d.KB)},
		{"document", orNone(d.DocID)},
		{"version", orDash(int(d.Version))},
		{"stage", d.Stage},
		{"error", d.Error.Error()},
		{"tries", fmt.Sprint(d.Attempts)},
		{"subject", d.Subject},
		{"size", fmt.Sprintf("%d bytes", d.SizeBytes)},
	} {
		fmt.Fprintf(t, "%s\t%s\n", line[0], line[1])
	}
	for _, k := range slices.Sorted(maps.Keys(d.Headers)) {
		fmt.Fprintf(t, "header\t%s: %s\n", k, d.Headers[k])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case len(d.Body) == 0:
	case utf8.Valid(d.Body):
		fmt.Fprintf(w, "\n%s\n", d.Body)
	default:
		fmt.Fprintln(w, "\nThe body is binary; --json gives it in base64.")
	}
	return nil
}

func dlqChangeCommand(s *Session, name, short, op, done string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := deadRef(args[0])
			if err != nil {
				return err
			}
			if err := s.Request(cmd.Context(), messages.TenantScope, op, ref, nil); err != nil {
				return err
			}
			return s.Print(map[string]any{name: ref.ID}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s dead letter %d.\n", done, ref.ID)
				return err
			})
		},
	}
}

func deadRef(text string) (messages.DeadLetterRef, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return messages.DeadLetterRef{}, Usagef("%q is no number of a dead letter; `weir dlq list` shows them", text)
	}
	return messages.DeadLetterRef{ID: id}, nil
}
