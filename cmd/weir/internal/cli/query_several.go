package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

// kbsFlag is kbFlag for a command that takes several knowledge bases.
func kbsFlag(s *Session, cmd *cobra.Command) func() ([]string, error) {
	var given []string
	cmd.Flags().StringArrayVar(&given, "kb", nil, "knowledge base (default: WEIR_KB); may be repeated")
	return func() ([]string, error) {
		names := given
		if len(names) == 0 {
			names = strings.Fields(s.Getenv("WEIR_KB"))
		}
		if len(names) == 0 {
			return nil, Usagef("name the knowledge base with --kb or WEIR_KB; `weir kb list` lists them")
		}
		for i, name := range names {
			if err := checkName("kb", name); err != nil {
				return nil, err
			}
			if slices.Contains(names[:i], name) {
				return nil, Usagef("--kb: %s is there twice", name)
			}
		}
		return names, nil
	}
}

// ofSeveral makes a request one to these knowledge bases and returns the scope of its subject.
func ofSeveral(kbs []string, in *messages.RetrieveRequest) (scope string, err error) {
	if len(kbs) == 1 {
		return kbs[0], nil
	}
	in.KnowledgeBaseNames = kbs
	for _, given := range in.Subspace {
		kb, subspace, ok := strings.Cut(given, "/")
		if !ok || !slices.Contains(kbs, kb) {
			return "", Usagef("--subspace: %q is not KB/SUBSPACE of one of %s", given, strings.Join(kbs, ", "))
		}
		if in.Subspaces == nil {
			in.Subspaces = map[string][]string{}
		}
		in.Subspaces[kb] = append(in.Subspaces[kb], subspace)
	}
	in.Subspace = nil
	return messages.AllScope, nil
}

// rerankFlags choose how the lists are joined.
type rerankFlags struct{ method, provider, model string }

func (f *rerankFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.method, "rerank", "", "weight, rrf or model (default: the knowledge base's)")
	fl.StringVar(&f.provider, "rerank-provider", "", "with --rerank model: whose model (default: the server's first provider)")
	fl.StringVar(&f.model, "rerank-model", "", "with --rerank model: which one (default: the provider's first)")
}

func (f *rerankFlags) set(in *messages.RerankingConfig) error {
	switch f.method {
	case "":
	case "weight", "rrf", "model":
		in.Type = messages.RerankType(strings.ToUpper(f.method))
	default:
		return Usagef("--rerank: %q is not weight, rrf or model", f.method)
	}
	if f.provider == "" && f.model == "" {
		return nil
	}
	if f.method != "model" {
		return Usagef("--rerank-provider and --rerank-model go with --rerank model")
	}
	in.Model = &messages.ModelConfig{Provider: f.provider, Model: f.model}
	return nil
}

// notes is everything that a reply says of how it came to be less than was asked for.
func notes(r messages.RetrieveReply) []string {
	d := r.Diagnostics
	out := slices.Concat(d.Degraded, d.Notes)
	if slices.Contains(d.Dropped, messages.DroppedRerank) {
		out = append(out, "no time was left for the rerank model, the order is that of RRF; a longer --timeout helps")
	}
	for _, f := range r.Failures {
		out = append(out, fmt.Sprintf("%s gave nothing: %s: %s", f.KB, f.Code, f.Message))
	}
	for _, kb := range d.KnowledgeBases {
		for _, note := range slices.Concat(kb.Degraded, kb.Notes) {
			out = append(out, kb.KB+": "+note)
		}
	}
	return out
}
