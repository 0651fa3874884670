package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

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
	if l := d.Lines; l != nil {
		line("lines", "%d: %d accepted, %d unchanged, %d superseded, %d failed", l.Total, l.Accepted, l.Unchanged, l.Superseded, l.Failed)
		for _, e := range l.Errors {
			line("", "line %d %s: %v", e.Line, e.DocID, &e.Error)
		}
	} else {
		line("chunks", "%d, %d with vectors, %d of them known before", d.Chunks, d.Embedded, d.Reused)
	}
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
		hit := messages.RetrievedChunk{DocID: fmt.Sprintf("chunk %d", c.ChunkID), HeadingPath: c.HeadingPath, PageFrom: c.PageFrom, PageTo: c.PageTo, Origin: c.Origin}
		fmt.Fprintf(w, "\n%s (%d tokens, %s)\n%s\n", place(hit), c.Tokens, c.Status, strings.TrimSpace(c.Content))
	}
	return nil
}
