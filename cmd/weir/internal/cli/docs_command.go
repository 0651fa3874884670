package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/pkg/messages"
)

func docsCommand(s *Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "List, show, delete and watch documents",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(docsListCommand(s), docsGetCommand(s), docsDeleteCommand(s), docsWatchCommand(s))
	return cmd
}

func docsListCommand(s *Session) *cobra.Command {
	var kb func() (string, error)
	in, status, limit := messages.ListDocuments{}, "", 100
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the documents of a knowledge base",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := kb()
			if err != nil {
				return err
			}
			if in.Status, err = statusNamed(status); err != nil {
				return err
			}
			list, err := listDocuments(cmd.Context(), s, name, in, limit)
			if err != nil {
				return err
			}
			return s.Print(list, func(w io.Writer) error { return printDocuments(w, list) })
		},
	}
	kb = kbFlag(s, cmd)
	fl := cmd.Flags()
	fl.StringVar(&status, "status", "", "only pending, indexing, ready or failed ones")
	fl.StringArrayVar(&in.Subspace, "subspace", nil, "only of this subspace; may be repeated")
	fl.IntVar(&limit, "limit", limit, "how many at most; 0: all")
	return cmd
}

// statusNamed accepts a status in any case.
func statusNamed(text string) (messages.DocumentStatus, error) {
	all := []messages.DocumentStatus{messages.StatusPending, messages.StatusIndexing, messages.StatusReady, messages.StatusFailed, messages.StatusDeleting}
	names := make([]string, len(all))
	for i, s := range all {
		if strings.EqualFold(text, string(s)) {
			return s, nil
		}
		names[i] = string(s)
	}
	if text == "" {
		return "", nil
	}
	return "", Usagef("--status: %q is none of %s", text, strings.Join(names, ", "))
}

func listDocuments(ctx context.Context, s *Session, kb string, in messages.ListDocuments, limit int) (messages.DocumentList, error) {
	all := messages.DocumentList{Documents: []messages.DocumentInfo{}}
	for {
		var page messages.DocumentList
		if err := s.Request(ctx, kb, messages.OpDocList, in, &page); err != nil {
			return all, err
		}
		all.Documents = append(all.Documents, page.Documents...)
		all.NextToken, in.NextToken = page.NextToken, page.NextToken
		if limit > 0 && len(all.Documents) >= limit {
			if len(all.Documents) > limit {
				all.Documents, all.NextToken = all.Documents[:limit], "more"
			}
			return all, nil
		}
		if page.NextToken == "" {
			return all, nil
		}
	}
}

func printDocuments(w io.Writer, list messages.DocumentList) error {
	if len(list.Documents) == 0 {
		_, err := fmt.Fprintln(w, "No documents.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DOCUMENT\tSUBSPACE\tSTATUS\tVERSION\tCHUNKS\tBYTES\tUPDATED\tERROR")
	for _, d := range list.Documents {
		problem := ""
		if d.Error != nil {
			problem = d.Error.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", d.DocID, d.Subspace, d.Status, d.Version, d.Chunks, d.SizeBytes,
			d.UpdatedAt.Local().Format(time.DateTime), problem)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if list.NextToken != "" {
		fmt.Fprintln(w, "There are more: raise --limit, or --limit 0.")
	}
	return nil
}

// documentDetail is what `weir docs get --json` prints.
type documentDetail struct {
	messages.DocumentInfo
	ChunkList []messages.ChunkInfo `json:"chunkList,omitempty"`
}

func docsGetCommand(s *Session) *cobra.Command {
	var kb func() (string, error)
	ref, chunks := messages.DocumentRef{}, false
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show the state of a document, and its chunks",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := kb()
			if err != nil {
				return err
			}
			ref.DocID = args[0]
			var d documentDetail
			if err := s.Request(cmd.Context(), name, messages.OpDocGet, ref, &d.DocumentInfo); err != nil {
				return err
			}
			if chunks {
				if d.ChunkList, err = listChunks(cmd.Context(), s, name, ref); err != nil {
					return err
				}
			}
			return s.Print(d, func(w io.Writer) error { return printDocument(w, d) })
		},
	}
	kb = kbFlag(s, cmd)
	cmd.Flags().StringVar(&ref.Subspace, "subspace", "", "subspace of the document")
	cmd.Flags().BoolVar(&chunks, "chunks", false, "show the chunks of the retrievable version too")
	return cmd
}

func listChunks(ctx context.Context, s *Session, kb string, ref messages.DocumentRef) ([]messages.ChunkInfo, error) {
	in := messages.ListChunks{DocID: ref.DocID, Subspace: ref.Subspace}
	var all []messages.ChunkInfo
	for {
		var page messages.ChunkList
		if err := s.Request(ctx, kb, messages.OpDocChunks, in, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Chunks...)
		if in.NextToken = page.NextToken; in.NextToken == "" {
			return all, nil
		}
	}
}

func printDocument(w io.Writer, d documentDetail) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("document", "%s", d.DocID)
	line("subspace", "%s", d.Subspace)
	line("status", "%s", d.Status)
	if d.Error != nil {
		line("error", "%v (stage %s)", d.Error, d.Error.Stage)
	}
	live := "none"
	if d.LiveVersion > 0 {
		live = fmt.Sprint(d.LiveVersion)
	}
	line("version", "%d, retrievable: %s", d.Version, live)
	line("title", "%s", d.Title)
	line("content", "%s, %d bytes", orNone(d.ContentType), d.SizeBytes)
	line("chunks", "%d, %d with vectors, %d of them known before", d.Chunks, d.Embedded, d.Reused)
	if len(d.Metadata) > 0 {
		line("metadata", "%s", d.Metadata)
	}
	for _, warning := range d.Warnings {
		line("warning", "%s", warning)
	}
	line("submitted", "%s", d.SubmittedAt.Local().Format(time.DateTime))
	line("updated", "%s", d.UpdatedAt.Local().Format(time.DateTime))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range d.ChunkList {
		hit := messages.RetrievedChunk{DocID: fmt.Sprintf("chunk %d", c.ChunkID), HeadingPath: c.HeadingPath, PageFrom: c.PageFrom, PageTo: c.PageTo}
		fmt.Fprintf(w, "\n%s (%d tokens, %s)\n%s\n", place(hit), c.Tokens, c.Status, strings.TrimSpace(c.Content))
	}
	return nil
}

func docsDeleteCommand(s *Session) *cobra.Command {
	var kb func() (string, error)
	subspace, noWait := "", false
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete documents",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := kb()
			if err != nil {
				return err
			}
			replies, err := deleteDocuments(cmd.Context(), s, name, subspace, args, !noWait)
			return errors.Join(s.Print(replies, func(w io.Writer) error {
				for _, r := range replies {
					fmt.Fprintf(w, "%s: %s\n", r.DocID, r.Status)
				}
				return nil
			}), err)
		},
	}
	kb = kbFlag(s, cmd)
	cmd.Flags().StringVar(&subspace, "subspace", "", "subspace of the documents")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return when the delete is accepted, before it is done")
	return cmd
}

// deleteDocuments returns what became of the documents up to the first error.
func deleteDocuments(ctx context.Context, s *Session, kb, subspace string, ids []string, wait bool) ([]messages.SubmitReply, error) {
	replies := []messages.SubmitReply{}
	ended := make(chan messages.Event, 256)
	if wait {
		stop, err := watchTerminal(ctx, s, kb, ended)
		if err != nil {
			return replies, err
		}
		defer stop()
	}
	for _, id := range ids {
		var r messages.SubmitReply
		if err := s.Request(ctx, kb, messages.OpDelete, messages.Delete{DocID: id, Subspace: subspace}, &r); err != nil {
			return replies, fmt.Errorf("delete %s: %w", id, err)
		}
		if wait && !r.Status.Terminal() {
			status, err := awaitEnd(ctx, s.Timeout, ended, r.SubmitID)
			if err != nil {
				return append(replies, r), fmt.Errorf("delete %s: %w", id, err)
			}
			r.Status = status
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func watchTerminal(ctx context.Context, s *Session, kb string, ended chan<- messages.Event) (stop func(), err error) {
	nc, err := s.Conn(ctx)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open jetstream: %w", err)
	}
	return publish.Watch(ctx, js, s.Tenant, kb, func(e messages.Event) {
		if !e.Status.Terminal() {
			return
		}
		select {
		case ended <- e:
		default: // other people's events fill it: ours is awaited with a time limit
		}
	})
}

func awaitEnd(ctx context.Context, timeout time.Duration, ended <-chan messages.Event, submitID string) (messages.DocumentStatus, error) {
	over := time.NewTimer(timeout)
	defer over.Stop()
	for {
		select {
		case e := <-ended:
			if e.SubmitID != submitID {
				continue
			}
			if e.Error != nil {
				return e.Status, e.Error
			}
			return e.Status, nil
		case <-over.C:
			return "", fmt.Errorf("accepted, but not done within %s: %w", timeout, context.DeadlineExceeded)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func docsWatchCommand(s *Session) *cobra.Command {
	kb, terminal := "", false
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print what happens to documents, until it is interrupted",
		Long:  "Prints the status events of a knowledge base, or of all of the tenant's, from now on until it is interrupted.\nWith --json every event is a line.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kb == "" {
				kb = "*"
			} else if err := checkName("kb", kb); err != nil {
				return err
			}
			return watchDocuments(cmd.Context(), s, kb, terminal)
		},
	}
	cmd.Flags().StringVar(&kb, "kb", "", "only of this knowledge base")
	cmd.Flags().BoolVar(&terminal, "ended", false, "only what has ended: Ready, Failed, Superseded, Deleted")
	return cmd
}

// watchDocuments ends without error when ctx does: that is how it is left.
func watchDocuments(ctx context.Context, s *Session, kb string, terminal bool) error {
	nc, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open jetstream: %w", err)
	}
	failed := make(chan error, 1)
	stop, err := publish.Watch(ctx, js, s.Tenant, kb, func(e messages.Event) {
		if terminal && !e.Status.Terminal() {
			return
		}
		if err := s.printEvent(e); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("print event: %w", err)
	}
}

func (s *Session) printEvent(e messages.Event) error {
	if s.JSON {
		return json.NewEncoder(s.Out).Encode(e)
	}
	more := ""
	switch {
	case e.Error != nil:
		more = e.Error.Error()
	case e.Unchanged:
		more = "unchanged"
	case e.Chunks > 0:
		more = fmt.Sprintf("%d chunks, %d known before", e.Chunks, e.Reused)
	}
	_, err := fmt.Fprintf(s.Out, "%s  %-10s  %s  %s  version %d  %s\n", e.At.Local().Format(time.TimeOnly), e.Status, e.KB, orNone(e.DocID), e.Version, more)
	return err
}
