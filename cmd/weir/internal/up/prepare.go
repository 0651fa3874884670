package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/migrate"
)

const prepareTimeout = 2 * time.Minute

// prepare brings schema and streams up to date and tries the embedding server, so that no service starts
// on less.
func (r *runtime) prepare(ctx context.Context) error {
	if err := r.checkNeeds(); err != nil {
		return err
	}
	if r.databaseURL != "" && r.uses(partPostgres, func(s serviceSpec) bool { return s.needsDB }) {
		if err := r.awaitPostgres(ctx); err != nil {
			return err
		}
		if err := Migrate(ctx, r.databaseURL, r.logger); err != nil {
			return err
		}
	}
	if r.natsURL != "" && r.uses(partNATS, func(serviceSpec) bool { return true }) {
		var opts []nats.Option
		if r.opts.runs(partNATS) {
			opts = append(opts, r.bus.inProcess)
		}
		if err := Provision(ctx, r.processConfig(), r.opts.Streams, r.logger, opts...); err != nil {
			return err
		}
		if err := r.writeContext(); err != nil {
			r.logger.Warn("no context for the nats tool", "err", err)
		}
	}
	return r.probeEmbedding(ctx)
}

// uses tells whether the part, or a service that needs it, runs here: an address in the environment alone
// is no reason to wait for what is behind it.
func (r *runtime) uses(part string, needs func(serviceSpec) bool) bool {
	if r.opts.runs(part) {
		return true
	}
	for _, s := range services() {
		if needs(s) && r.opts.runs(s.name) {
			return true
		}
	}
	return false
}

// checkNeeds finds services that could not work for want of something that neither runs here nor has an
// address.
func (r *runtime) checkNeeds() error {
	var problems []error
	for _, s := range services() {
		if !r.opts.runs(s.name) {
			continue
		}
		if r.natsURL == "" {
			problems = append(problems, fmt.Errorf("%s needs nats: add it to --only or set NATS_URL", s.name))
		}
		if s.needsDB && r.databaseURL == "" {
			problems = append(problems, fmt.Errorf("%s needs postgres: add it to --only or set DATABASE_URL", s.name))
		}
		if s.needsEmbedding && r.embeddingURL == "" {
			problems = append(problems, fmt.Errorf("%s needs embedding: add it to --only or set EMBEDDING_BASE_URL", s.name))
		}
	}
	return errors.Join(problems...)
}

func (r *runtime) awaitPostgres(ctx context.Context) error {
	pool, err := service.OpenPostgres(ctx, service.PostgresConfig{
		URL: service.SecretURL(r.databaseURL), Name: "weir-up", MaxConns: 1, Wait: r.opts.Process.ConnectWait,
	}, r.logger)
	if err != nil {
		return err
	}
	pool.Close()
	return nil
}

// Migrate brings the schema of the database at url up to date.
func Migrate(ctx context.Context, url string, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	at, err := migrate.Up(ctx, url, migrations.FS(), logger)
	if err != nil {
		return err
	}
	logger.Info("schema is up to date", "version", at.Current)
	return nil
}

// Provision creates or changes streams and consumers to what this program needs and streams asks for. opts
// are added to those of the connection.
func Provision(ctx context.Context, cfg service.Config, streams StreamOptions, logger *slog.Logger, opts ...nats.Option) error {
	nc, err := service.OpenNATS(ctx, service.NATSConfig{
		URL: cfg.NATSURL, Creds: cfg.NATSCreds, Name: "weir-provision", Wait: cfg.ConnectWait, Options: opts,
	}, logger)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open jetstream: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	changes, err := bus.Provision(ctx, js, messages.Streams(), messages.Stages(), streams.settings())
	for _, change := range changes {
		logger.Debug("stream provisioned", "change", change)
	}
	if err != nil {
		return err
	}
	logger.Info("streams are up to date")
	return nil
}

// probeEmbedding tries the model where a server is used and run here or needed by a service of ours.
func (r *runtime) probeEmbedding(ctx context.Context) error {
	needed := r.uses(partEmbedding, func(s serviceSpec) bool { return s.needsEmbedding })
	if !needed || r.embeddingURL == "" || r.opts.EmbeddingModel == "" {
		return nil
	}
	http := embedding.NewHTTPClient(1)
	defer http.CloseIdleConnections()
	client, err := embedding.NewClient(embedding.ClientConfig{
		BaseURL: r.embeddingURL, APIKey: r.opts.EmbeddingKey.Reveal(), Model: r.opts.EmbeddingModel, HTTP: http,
	})
	if err != nil {
		return err
	}
	dims, err := client.Probe(ctx)
	if err != nil {
		return fmt.Errorf("try the embedding server at %s: %w", service.SecretURL(r.embeddingURL), err)
	}
	r.logger.Info("embedding server answers", "model", r.opts.EmbeddingModel, "dims", dims)
	return nil
}
