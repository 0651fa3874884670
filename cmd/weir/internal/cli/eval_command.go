package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
	"github.com/weir-project/weir/cmd/weir/internal/progress"
	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/pkg/messages"
)

type evalFlags struct {
	dir, all, kb, runFile string
	modes                 []string
	n, concurrency        int
	chunk                 bool
	sweep                 sweepFlags
}

func evalCommand(s *Session) *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure retrieval quality on a test collection",
		Long: `Reads a folder in BEIR's layout (corpus.jsonl or corpus.jsonl.gz, queries.jsonl, qrels.tsv), publishes the
corpus through the whole pipeline unless it is there already, asks every judged query and prints nDCG@10,
Recall@100 and MRR@10 as trec_eval computes them. Every document is one chunk (title and text) unless
--chunk is given; hits are folded to documents, the best chunk of each.

The knowledge base is named by the folder and a hash of the corpus, so it is published once for all modes.
Each leg gives 100 candidates in the modes sparse and vector, 20 in hybrid, unless --n says otherwise.
--all measures every set of a folder in every mode and prints one Markdown table.

--sweep finds the ranking that suits a set: it asks every query once, keeps both legs' lists and scores, and
compares the fusion types, weights and list lengths on them, exactly as the service would rank, without
embedding or indexing anything again. Differences from the default are paired, query by query, with an
interval. With --all the mean of all sets is compared. In --json each line has its configuration, as
weir kb update --retrieval takes it.`,
		Example: `  weir eval --dir sets/scifact
  weir eval --dir sets/scifact --mode sparse --run scifact.run --json
  weir eval --all sets
  weir eval --dir sets/scifact --sweep
  weir eval --all sets --sweep --sweep-weights 0.7,0.5 --sweep-k 60 --sweep-n 20,50/100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEval(cmd, s, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", "", "folder of one set")
	fl.StringVar(&f.all, "all", "", "folder of sets: measure all of them")
	fl.StringVar(&f.kb, "kb", "", "knowledge base (default: by the folder and its corpus)")
	fl.StringSliceVar(&f.modes, "mode", nil, "hybrid, vector or sparse (default hybrid; with --all all three)")
	fl.IntVar(&f.n, "n", 0, "candidates of each leg (default: 100, in hybrid 20)")
	fl.IntVar(&f.concurrency, "concurrency", 4, "queries at a time")
	fl.StringVar(&f.runFile, "run", "", "write the ranking to this file, in TREC's format")
	fl.BoolVar(&f.chunk, "chunk", false, "cut documents by the chunker")
	fl.BoolVar(&f.sweep.on, "sweep", false, "compare fusion types, weights and list lengths")
	fl.StringSliceVar(&f.sweep.n, "sweep-n", nil, "list lengths to try, one for both legs or N1/N2 (default 20,100)")
	fl.StringSliceVar(&f.sweep.shares, "sweep-weights", nil, "dense weights of WEIGHT to try; full text gets what is missing to 1 (default 0.9 to 0.1)")
	fl.StringSliceVar(&f.sweep.ks, "sweep-k", nil, "constants of RRF to try (default 10,60,100)")
	return cmd
}

func (f *evalFlags) check(changed func(string) bool) ([]eval.Mode, error) {
	if (f.dir == "") == (f.all == "") {
		return nil, Usagef("give either --dir or --all")
	}
	if f.all != "" && (f.kb != "" || f.runFile != "") {
		return nil, Usagef("--kb and --run are for one set: use --dir")
	}
	if f.n < 0 || changed("n") && f.n == 0 || f.concurrency < 1 {
		return nil, Usagef("--n and --concurrency must be 1 or more")
	}
	if err := f.checkSweep(changed); err != nil {
		return nil, err
	}
	if f.kb != "" {
		if err := checkName("kb", f.kb); err != nil {
			return nil, err
		}
	}
	return f.chosen()
}

func (f *evalFlags) checkSweep(changed func(string) bool) error {
	for _, name := range []string{"mode", "n", "run"} {
		if f.sweep.on && changed(name) {
			return Usagef("--%s has no meaning with --sweep", name)
		}
	}
	for _, name := range []string{"sweep-n", "sweep-weights", "sweep-k"} {
		if !f.sweep.on && changed(name) {
			return Usagef("--%s needs --sweep", name)
		}
	}
	_, err := f.sweep.grid()
	return err
}

func (f *evalFlags) chosen() ([]eval.Mode, error) {
	var modes []eval.Mode
	for _, m := range f.modes {
		if !slices.Contains(eval.Modes(), eval.Mode(m)) {
			return nil, Usagef("--mode: %q is not hybrid, vector or sparse", m)
		}
		modes = append(modes, eval.Mode(m))
	}
	switch {
	case len(modes) > 1 && f.all == "":
		return nil, Usagef("one --mode at a time, or --all")
	case len(modes) == 0 && f.all != "":
		return eval.Modes(), nil
	case len(modes) == 0:
		return []eval.Mode{eval.Hybrid}, nil
	}
	return modes, nil
}

func runEval(cmd *cobra.Command, s *Session, f *evalFlags) error {
	modes, err := f.check(cmd.Flags().Changed)
	if err != nil {
		return err
	}
	dirs := []string{f.dir}
	if f.all != "" {
		if dirs, err = setsOf(f.all); err != nil {
			return err
		}
	}
	e := &evaluation{s: s, f: f, display: progress.New(s.Err, s.terminal(s.Err), nil)}
	if f.sweep.on {
		g, err := f.sweep.grid()
		if err != nil {
			return err
		}
		return e.sweep(cmd.Context(), dirs, g)
	}
	reports := []eval.Report{}
	for _, dir := range dirs {
		more, err := e.set(cmd.Context(), dir, modes)
		reports = append(reports, more...)
		if err != nil {
			return err
		}
	}
	if f.all != "" {
		return s.Print(reports, func(w io.Writer) error { return eval.Table(w, reports) })
	}
	return s.Print(reports[0], func(w io.Writer) error { return printReport(w, reports[0]) })
}

// setsOf lists the folders below dir that hold a corpus.
func setsOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("find sets: %w", err)
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		for _, corpus := range []string{"corpus.jsonl", "corpus.jsonl.gz"} {
			_, err := os.Stat(filepath.Join(path, corpus))
			if err == nil {
				out = append(out, path)
				break
			}
			if !errors.Is(err, fs.ErrNotExist) && e.IsDir() {
				return nil, fmt.Errorf("find sets: %w", err)
			}
		}
	}
	if len(out) == 0 {
		return nil, Usagef("no folder in %s holds a corpus.jsonl", dir)
	}
	return out, nil
}

// evaluation measures sets. What it says on the way goes to standard error.
type evaluation struct {
	s       *Session
	f       *evalFlags
	display *progress.Display
	failed  []eval.Failure // documents of the set at hand
}

func (e *evaluation) set(ctx context.Context, dir string, modes []eval.Mode) ([]eval.Report, error) {
	set, kb, err := e.prepare(ctx, dir)
	if err != nil {
		return nil, err
	}
	var reports []eval.Report
	for _, mode := range modes {
		r, err := e.mode(ctx, set, kb, mode)
		if err != nil {
			return reports, err
		}
		r.Failed = e.failed
		reports = append(reports, r)
	}
	return reports, nil
}

// prepare opens a set and sees to it that its corpus is in the knowledge base.
func (e *evaluation) prepare(ctx context.Context, dir string) (*eval.Set, string, error) {
	set, err := eval.Open(dir)
	if err != nil {
		return nil, "", err
	}
	kb := e.f.kb
	if kb == "" {
		kb = set.KBName(e.f.chunk)
	}
	in, err := e.ingest(ctx, set, kb)
	e.failed = in.Failed
	return set, kb, err
}

func (e *evaluation) ingest(ctx context.Context, set *eval.Set, kb string) (eval.Ingested, error) {
	nc, err := e.s.Conn(ctx)
	if err != nil {
		return eval.Ingested{}, err
	}
	in, err := eval.Ingest(ctx, set, eval.Target{
		NC: nc, Tenant: e.s.Tenant, KB: kb, Chunked: e.f.chunk, Ask: e.s.Request,
		OnNote: func(text string) { e.display.Line("Note: %s", text) },
		Watch: func(p *publish.Publisher) func() {
			e.display.Line("Publishing the %d documents of %s to knowledge base %s.", set.Docs, set.Name, kb)
			stop := follow(e.display, p.Counts)
			return func() { _ = stop() } // standard error: nowhere to complain
		},
	})
	for _, f := range in.Failed {
		e.display.Line("%s: document %s: %v", set.Name, f.DocID, f.Error)
	}
	if len(in.Failed) > 0 {
		e.display.Line("%s: %d of %d documents failed and count as not found.", set.Name, len(in.Failed), set.Docs)
	}
	return in, err
}

func (e *evaluation) mode(ctx context.Context, set *eval.Set, kb string, mode eval.Mode) (eval.Report, error) {
	answers, err := eval.Ask(ctx, set, mode, e.f.n, e.f.concurrency, func(ctx context.Context, in messages.RetrieveRequest) (messages.RetrieveReply, error) {
		return search(ctx, e.s, kb, in)
	})
	if err != nil {
		return eval.Report{}, fmt.Errorf("ask %s in mode %s: %w", set.Name, mode, err)
	}
	e.refusals(set, answers.Refused)
	if e.f.runFile != "" {
		if err := writeRun(e.f.runFile, answers.Run, "weir-"+string(mode)); err != nil {
			return eval.Report{}, err
		}
	}
	return eval.NewReport(set, kb, mode, answers)
}

func (e *evaluation) refusals(set *eval.Set, ids []string) {
	if len(ids) > 0 {
		e.display.Line("%s: %d queries were refused for their text and count as unanswered: %s", set.Name, len(ids), strings.Join(ids, ", "))
	}
}

func writeRun(path string, run eval.Run, tag string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return eval.WriteRun(f, run, tag)
}

func printReport(w io.Writer, r eval.Report) error {
	fmt.Fprintf(w, "%s, %s, knowledge base %s\n", r.Set, r.Mode, r.KB)
	fmt.Fprintf(w, "  nDCG@10     %.4f\n  Recall@100  %.4f\n  MRR@10      %.4f\n", r.NDCG10, r.Recall100, r.MRR10)
	_, err := fmt.Fprintf(w, "  %d queries, %d without an answer; p50 %.1f ms, p95 %.1f ms\n", r.Queries, r.Unanswered, r.P50Millis, r.P95Millis)
	return err
}
