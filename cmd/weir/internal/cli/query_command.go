package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

// contentRunes is how much of a chunk people are shown.
const contentRunes = 300

type queryFlags struct {
	kbs       func() ([]string, error)
	k         int
	mode      string
	explain   bool
	full      bool
	subspaces []string
	filter    *string // nil: not given
	rerank    rerankFlags
}

func queryCommand(s *Session) *cobra.Command {
	f := &queryFlags{}
	cmd := &cobra.Command{
		Use:   "query TEXT...",
		Short: "Ask a knowledge base, or several",
		Long: `Asks a knowledge base and prints the best chunks with document, page, heading and the score of each leg.
Without --mode the knowledge base decides, by default hybrid: vectors and words together. Several --kb are asked
together: one order for all, the same text once.`,
		Example: `  weir query --kb demo how are chunks made
  weir query --kb demo --mode sparse --k 3 WEIR-2041
  weir query --kb papers --filter "year >= 2024 AND NOT status = 'draft'" how are chunks made
  weir query --kb manuals --kb reports --rerank model how are chunks made`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kbs, err := f.kbs()
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("filter") {
				f.filter = nil
			}
			in, err := f.request(strings.Join(args, " "))
			if err != nil {
				return err
			}
			scope, err := ofSeveral(kbs, &in)
			if err != nil {
				return err
			}
			reply, err := search(cmd.Context(), s, scope, in)
			if err != nil {
				return err
			}
			return s.Print(reply, func(w io.Writer) error { return printAnswers(w, reply, f.full, f.explain) })
		},
	}
	f.kbs = kbsFlag(s, cmd)
	f.rerank.bind(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.k, "k", 10, "how many chunks")
	fl.StringVar(&f.mode, "mode", "", "hybrid, vector or sparse (default: the knowledge base's)")
	fl.BoolVar(&f.explain, "explain", false, "show where the scores come from, how each leg answered and how long it took")
	fl.BoolVar(&f.full, "full", false, "print whole chunks")
	fl.StringArrayVar(&f.subspaces, "subspace", nil, "search only there, with several --kb as KB/SUBSPACE; may be repeated")
	f.filter = fl.String("filter", "", "only documents whose metadata meet this condition, in place of the knowledge base's filter")
	return cmd
}

// request asks for the scores of the legs always: they are part of what is printed.
func (f *queryFlags) request(text string) (messages.RetrieveRequest, error) {
	in := messages.RetrieveRequest{
		Subspace: f.subspaces, Explain: true,
		Query:         &messages.RetrievalQuery{Type: messages.QueryText, Text: text},
		Configuration: &messages.RetrievalConfiguration{Reranking: &messages.RerankingConfig{NumberOfResults: &f.k}},
	}
	if f.filter != nil {
		in.Configuration.FilterExpression = messages.NewExpression(*f.filter)
	}
	switch f.mode {
	case "":
	case "hybrid":
		in.Configuration.SearchType = []messages.SearchType{messages.DenseVector, messages.FullText}
	case "vector":
		in.Configuration.SearchType = []messages.SearchType{messages.DenseVector}
	case "sparse":
		in.Configuration.SearchType = []messages.SearchType{messages.FullText}
	default:
		return in, Usagef("--mode: %q is not hybrid, vector or sparse", f.mode)
	}
	if f.k < 1 {
		return in, Usagef("--k: must be 1 or more")
	}
	return in, f.rerank.set(in.Configuration.Reranking)
}

// search is retrieve for other commands.
func search(ctx context.Context, s *Session, kb string, in messages.RetrieveRequest) (reply messages.RetrieveReply, err error) {
	return reply, s.Request(ctx, kb, messages.OpRetrieve, in, &reply)
}

func printAnswers(w io.Writer, r messages.RetrieveReply, full, explain bool) error {
	if len(r.Results) == 0 {
		fmt.Fprintln(w, "Nothing found.")
	}
	for i, hit := range r.Results {
		fmt.Fprintf(w, "%2d. %s  %s\n", i+1, place(hit), scores(hit))
		for _, line := range strings.Split(excerpt(hit.Content, full), "\n") {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
	if explain {
		printDiagnostics(w, r.Diagnostics)
	}
	for _, note := range notes(r) {
		fmt.Fprintf(w, "Note: %s\n", note)
	}
	if r.Truncated {
		fmt.Fprintln(w, "Note: the answer was cut to fit a message; ask for fewer with --k.")
	}
	return nil
}

// place is document, page and heading of a hit.
func place(hit messages.RetrievedChunk) string {
	parts := []string{hit.DocID}
	if len(hit.Sources) > 0 {
		parts[0] = hit.Sources[0].KB + "/" + hit.DocID
	}
	if hit.Title != "" && hit.Title != hit.DocID {
		parts[0] += " (" + hit.Title + ")"
	}
	switch {
	case hit.PageFrom == 0:
	case hit.PageTo > hit.PageFrom:
		parts = append(parts, fmt.Sprintf("pages %d-%d", hit.PageFrom, hit.PageTo))
	default:
		parts = append(parts, fmt.Sprintf("page %d", hit.PageFrom))
	}
	parts = append(parts, within(hit.Origin)...)
	if len(hit.HeadingPath) > 0 {
		parts = append(parts, strings.Join(hit.HeadingPath, " > "))
	}
	return strings.Join(parts, ", ")
}

// within names the part of a file that a hit comes from; lines only where there is no other.
func within(o messages.Origin) []string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"attachment", o.Attachment}, {"chapter", o.Chapter}, {"sheet", o.Sheet}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if o.Slide > 0 {
		parts = append(parts, fmt.Sprintf("slide %d", o.Slide))
	}
	if o.LineFrom > 0 && len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("lines %d-%d", o.LineFrom, o.LineTo))
	}
	return parts
}

// scores is the score of a hit and of each leg: how much it gave, and its place there when it had one.
func scores(hit messages.RetrievedChunk) string {
	out := fmt.Sprintf("score %.4f", hit.Score)
	if hit.Explain == nil {
		return out
	}
	var legs []string
	for _, leg := range []struct {
		name   string
		detail *messages.LegDetail
	}{{"vector", hit.Explain.Dense}, {"words", hit.Explain.FullText}} {
		if leg.detail == nil {
			continue
		}
		rank := "not listed"
		if leg.detail.Rank > 0 {
			rank = fmt.Sprintf("rank %d", leg.detail.Rank)
		}
		legs = append(legs, fmt.Sprintf("%s %.4f (%s)", leg.name, leg.detail.Raw, rank))
	}
	if len(legs) == 0 || hit.Explain.Model != nil && hit.Explain.Model.Omitted {
		return out
	}
	if hit.Explain.Model != nil { // the legs only found it
		return out + " by the rerank model; " + strings.Join(legs, ", ")
	}
	return out + " = " + strings.Join(legs, ", ")
}

// excerpt is a chunk in one line, or whole.
func excerpt(content string, full bool) string {
	if full {
		return strings.TrimSpace(content)
	}
	runes := []rune(strings.Join(strings.Fields(content), " "))
	if len(runes) <= contentRunes {
		return string(runes)
	}
	return string(runes[:contentRunes]) + "…"
}

func printDiagnostics(w io.Writer, d messages.Diagnostics) {
	if len(d.KnowledgeBases) > 0 {
		fmt.Fprintf(w, "Fusion %s over %d knowledge bases. ", d.Fusion, len(d.KnowledgeBases))
	} else {
		fmt.Fprintf(w, "Fusion %s, generation %d. ", d.Fusion, d.Generation)
	}
	fmt.Fprintf(w, "Time: %.1f ms (embedding %.1f, SQL %.1f, scoring %.1f).\n", d.Timing.TotalMillis, d.Timing.EmbedMillis, d.Timing.SQLMillis, d.Timing.ScoreMillis)
	printLegs(w, "", d.Dense, d.FullText)
	for _, kb := range d.KnowledgeBases {
		printLegs(w, kb.KB+" ", kb.Dense, kb.FullText)
	}
	if r := d.Rerank; r != nil {
		fmt.Fprintf(w, "  rerank model: %s, %d texts, %.1f ms\n", strings.TrimSpace(r.Provider+" "+r.Model), r.Documents, r.Millis)
	}
}

// printLegs prints a line a leg; of is put before its name.
func printLegs(w io.Writer, of string, dense, text *messages.LegDiagnostics) {
	for _, leg := range []struct {
		name string
		d    *messages.LegDiagnostics
	}{{of + "vector", dense}, {of + "words", text}} {
		if leg.d == nil {
			continue
		}
		how := "approximate"
		if leg.d.Exact {
			how = "exact"
		}
		index := "no index"
		if leg.d.Index != "" {
			index = "index " + leg.d.Index
		}
		fmt.Fprintf(w, "  %s: %s, %d candidates, %s, %.1f ms\n", leg.name, how, leg.d.Candidates, index, leg.d.Millis)
	}
}
