package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/migrate"
)

type migrateFlags struct {
	databaseURL            string
	check                  bool
	skipDatabase, skipNATS bool
	streams                up.StreamOptions
}

// migrateResult is what `weir migrate --json` prints.
type migrateResult struct {
	Schema  *migrate.Versions `json:"schema,omitempty"`
	Streams bool              `json:"streams"`
}

func migrateCommand(s *Session) *cobra.Command {
	f := &migrateFlags{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database schema and the streams up to date",
		Long: "Applies the migrations the database lacks and creates or changes streams and consumers.\n" +
			"Replicas, sizes and ages of streams stay as they are, unless a flag says otherwise.\n" +
			"With --check it changes nothing, and exits with 1 when something is not up to date.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.streams.Validate(); err != nil {
				return usageError{err}
			}
			result, err := runMigrate(cmd.Context(), s, f)
			if err != nil {
				return err
			}
			return s.Print(result, func(w io.Writer) error { return printMigrated(w, result) })
		},
	}
	cmd.Flags().StringVar(&f.databaseURL, "database-url", "", "Postgres (default: DATABASE_URL, else the run of this machine)")
	cmd.Flags().BoolVar(&f.check, "check", false, "only look")
	cmd.Flags().BoolVar(&f.skipDatabase, "skip-database", false, "leave the database alone")
	cmd.Flags().BoolVar(&f.skipNATS, "skip-streams", false, "leave the streams alone")
	fs := flag.NewFlagSet("streams", flag.ContinueOnError)
	f.streams.Flags(fs)
	cmd.Flags().AddGoFlagSet(fs)
	return cmd
}

func runMigrate(ctx context.Context, s *Session, f *migrateFlags) (migrateResult, error) {
	var result migrateResult
	var problems []error
	if !f.skipDatabase {
		at, err := migrateDatabase(ctx, s, f)
		result.Schema = &at
		problems = append(problems, err)
	}
	if !f.skipNATS {
		err := migrateStreams(ctx, s, f)
		result.Streams = err == nil
		problems = append(problems, err)
	}
	return result, errors.Join(problems...)
}

func migrateDatabase(ctx context.Context, s *Session, f *migrateFlags) (migrate.Versions, error) {
	url, err := s.DatabaseURL(f.databaseURL)
	if err != nil {
		return migrate.Versions{}, err
	}
	if f.check {
		err = migrate.Check(ctx, url.Reveal(), migrations.FS())
	} else {
		err = up.Migrate(ctx, url.Reveal(), slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return migrate.Versions{}, err
	}
	return migrate.Version(ctx, url.Reveal(), migrations.FS())
}

func migrateStreams(ctx context.Context, s *Session, f *migrateFlags) error {
	if f.check {
		nc, err := s.Conn(ctx)
		if err != nil {
			return err
		}
		js, err := jetstream.New(nc)
		if err != nil {
			return fmt.Errorf("open jetstream: %w", err)
		}
		return bus.Check(ctx, js, messages.Streams(), messages.Stages())
	}
	url, err := s.NATSURL()
	if err != nil {
		return err
	}
	creds := s.natsCreds
	if creds == "" {
		creds = s.Getenv("WEIR_NATS_CREDS")
	}
	return up.Provision(ctx, service.Config{NATSURL: url, NATSCreds: creds}, f.streams, s.Logger())
}

func printMigrated(w io.Writer, r migrateResult) error {
	if r.Schema != nil {
		fmt.Fprintf(w, "Schema: version %d, up to date.\n", r.Schema.Current)
	}
	if r.Streams {
		fmt.Fprintln(w, "Streams: up to date.")
	}
	return nil
}
