package retriever

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/retriever/internal/browse"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
	"github.com/weir-project/weir/services/retriever/internal/engine"
	"github.com/weir-project/weir/services/retriever/internal/query"
	"github.com/weir-project/weir/services/retriever/internal/rerank"
)

// Deps is what the process owns and lends. NC and Store are required, the rest has defaults.
type Deps struct {
	NC     *nats.Conn // must stay open until Run has returned
	Store  *pgstore.Store
	Logger *slog.Logger
	Tracer trace.TracerProvider
	Meter  metric.MeterProvider
	// Ready is called once, when requests are served.
	Ready func()
}

// Service answers requests. New makes one; Run is called once.
type Service struct {
	cfg    Config
	deps   Deps
	limits messages.RetrieveLimits
	engine *engine.Engine
	models *rerank.Models
	browse *browse.Browser
}

// New checks the configuration and prepares the service; it starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("retriever: %w", err)
	}
	if deps.NC == nil || deps.Store == nil {
		return nil, errors.New("retriever: a connection and a store are required")
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.Tracer == nil {
		deps.Tracer = tracenoop.NewTracerProvider()
	}
	cfg = cfg.withDefaults()
	s := &Service{cfg: cfg, deps: deps}
	s.limits = cfg.limits()
	var err error
	if s.models, err = rerank.New(cfg.Rerank, deps.Meter); err != nil {
		return nil, fmt.Errorf("retriever: %w", err)
	}
	s.engine = engine.New(engine.Config{
		Limits: s.limits, Models: cfg.Rerank.Names(), Reranker: s.models, Loader: deps.Store, Searcher: pgstore.NewSearcher(deps.Store, cfg.CacheBytes),
		Embedder: query.New(s.embed(), cfg.VectorEntries), Cursors: cursor.NewSigner(s.cursorKey(), time.Now), ReplyBytes: s.replyBytes, CandidateBytes: int(cfg.CandidateBytes),
		Tracer: deps.Tracer.Tracer("github.com/weir-project/weir/services/retriever"), Log: deps.Logger,
	})
	s.browse = &browse.Browser{Store: deps.Store, ReplyBytes: s.replyBytes(), Limits: s.limits}
	return s, nil
}

// cursorKey is the key of the configuration, or one of this process.
func (s *Service) cursorKey() []byte {
	if s.cfg.CursorKey != "" {
		return []byte(s.cfg.CursorKey.Reveal())
	}
	s.deps.Logger.Info("no retriever-cursor-key: cursors are good for this process alone and end with it")
	return cursor.RandomKey()
}

// embed calls the embedder service.
func (s *Service) embed() query.Caller {
	client := bus.Client{NC: s.deps.NC, RetryFor: s.cfg.EmbedWait, Telemetry: s.telemetry()}
	return func(ctx context.Context, in messages.EmbedRequest) (messages.EmbedReply, error) {
		var out messages.EmbedReply
		err := client.Call(ctx, messages.SubjectEmbed, nil, in, &out)
		return out, err
	}
}

func (s *Service) telemetry() bus.Telemetry {
	return bus.Telemetry{Log: s.deps.Logger, Tracer: s.deps.Tracer, Meter: s.deps.Meter}
}

// replySlack is left of the payload limit for envelope and headers.
const replySlack = 16 << 10

// replyBytes is the room for the data of a reply.
func (s *Service) replyBytes() int { return int(s.deps.NC.MaxPayload()) - replySlack }

// Run checks the schema, serves until ctx is done and waits for the requests in hand. It returns nil
// on a clean stop, and an error when the database was not migrated or the endpoints cannot be served.
func (s *Service) Run(ctx context.Context) error {
	defer s.models.Close()
	if err := service.Await(ctx, s.deps.Logger, pgstore.Retryable, s.deps.Store.CheckSchema); err != nil {
		return fmt.Errorf("retriever: %w", err)
	}
	if err := s.host().Run(ctx); err != nil {
		return fmt.Errorf("retriever: %w", err)
	}
	return nil
}

// host is what the service does on the bus.
func (s *Service) host() bus.Host {
	return bus.Host{
		Requests: s.deps.NC, Endpoints: s.endpoints(), DrainTimeout: s.cfg.DrainTimeout, Ready: s.deps.Ready,
		Info:    bus.ServiceInfo{Name: "weir-retriever", Version: messages.Version, Description: "hybrid retrieval, and reading knowledge bases and documents"},
		Options: bus.ServiceOptions{MaxConcurrent: s.cfg.Concurrency, DefaultDeadline: s.cfg.DefaultDeadline, Telemetry: s.telemetry()},
	}
}
