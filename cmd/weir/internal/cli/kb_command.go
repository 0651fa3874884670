package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/messages"
)

func kbCommand(s *Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kb",
		Short: "Create, list, show, change and delete knowledge bases",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(kbCreateCommand(s), kbListCommand(s), kbGetCommand(s), kbUpdateCommand(s), kbDeleteCommand(s))
	return cmd
}

const mandatoryUsage = "condition on metadata that all requests about documents are under: an expression, or a filter in JSON; $tenant is the tenant"

type kbFlags struct {
	indexType, model, metric, chunking, description string
	dims, chunkSize, overlap                        int
	fields, tags                                    []string
	mandatory, retrieval                            string
	subspaces                                       bool
}

func kbCreateCommand(s *Session) *cobra.Command {
	f := &kbFlags{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a knowledge base",
		Long: `Creates a knowledge base. How it embeds and cuts documents is fixed from then on; metadata fields can be
added later. Types of fields: string, long, double, boolean, date, and each with _list behind it.`,
		Example: `  weir kb create papers --field year:long --field author:string_list --tag team=search
  weir kb create shared --field owner:string:internal --mandatory-filter "owner = '$tenant'"`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.create(cmd, args[0])
			if err != nil {
				return err
			}
			var info messages.KBInfo
			if err := s.Request(cmd.Context(), messages.TenantScope, messages.OpKBCreate, in, &info); err != nil {
				return err
			}
			return s.Print(info, func(w io.Writer) error {
				fmt.Fprintf(w, "Created knowledge base %s.\n", info.KnowledgeBaseName)
				return printKB(w, info)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.indexType, "index-type", "", "hybrid, vector or bm25 (default hybrid)")
	fl.StringVar(&f.model, "model", "", "embedding model (default: the server's)")
	fl.IntVar(&f.dims, "dims", 0, "dimensions of the vectors (default: the model's)")
	fl.StringVar(&f.metric, "metric", "", "cosine, l2 or ip (default: the model's)")
	fl.StringVar(&f.chunking, "chunking", "", "tokens (pieces of a size) or whole (one chunk a document, up to 64 KB; default tokens)")
	fl.IntVar(&f.chunkSize, "chunk-size", 0, "tokens of a chunk (default 400)")
	fl.IntVar(&f.overlap, "overlap", 0, "tokens repeated from the chunk before (default 40)")
	fl.StringArrayVar(&f.fields, "field", nil, "metadata field name:type[:internal]; may be repeated")
	fl.BoolVar(&f.subspaces, "subspaces", false, "documents live in subspaces")
	fl.StringVar(&f.mandatory, "mandatory-filter", "", mandatoryUsage)
	fl.StringVar(&f.retrieval, "retrieval", "", retrievalUsage)
	fl.StringVar(&f.description, "description", "", "what it is for")
	fl.StringArrayVar(&f.tags, "tag", nil, "tag key=value; may be repeated")
	return cmd
}

func (f *kbFlags) create(cmd *cobra.Command, name string) (messages.CreateKB, error) {
	in := messages.CreateKB{
		KnowledgeBaseName: name, Description: f.description, IndexType: messages.IndexType(f.indexType), Subspace: f.subspaces,
	}
	var err error
	if in.Metadata, err = fields(f.fields); err != nil {
		return in, err
	}
	if in.Tags, err = pairs("tag", f.tags); err != nil {
		return in, err
	}
	if f.model != "" || f.dims != 0 || f.metric != "" {
		in.Embedding = &messages.Embedding{Model: f.model, Dims: f.dims, Metric: f.metric}
	}
	if f.chunking != "" || f.chunkSize != 0 || cmd.Flags().Changed("overlap") {
		in.Chunking = &messages.Chunking{Strategy: f.chunking, Size: f.chunkSize}
		if cmd.Flags().Changed("overlap") {
			in.Chunking.Overlap = &f.overlap
		}
		if err := in.Chunking.WithDefaults().Validate("chunking"); err != nil {
			return in, usageError{err}
		}
	}
	if in.MandatoryFilter, err = f.mandatoryFilter(cmd); err != nil {
		return in, err
	}
	if in.Retrieval, err = f.retrievalConfiguration(cmd); err != nil {
		return in, err
	}
	if err := in.Validate(); err != nil {
		return in, usageError{err}
	}
	return in, nil
}

// mandatoryFilter is what the flag says; nil when it was not given. What begins with a brace is JSON.
func (f *kbFlags) mandatoryFilter(cmd *cobra.Command) (json.RawMessage, error) {
	switch text := strings.TrimSpace(f.mandatory); {
	case !cmd.Flags().Changed("mandatory-filter"):
		return nil, nil
	case text == "": // an empty variable must not leave everything open
		return nil, Usagef("--mandatory-filter is empty")
	case text[0] != '{':
		return messages.Encode(text)
	case !json.Valid([]byte(text)):
		return nil, Usagef("--mandatory-filter is no valid JSON")
	default:
		return json.RawMessage(text), nil
	}
}

func kbListCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the knowledge bases of the tenant",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listKBs(cmd.Context(), s)
			if err != nil {
				return err
			}
			return s.Print(list, func(w io.Writer) error { return printKBs(w, list.KnowledgeBases) })
		},
	}
}

func listKBs(ctx context.Context, s *Session) (messages.KBList, error) {
	all := messages.KBList{KnowledgeBases: []messages.KBInfo{}}
	for token := ""; ; {
		var page messages.KBList
		if err := s.Request(ctx, messages.TenantScope, messages.OpKBList, messages.Page{NextToken: token}, &page); err != nil {
			return all, err
		}
		all.KnowledgeBases = append(all.KnowledgeBases, page.KnowledgeBases...)
		if token = page.NextToken; token == "" {
			return all, nil
		}
	}
}

func printKBs(w io.Writer, list []messages.KBInfo) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No knowledge base yet: `weir kb create NAME` makes one.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tINDEX\tCHUNKING\tMODEL\tCREATED\tDESCRIPTION")
	for _, kb := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", kb.KnowledgeBaseName, kb.IndexType, chunkingText(kb.Chunking), spaceText(kb.Embedding),
			kb.CreatedAt.Local().Format(time.DateTime), kb.Description)
	}
	return t.Flush()
}

func kbGetCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME",
		Short: "Show a knowledge base and how many documents it has",
		Args:  oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := getKB(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			return s.Print(info, func(w io.Writer) error { return printKB(w, info) })
		},
	}
}

func getKB(ctx context.Context, s *Session, name string) (info messages.KBInfo, err error) {
	return info, s.Request(ctx, name, messages.OpKBGet, messages.KBRef{}, &info)
}

func printKB(w io.Writer, kb messages.KBInfo) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("name", "%s", kb.KnowledgeBaseName)
	if kb.Description != "" {
		line("description", "%s", kb.Description)
	}
	for _, k := range slices.Sorted(maps.Keys(kb.Tags)) {
		line("tag", "%s=%s", k, kb.Tags[k])
	}
	line("index", "%s", kb.IndexType)
	line("embedding", "%s", spaceText(kb.Embedding))
	line("chunking", "%s", chunkingText(kb.Chunking))
	line("analyzer", "%s", kb.Analyzer)
	line("subspaces", "%v", kb.Subspace)
	for _, f := range kb.Metadata {
		internal := ""
		if f.Internal {
			internal = ", internal"
		}
		line("field", "%s: %s%s", f.Name, f.Type, internal)
	}
	if kb.MandatoryFilter != nil {
		line("mandatory filter", "%s", filterText(kb.MandatoryFilter))
	}
	line("created", "%s", kb.CreatedAt.Local().Format(time.DateTime))
	if d := kb.Documents; d != nil {
		line("documents", "%d ready, %d indexing, %d pending, %d failed; %d chunks", d.Ready, d.Indexing, d.Pending, d.Failed, d.Chunks)
	}
	return t.Flush()
}

// filterText is an expression as it was written, or the filter's JSON.
func filterText(raw json.RawMessage) string {
	var expression string
	if json.Unmarshal(raw, &expression) == nil {
		return expression
	}
	return string(raw)
}

func spaceText(s *messages.Space) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%s, %d dimensions, %s", s.Model, s.Dims, s.Metric)
}

func chunkingText(c messages.Chunking) string {
	if c.Strategy == messages.ChunkWhole {
		return c.Strategy
	}
	overlap := 0
	if c.Overlap != nil {
		overlap = *c.Overlap
	}
	return fmt.Sprintf("%s %d/%d", cmp.Or(c.Strategy, messages.ChunkTokens), c.Size, overlap)
}

func kbUpdateCommand(s *Session) *cobra.Command {
	f := &kbFlags{}
	var no without
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Change description, tags, retrieval defaults or mandatory filter of a knowledge base, or add metadata fields",
		Long:  "Changes what is given and leaves the rest. --tag replaces all tags. Fields can be added, never removed or retyped.",
		Args:  oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.update(cmd, no)
			if err != nil {
				return err
			}
			var info messages.KBInfo
			if err := s.Request(cmd.Context(), args[0], messages.OpKBUpdate, in, &info); err != nil {
				return err
			}
			return s.Print(info, func(w io.Writer) error { return printKB(w, info) })
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.description, "description", "", "what it is for")
	fl.StringArrayVar(&f.tags, "tag", nil, "tag key=value; may be repeated; replaces all tags")
	fl.StringArrayVar(&f.fields, "field", nil, "metadata field to add, name:type[:internal]; may be repeated")
	fl.StringVar(&f.mandatory, "mandatory-filter", "", mandatoryUsage)
	fl.StringVar(&f.retrieval, "retrieval", "", retrievalUsage)
	fl.BoolVar(&no.description, "no-description", false, "remove the description")
	fl.BoolVar(&no.tags, "no-tags", false, "remove all tags")
	fl.BoolVar(&no.mandatory, "no-mandatory-filter", false, "remove the mandatory filter: every document is shown")
	return cmd
}

// without says what an update takes away.
type without struct{ description, tags, mandatory bool }

func (f *kbFlags) update(cmd *cobra.Command, no without) (messages.UpdateKB, error) {
	var in messages.UpdateKB
	var err error
	if in.Metadata, err = fields(f.fields); err != nil {
		return in, err
	}
	tags, err := pairs("tag", f.tags)
	if err != nil {
		return in, err
	}
	changed := cmd.Flags().Changed
	if no.description && changed("description") || no.tags && changed("tag") || no.mandatory && changed("mandatory-filter") {
		return in, Usagef("give a value or take it away, not both")
	}
	null := json.RawMessage("null")
	switch {
	case no.description:
		in.Description = null
	case changed("description"):
		in.Description, err = messages.Encode(f.description)
	}
	if err != nil {
		return in, err
	}
	switch {
	case no.tags:
		in.Tags = null
	case changed("tag"):
		in.Tags, err = messages.Encode(tags)
	}
	if err != nil {
		return in, err
	}
	if in.MandatoryFilter, err = f.mandatoryFilter(cmd); err != nil {
		return in, err
	}
	if in.Retrieval, err = f.retrievalConfiguration(cmd); err != nil {
		return in, err
	}
	switch {
	case no.mandatory:
		in.MandatoryFilter = null
	case in.Description == nil && in.Tags == nil && in.MandatoryFilter == nil && in.Retrieval == nil && len(in.Metadata) == 0:
		return in, Usagef("nothing to change: give --description, --tag, --retrieval, --mandatory-filter or --field")
	}
	return in, nil
}

func kbDeleteCommand(s *Session) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a knowledge base with all its documents",
		Args:  oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := getKB(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if !yes {
				if err := s.confirm(fmt.Sprintf("Delete knowledge base %s%s?", args[0], holding(info.Documents))); err != nil {
					return err
				}
			}
			if err := s.Request(cmd.Context(), args[0], messages.OpKBDelete, messages.KBRef{}, nil); err != nil {
				return err
			}
			return s.Print(map[string]string{"deleted": args[0]}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Deleted knowledge base %s.\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func holding(d *messages.DocumentCounts) string {
	if d == nil || d.Ready+d.Pending+d.Indexing+d.Failed == 0 {
		return ""
	}
	return fmt.Sprintf(" with its %d documents", d.Ready+d.Pending+d.Indexing+d.Failed)
}

// oneName takes exactly one argument, the name of a knowledge base.
func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usagef("give exactly one knowledge base, not %q", strings.Join(args, " "))
	}
	return checkName("knowledge base", args[0])
}
