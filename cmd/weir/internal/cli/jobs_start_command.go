package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

// jobFlags are what a new job is told.
type jobFlags struct {
	in                        messages.StartJob
	kb                        func() (string, error)
	model, metric, chunking   string
	dims, chunkSize, overlap  int
	queryPrefix, passage      string
	filter, judged            string
	subspaces                 []string
	stale, gate, wait, detach bool
	minOverlap, maxLoss       float64
	sample, k                 int
	retain                    time.Duration
}

func jobsStartCommand(s *Session) *cobra.Command {
	f := &jobFlags{}
	cmd := &cobra.Command{
		Use:   "start reindex|repair",
		Short: "Start a job",
		Long: `reindex builds a second index of the whole knowledge base, with another model, chunking or analyzer where one is given,
and switches to it when nothing is missing. repair builds documents of the index that is searched anew, in place:
those that --filter, --subspace and --stale choose.`,
		Example: `  weir jobs start reindex --kb papers --model intfloat/multilingual-e5-base --dims 768 --gate --wait
  weir jobs start repair --kb papers --stale`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{string(messages.JobReindex), string(messages.JobRepair)},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.in.Kind = messages.JobKind(args[0])
			return f.start(cmd, s)
		},
	}
	f.common(s, cmd)
	f.configuration(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.filter, "filter", "", "repair: condition on metadata, a filter in JSON")
	fl.StringArrayVar(&f.subspaces, "subspace", nil, "repair: only of this subspace; may be repeated")
	fl.BoolVar(&f.stale, "stale", false, "repair: only documents whose chunks are not complete")
	return cmd
}

func reindexCommand(s *Session) *cobra.Command {
	f := &jobFlags{}
	cmd := &cobra.Command{
		Use:   "reindex",
		Short: "Build the index of a knowledge base anew beside the one that is searched, and switch to it",
		Long: `Short for ` + "`weir jobs start reindex --wait`" + `: without a change of model, chunking or analyzer the index is built anew from what is
stored, with the newest parser. Interrupting the command leaves the job running.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.in.Kind, f.wait = messages.JobReindex, !f.detach
			return f.start(cmd, s)
		},
	}
	f.common(s, cmd)
	f.configuration(cmd)
	cmd.Flags().Lookup("wait").Hidden = true
	cmd.Flags().BoolVar(&f.detach, "detach", false, "only start it")
	return cmd
}

func (f *jobFlags) common(s *Session, cmd *cobra.Command) {
	f.kb = kbFlag(s, cmd)
	fl := cmd.Flags()
	fl.Float64Var(&f.in.RateLimit, "rate", 0, "documents a second; 0 for no limit")
	fl.BoolVar(&f.in.DryRun, "dry-run", false, "only estimate")
	fl.BoolVar(&f.wait, "wait", false, "watch until it is over")
}

func (f *jobFlags) configuration(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "another embedding model")
	fl.IntVar(&f.dims, "dims", 0, "dimensions of its vectors")
	fl.StringVar(&f.metric, "metric", "", "cosine, l2 or ip")
	fl.StringVar(&f.queryPrefix, "query-prefix", "", "what stands before queries for the model")
	fl.StringVar(&f.passage, "passage-prefix", "", "what stands before passages for the model")
	fl.StringVar(&f.chunking, "chunking", "", "another chunking: tokens or whole")
	fl.IntVar(&f.chunkSize, "chunk-size", 0, "tokens of a chunk")
	fl.IntVar(&f.overlap, "overlap", 0, "tokens repeated from the chunk before")
	fl.StringVar(&f.in.Analyzer, "analyzer", "", "another analyzer")
	fl.IntVar(&f.in.MaxFailed, "max-failed", 0, "how many documents may fail and be lost from the new index")
	fl.BoolVar(&f.in.Manual, "manual", false, "wait for approval (weir jobs approve) before the switch")
	fl.BoolVar(&f.gate, "gate", false, "compare both indexes first: how much of what sampled queries find is the same")
	fl.StringVar(&f.judged, "judged", "", "compare nDCG on the judged queries of this file: lines {\"query\": \"...\", \"relevant\": {\"doc\": 1}}")
	fl.IntVar(&f.k, "k", 0, "gate: documents of each answer (default 10)")
	fl.IntVar(&f.sample, "sample", 0, "gate: queries to make of stored chunks (default 50)")
	fl.Float64Var(&f.minOverlap, "min-overlap", 0, "gate: least overlap, 0 to 1 (default 0.5)")
	fl.Float64Var(&f.maxLoss, "max-loss", 0, "gate: most nDCG lost, 0 to 1 (default 0.02)")
	fl.DurationVar(&f.retain, "retain", messages.DefaultJobRetain, "how long the old index is kept for a rollback")
}

func (f *jobFlags) start(cmd *cobra.Command, s *Session) error {
	var err error
	if f.in.KnowledgeBaseName, err = f.kb(); err != nil {
		return err
	}
	if err := f.build(cmd); err != nil {
		return err
	}
	if err := f.in.Validate(); err != nil {
		return usageError{err}
	}
	var j messages.JobInfo
	if err := s.Request(cmd.Context(), messages.TenantScope, messages.OpJobStart, f.in, &j); err != nil {
		return err
	}
	if f.wait && !f.in.DryRun {
		fmt.Fprintf(s.Err, "Started job %d: %s\n", j.ID, estimateText(j.Estimate))
		return watchJob(cmd.Context(), s, j.ID)
	}
	return s.Print(j, func(w io.Writer) error { return printJob(w, j) })
}

// build fills the request from the flags that were given.
func (f *jobFlags) build(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if changed("model") || changed("dims") || changed("metric") || changed("query-prefix") || changed("passage-prefix") {
		f.in.Embedding = &messages.Embedding{Model: f.model, Dims: f.dims, Metric: f.metric}
		if changed("query-prefix") {
			f.in.Embedding.QueryPrefix = &f.queryPrefix
		}
		if changed("passage-prefix") {
			f.in.Embedding.PassagePrefix = &f.passage
		}
	}
	if changed("chunking") || changed("chunk-size") || changed("overlap") {
		f.in.Chunking = &messages.Chunking{Strategy: f.chunking, Size: f.chunkSize}
		if changed("overlap") {
			f.in.Chunking.Overlap = &f.overlap
		}
	}
	if changed("retain") {
		seconds := int64(f.retain / time.Second)
		f.in.RetainSeconds = &seconds
	}
	if f.filter != "" || f.stale || len(f.subspaces) > 0 {
		f.in.Selector = &messages.JobSelector{Subspaces: f.subspaces, Stale: f.stale}
		if f.filter != "" {
			if !json.Valid([]byte(f.filter)) {
				return Usagef("--filter is no valid JSON")
			}
			f.in.Selector.Filter = json.RawMessage(f.filter)
		}
	}
	return f.gates(changed)
}

func (f *jobFlags) gates(changed func(string) bool) error {
	if !f.gate && f.judged == "" {
		for _, name := range []string{"k", "sample", "min-overlap", "max-loss"} {
			if changed(name) {
				return Usagef("--%s is of a gate: add --gate or --judged", name)
			}
		}
		return nil
	}
	f.in.Gate = &messages.JobGate{K: f.k, Sample: f.sample, MinOverlap: f.minOverlap, MaxLoss: f.maxLoss}
	if f.judged == "" {
		return nil
	}
	var err error
	f.in.Gate.Judged, err = readJudged(f.judged)
	return err
}

// readJudged reads a query a line.
func readJudged(path string) ([]messages.JudgedQuery, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read judged queries: %w", err)
	}
	var out []messages.JudgedQuery
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var q messages.JudgedQuery
		if err := messages.DecodeStrict(lines.Bytes(), &q); err != nil {
			return nil, Usagef("%s:%d: %w", path, n, err)
		}
		out = append(out, q)
	}
	return out, lines.Err()
}
