package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

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
	c, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	return c.KB(kb).Watch(func(e messages.Event) {
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
			if kb != "" {
				if err := checkName("kb", kb); err != nil {
					return err
				}
			}
			return watchDocuments(cmd.Context(), s, kb, terminal)
		},
	}
	cmd.Flags().StringVar(&kb, "kb", "", "only of this knowledge base")
	cmd.Flags().BoolVar(&terminal, "ended", false, "only what has ended: Ready, Failed, Superseded, Deleted")
	return cmd
}

// watchDocuments shows the events of a knowledge base, or of all of the tenant's where kb is empty. It ends
// without error when ctx does: that is how it is left.
func watchDocuments(ctx context.Context, s *Session, kb string, terminal bool) error {
	c, err := s.Client(ctx)
	if err != nil {
		return err
	}
	watch := c.Watch
	if kb != "" {
		watch = c.KB(kb).Watch
	}
	failed := make(chan error, 1)
	stop, err := watch(func(e messages.Event) {
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
