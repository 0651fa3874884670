package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/progress"
	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/pkg/messages"
)

type publishFlags struct {
	kb       func() (string, error)
	opts     publish.Options
	meta     []string
	metaJSON string
	noWait   bool
	inFlight int
	wait     time.Duration
}

func publishCommand(s *Session) *cobra.Command {
	f := &publishFlags{}
	cmd := &cobra.Command{
		Use:   "publish FILE|DIR|-...",
		Short: "Publish documents and wait until they are searchable",
		Long: `Publishes files, the files of folders (` + strings.Join(publish.Extensions(), " ") + `; hidden
ones and symbolic links in folders are passed over) and standard input, and waits until each document is Ready or has Failed.

A document's id is its path relative to the working directory, or to the argument when it lies outside.
Publishing the same content again changes nothing. With --jsonl every line of the input is a
document: {"docId" or "_id", "title", "text" or "data" (base64), "contentType", "subspace", "metadata"}.
Contents over the server's message size travel through its object store; the limit is 100 MB.

With --json every document is a line of JSON as it ends. The exit code is not 0 when a document failed.`,
		Example: `  weir publish --kb demo examples
  weir publish --kb papers --meta year=2024 --meta author=Li --meta author=Wu paper.pdf
  zcat corpus.jsonl.gz | weir publish --kb corpus --jsonl -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runPublish(cmd.Context(), s, f, args) },
	}
	f.kb = kbFlag(s, cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.opts.JSONL, "jsonl", false, "every line is a document; folders are searched for .jsonl, .ndjson and .jsonl.gz")
	fl.StringArrayVar(&f.meta, "meta", nil, "metadata key=value, typed by the knowledge base's schema; may be repeated, lists too")
	fl.StringVar(&f.metaJSON, "meta-json", "", "metadata as a JSON object; --meta wins over it")
	fl.StringVar(&f.opts.Subspace, "subspace", "", "subspace of the documents")
	fl.StringVar(&f.opts.DocID, "id", "", "id of the document, when there is only one")
	fl.StringVar(&f.opts.Title, "title", "", "title of the document, when there is only one")
	fl.StringVar(&f.opts.ContentType, "content-type", "", "media type (default: by extension, else by content)")
	fl.BoolVar(&f.noWait, "no-wait", false, "return when everything is stored, before it is processed")
	fl.IntVar(&f.inFlight, "in-flight", 16, "documents read and sent at once")
	fl.DurationVar(&f.wait, "wait", 0, "give up waiting after this time; 0: never")
	return cmd
}

func runPublish(ctx context.Context, s *Session, f *publishFlags, args []string) error {
	kb, err := f.kb()
	if err != nil {
		return err
	}
	if err := f.check(args); err != nil {
		return err
	}
	info, err := getKB(ctx, s, kb)
	if err != nil {
		return err
	}
	if f.opts.Metadata, err = publish.Metadata(f.metaJSON, f.meta, info.Metadata); err != nil {
		return err
	}
	f.opts.Stdin = s.In
	if f.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.wait)
		defer cancel()
	}
	return f.run(ctx, s, kb, args)
}

// check refuses what can only be meant for one document.
func (f *publishFlags) check(args []string) error {
	if f.inFlight < 1 {
		return Usagef("--in-flight: must be 1 or more")
	}
	if f.opts.DocID == "" && f.opts.Title == "" {
		for _, arg := range args {
			if arg == publish.Stdin && !f.opts.JSONL {
				return Usagef("a document from standard input needs --id")
			}
		}
		return nil
	}
	if len(args) > 1 || f.opts.JSONL {
		return Usagef("--id and --title are for a single document")
	}
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		return Usagef("--id and --title are for a single document, %s is a folder", args[0])
	}
	if args[0] == publish.Stdin && f.opts.DocID == "" {
		return Usagef("a document from standard input needs --id")
	}
	return nil
}

// outcome collects the ends of documents for the last line and the exit code.
type outcome struct {
	s       *Session
	display *progress.Display
	first   *messages.Error
	err     error // of writing
}

func (o *outcome) result(r publish.Result) {
	if r.Failed() && o.first == nil {
		o.first = r.Error
	}
	switch {
	case o.s.JSON:
		enc := json.NewEncoder(o.s.Out)
		enc.SetEscapeHTML(false)
		o.err = errors.Join(o.err, enc.Encode(r))
	case r.Failed():
		o.display.Line("FAILED %s: %v", r.Name, r.Error)
	case len(r.Warnings) > 0:
		o.display.Line("%s: %s", r.Name, strings.Join(r.Warnings, "; "))
	}
}

// end is the error of a run that published everything it could.
func (o *outcome) end(c publish.Counts) error {
	if o.err != nil {
		return fmt.Errorf("print result: %w", o.err)
	}
	if c.Failed == 0 {
		return nil
	}
	if o.first == nil {
		o.first = messages.Errorf(messages.CodeInternal, "no reason given")
	}
	return fmt.Errorf("%d of %d documents failed, the first with %w", c.Failed, c.Found, o.first)
}

func (f *publishFlags) run(ctx context.Context, s *Session, kb string, args []string) error {
	nc, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	o := &outcome{s: s, display: s.display()}
	p, err := publish.New(nc, publish.Config{
		Tenant: s.Tenant, KB: kb, NoWait: f.noWait, InFlight: f.inFlight, OnResult: o.result,
		OnNote: func(text string) { s.note(o.display, text) },
	})
	if err != nil {
		return err
	}
	began := time.Now()
	stop := follow(o.display, p.Counts)
	err = publishItems(ctx, p, func(ctx context.Context, items chan<- publish.Item) error {
		return publish.Find(ctx, args, f.opts, items)
	})
	err = errors.Join(err, stop())
	c := p.Counts()
	if err != nil {
		if c.Open() > 0 {
			err = fmt.Errorf("%w; %d documents are still on their way: `weir docs list --kb %s` shows them", err, c.Open(), kb)
		}
		return err
	}
	if !s.JSON {
		fmt.Fprintln(s.Out, published(c, time.Since(began)))
	}
	return o.end(c)
}

// published is the last line of a run.
func published(c publish.Counts, took time.Duration) string {
	if c.Found == 0 {
		return "No documents found."
	}
	out := fmt.Sprintf("%d documents in %.1f s: %d ready", c.Found, took.Seconds(), c.Ready)
	if c.Unchanged > 0 {
		out += fmt.Sprintf(" (%d unchanged)", c.Unchanged)
	}
	for _, more := range []struct {
		n    int
		what string
	}{{c.Pending, "pending"}, {c.Superseded, "superseded"}, {c.Failed, "failed"}} {
		if more.n > 0 {
			out += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	if c.Chunks > 0 {
		out += fmt.Sprintf("; %d chunks", c.Chunks)
		if c.Reused > 0 {
			out += fmt.Sprintf(", %d of them embedded before", c.Reused)
		}
	}
	return out + "."
}
