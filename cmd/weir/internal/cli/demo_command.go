package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/demo"
	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// demoAnswers is how many chunks the demo shows for a question.
const demoAnswers = 3

func demoCommand(s *Session) *cobra.Command {
	var examples string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start Weir, publish the example documents and ask three questions",
		Long: `Starts Weir in the background unless it runs (or NATS_URL names another one), creates the knowledge base ` + demo.KB + `,
publishes the example documents in English and Chinese, and asks three questions. Run it again as you like.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), s, examples) },
	}
	cmd.Flags().StringVar(&examples, "examples", "", "folder of documents (default: examples, here or beside the program)")
	return cmd
}

// demoResult is what `weir demo --json` prints at the end.
type demoResult struct {
	Documents publish.Counts `json:"documents"`
	Answers   []demoAnswer   `json:"answers"`
	Seconds   float64        `json:"seconds"`
}

type demoAnswer struct {
	Question string                    `json:"question"`
	Results  []messages.RetrievedChunk `json:"results"`
}

func runDemo(ctx context.Context, s *Session, given string) error {
	began := time.Now()
	d := &demonstration{s: s, say: s.Out}
	if s.JSON {
		d.say = s.Err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	examples, err := demo.Examples(given, program)
	if err != nil {
		return err
	}
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.ensureKB(ctx); err != nil {
		return err
	}
	if err := d.publish(ctx, examples); err != nil {
		return err
	}
	if err := d.ask(ctx); err != nil {
		return err
	}
	d.result.Seconds = time.Since(began).Seconds()
	return s.Print(d.result, d.goodbye)
}

type demonstration struct {
	s      *Session
	say    io.Writer
	here   bool // Weir runs on this machine, by `weir up`
	result demoResult
}

// start makes sure that something runs.
func (d *demonstration) start(ctx context.Context) error {
	for _, given := range []string{d.s.natsURL, d.s.Getenv("WEIR_NATS_URL"), d.s.Getenv("NATS_URL")} {
		if given != "" {
			return nil // somebody else's: to reach it is the next step's business
		}
	}
	d.here = true
	dir, err := d.s.Dir()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, detachWait)
	defer cancel()
	used, err := dir.InUse()
	if err != nil {
		return err
	}
	if !used {
		fmt.Fprintf(d.say, "Starting Weir: NATS, Postgres, the embedding server and the services, all on this machine, in %s.\n", dir.Path())
		_, err = up.Detach(ctx, dir, []string{"up"})
		if err == nil || !errors.Is(err, up.ErrRuns) {
			return err
		}
	}
	return d.awaitReady(ctx, dir)
}

// awaitReady waits for a run that somebody else has started.
func (d *demonstration) awaitReady(ctx context.Context, dir statedir.Dir) error {
	for told := false; ; {
		run, err := dir.ReadRun()
		if err == nil && run.State == statedir.StateReady {
			fmt.Fprintf(d.say, "Weir runs already (pid %d).\n", run.PID)
			return nil
		}
		if err == nil && run.State == statedir.StateStopping {
			return fmt.Errorf("%w: weir is stopping; try again when `weir status` says that it does not run", ErrUnavailable)
		}
		if !told {
			told = true
			fmt.Fprintln(d.say, "Weir is starting; waiting for it.")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for weir to start: %w; `weir status` tells how far it is", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *demonstration) ensureKB(ctx context.Context) error {
	_, err := getKB(ctx, d.s, demo.KB)
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeKBNotFound {
		err = d.s.Request(ctx, messages.TenantScope, messages.OpKBCreate, messages.CreateKB{
			KnowledgeBaseName: demo.KB, Description: "example documents, made by weir demo",
		}, nil)
	}
	if err != nil {
		return fmt.Errorf("create knowledge base %s: %w", demo.KB, err)
	}
	return nil
}

func (d *demonstration) publish(ctx context.Context, examples string) error {
	nc, err := d.s.Conn(ctx)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(examples) // ids begin with the folder's name, wherever this runs
	if err != nil {
		return fmt.Errorf("find examples: %w", err)
	}
	fmt.Fprintf(d.say, "Publishing the documents of %s to knowledge base %s.\n\n", examples, demo.KB)
	o := &outcome{s: &Session{IO: IO{Out: d.say}}, display: d.s.display()}
	p, err := publish.New(nc, publish.Config{Tenant: d.s.Tenant, KB: demo.KB, OnResult: o.result, OnNote: func(text string) { d.s.note(o.display, text) }})
	if err != nil {
		return err
	}
	began := time.Now()
	stop := follow(o.display, p.Counts)
	err = publishItems(ctx, p, func(ctx context.Context, items chan<- publish.Item) error {
		return publish.Find(ctx, []string{examples}, publish.Options{Base: filepath.Dir(root)}, items)
	})
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	d.result.Documents = p.Counts()
	fmt.Fprintf(d.say, "\n%s\n", published(d.result.Documents, time.Since(began)))
	return o.end(d.result.Documents)
}

func (d *demonstration) ask(ctx context.Context) error {
	k := demoAnswers
	for _, q := range demo.Questions() {
		reply, err := search(ctx, d.s, demo.KB, messages.RetrieveRequest{
			Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: q.Text}, Explain: true,
			Configuration: &messages.RetrievalConfiguration{Reranking: &messages.RerankingConfig{NumberOfResults: &k}},
		})
		if err != nil {
			return fmt.Errorf("ask %q: %w", q.Text, err)
		}
		d.result.Answers = append(d.result.Answers, demoAnswer{q.Text, reply.Results})
		fmt.Fprintf(d.say, "\nQuestion (%s): %s\n", q.Kind, q.Text)
		if err := printAnswers(d.say, reply, false, false); err != nil {
			return fmt.Errorf("print answers: %w", err)
		}
	}
	return nil
}

// goodbye says what can be done now.
func (d *demonstration) goodbye(w io.Writer) error {
	text := fmt.Sprintf("\nThat took %.1f s. ", d.result.Seconds)
	if d.here {
		text += "Weir keeps running in the background: `WEIR status` shows it, `WEIR down` stops it, `WEIR up` starts it again.\n"
	}
	text += `
Next:
  WEIR query --kb demo 磁盘写满了会怎样
  WEIR query --kb demo --explain --k 3 which pressure for a 37 mm tyre
  WEIR kb create mine
  WEIR publish --kb mine ~/Documents
  WEIR docs watch --kb mine
  WEIR help
`
	_, err := io.WriteString(w, strings.ReplaceAll(text, "WEIR", programName(os.Args[0])))
	return err
}

// programName is how the program was called: bin/weir in a checkout.
func programName(arg0 string) string {
	if filepath.Base(arg0) == "weir" {
		return arg0
	}
	return "weir"
}
