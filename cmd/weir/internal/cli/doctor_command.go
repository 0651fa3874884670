package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/doctor"
	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/service"
)

type doctorFlags struct {
	databaseURL, embeddingURL, model, rerank string
	stuckAfter                               time.Duration
}

func doctorCommand(s *Session) *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what repairs it",
		Long: `Looks at NATS, streams, services, the database with its extension, schema, partitions and indexes, the
embedding server, rerank models, documents that stand still and dead letters. It changes nothing. Each line says ok, warn,
fail, or skip (something else must be repaired first); a fix follows. The exit code is 1 when a check fails.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.databaseURL, "database-url", "", "Postgres (default: DATABASE_URL, else the run of this machine)")
	fl.StringVar(&f.embeddingURL, "embedding-base-url", "", "embedding server (default: EMBEDDING_BASE_URL, else the run of this machine)")
	fl.StringVar(&f.model, "model", up.DefaultOptions().EmbeddingModel, "model to try at the embedding server")
	fl.StringVar(&f.rerank, service.RerankProvidersFlag, "", "rerank models to try, as the retriever is told them (default: WEIR_RERANK_PROVIDERS)")
	fl.DurationVar(&f.stuckAfter, "stuck-after", 10*time.Minute, "how long a document may stand still")
	return cmd
}

func runDoctor(ctx context.Context, s *Session, f *doctorFlags) error {
	findings := doctor.Run(ctx, f.deps(s))
	if err := s.Print(findings, func(w io.Writer) error { return printFindings(w, findings) }); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	failed := 0
	for _, found := range findings {
		if found.Level == doctor.Fail {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

func (f *doctorFlags) deps(s *Session) doctor.Deps {
	return doctor.Deps{
		Connect: func(ctx context.Context) (*nats.Conn, error) { return s.Conn(ctx) },
		Database: func(ctx context.Context) (*pgxpool.Pool, error) {
			url, err := s.DatabaseURL(f.databaseURL)
			if err != nil {
				return nil, err
			}
			return service.OpenPostgres(ctx, service.PostgresConfig{URL: url, Name: "weir-doctor", MaxConns: 2}, s.Logger())
		},
		DatabaseURL: func() (string, error) {
			url, err := s.DatabaseURL(f.databaseURL)
			return url.Reveal(), err
		},
		Embedding: doctor.Embedding{BaseURL: service.SecretURL(f.embedding(s)), Key: s.Getenv("EMBEDDING_API_KEY"), Model: f.model},
		Rerank:    func() (service.RerankProviders, error) { return f.providers(s) },
		Tenant:    s.Tenant, StuckAfter: f.stuckAfter, Patience: s.Timeout,
	}
}

// embedding is the address of the embedding server, empty when nobody says it.
func (f *doctorFlags) embedding(s *Session) string {
	for _, url := range []string{f.embeddingURL, s.Getenv("WEIR_EMBEDDING_BASE_URL"), s.Getenv("EMBEDDING_BASE_URL")} {
		if url != "" {
			return url
		}
	}
	run, err := s.run()
	if err != nil {
		return ""
	}
	return run.EmbeddingURL
}

// providers are the servers of rerank models, none when nobody says them.
func (f *doctorFlags) providers(s *Session) (service.RerankProviders, error) {
	text := f.rerank
	if text == "" {
		text = s.Getenv(service.EnvPrefix + "RERANK_PROVIDERS")
	}
	if text == "" {
		return nil, nil
	}
	var list service.RerankProviders
	err := list.Set(text)
	return list, err
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-4s  %s: %s\n", f.Level, f.Check, f.Says); err != nil {
			return err
		}
		if f.Fix != "" {
			if _, err := fmt.Fprintf(w, "      fix: %s\n", f.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}
