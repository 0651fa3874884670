package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

// fakeembedCommand is hidden: its vectors mean nothing. Benchmarks and chaos runs use it.
func fakeembedCommand(s *Session) *cobra.Command {
	addr, opts := "", fakeserver.Options{}
	cmd := &cobra.Command{
		Use:    "fakeembed",
		Short:  "Serve meaningless but deterministic vectors over the embeddings API, for tests",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fakeserver.ListenAndServe(cmd.Context(), addr, opts, func(baseURL string) { fmt.Fprintln(s.Out, baseURL) })
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&addr, "addr", "127.0.0.1:0", "address to listen on; the base URL is printed")
	fl.IntVar(&opts.Dims, "dims", 384, "dimensions")
	fl.DurationVar(&opts.Latency, "latency", 0, "delay of every answer")
	return cmd
}
