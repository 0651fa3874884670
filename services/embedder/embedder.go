package embedder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/embedder/internal/query"
	"github.com/weir-project/weir/services/embedder/internal/route"
	"github.com/weir-project/weir/services/embedder/internal/work"
)

// Deps is what the process owns and lends. JS is required, the rest has defaults.
type Deps struct {
	service.Lent
	// Stage overrides the settings of the embed stage, such as a shorter ack wait in tests.
	Stage *messages.Stage
}

func (d Deps) withDefaults() Deps {
	d.Lent = d.WithDefaults()
	if d.Stage == nil {
		stage := messages.StageNamed(messages.StageEmbed)
		d.Stage = &stage
	}
	return d
}

// Service embeds. New makes one; Run is called once.
type Service struct {
	cfg    Config
	deps   Deps
	routes *route.Table
	work   *work.Handler
	query  *query.Handler
	cache  *embedding.Cache
	runner *bus.Runner
}

// New checks the configuration and prepares the service; it starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	if deps.JS == nil {
		return nil, errors.New("embedder: a JetStream handle is required")
	}
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	routes, err := newRoutes(cfg, deps.Meter)
	if err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, deps: deps, routes: routes,
		cache: embedding.NewCache(embedding.CacheConfig{Entries: cfg.CacheEntries}),
		work:  work.New(joinedBy(routes)),
	}
	s.query = query.New(func(model string) (query.Embedder, error) { return routes.Provider(model) }, s.cache)
	pub, err := bus.NewPublisher(deps.Publish, bus.PublisherConfig{Telemetry: s.telemetry()})
	if err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	s.runner, err = bus.NewRunner(deps.JS, pub, s.handle, bus.SubscriberConfig{
		Stage: *deps.Stage, Workers: cfg.Workers, DrainTimeout: cfg.DrainTimeout, Telemetry: s.telemetry(),
	})
	if err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	return s, nil
}

// joinedBy gives each provider's batch work through a joiner of its own.
func joinedBy(routes *route.Table) func(model string) (work.Embedder, error) {
	var all sync.Map // by provider
	return func(model string) (work.Embedder, error) {
		p, err := routes.Provider(model)
		if err != nil {
			return nil, err
		}
		if j, ok := all.Load(p); ok {
			return j.(*work.Joined), nil
		}
		j, _ := all.LoadOrStore(p, work.NewJoined(p, p.Governor().BatchPlaces(), p.Limits))
		return j.(*work.Joined), nil
	}
}

// batchThrottleWait is how long a message waits out rate limits by itself. Past it the whole stage
// pauses: it fetches nothing meanwhile and can be stopped at once.
const batchThrottleWait = 2 * time.Second

func newRoutes(cfg Config, meter metric.MeterProvider) (*route.Table, error) {
	m, err := newMetrics(meter)
	if err != nil {
		return nil, err
	}
	routes := route.New()
	for _, s := range cfg.servers() {
		p, err := embedding.NewProvider(embedding.ProviderConfig{
			BaseURL: s.BaseURL, APIKey: s.APIKey.Reveal(), Timeout: cfg.RequestTimeout,
			MaxThrottleWait: batchThrottleWait,
			Batch:           embedding.BatchLimits{Items: s.BatchItems, Tokens: s.BatchTokens, Bytes: s.BatchBytes},
			Governor: embedding.GovernorConfig{
				RequestsPerMinute: s.RequestsPerMinute, TokensPerMinute: s.TokensPerMinute,
				InFlight: s.InFlight, Hooks: m.hooks(),
			},
		})
		if err != nil {
			return nil, fmt.Errorf("embedder: server %s: %w", s.BaseURL, err)
		}
		if err := routes.Add(p, s.Models...); err != nil {
			return nil, fmt.Errorf("embedder: server %s: %w", s.BaseURL, err)
		}
	}
	return routes, nil
}

// Run checks the streams and probes the model, then serves work and queries until ctx is done, and
// drains. It returns nil on a clean stop, and an error when a stream is missing or out of date
// (bus.ErrTopology), the probe finds another dimension, or the stage ends by itself.
func (s *Service) Run(ctx context.Context) error {
	defer s.routes.Close()
	defer s.cache.Close()
	if err := s.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("embedder: %w", err)
	}
	if err := s.host().Run(ctx); err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	return nil
}

func (s *Service) prepare(ctx context.Context) error {
	outage := func(err error) bool { return !errors.Is(err, bus.ErrTopology) }
	err := service.Await(ctx, s.deps.Logger, outage, func(ctx context.Context) error {
		return bus.Check(ctx, s.deps.JS, streams(), []messages.Stage{*s.deps.Stage})
	})
	if err != nil {
		return err
	}
	return s.probe(ctx)
}

// streams lists those the service takes from and gives to.
func streams() []messages.Stream {
	return slices.DeleteFunc(messages.Streams(), func(s messages.Stream) bool {
		return s.Name != messages.StreamEmbed && s.Name != messages.StreamIndex && s.Name != messages.StreamDead
	})
}

const (
	probeTimeout  = 20 * time.Second
	probePauseMin = 200 * time.Millisecond
	probePauseMax = 10 * time.Second
)

// probe waits until the server answers for the configured model. A wrong dimension is the error.
func (s *Service) probe(ctx context.Context) error {
	if s.cfg.Model == "" {
		return nil
	}
	provider, err := s.routes.Provider(s.cfg.Model)
	if err != nil {
		return fmt.Errorf("probe embedding model: %w", err)
	}
	space := embedding.SpaceOf(s.cfg.Model, s.cfg.Dims)
	for pause := probePauseMin; ; pause = min(2*pause, probePauseMax) {
		once, cancel := context.WithTimeout(ctx, probeTimeout)
		_, err := provider.Probe(once, space)
		cancel()
		if err == nil || errors.Is(err, embedding.ErrDimension) {
			return err
		}
		s.deps.Logger.Warn("embedding server does not answer yet", "model", s.cfg.Model, "pause", pause, "err", err)
		timer := time.NewTimer(max(pause, embedding.RetryAfter(err)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// handle is the stage's handler: it reads the message, keeps within the stage's time and tells an
// outage from a failure.
func (s *Service) handle(ctx context.Context, d bus.Delivery) ([]bus.Message, error) {
	var in messages.EmbedWork
	if err := in.UnmarshalBinary(d.Body); err != nil {
		return nil, messages.Invalid("body", "is not an embed message: "+err.Error())
	}
	if in.Tenant != d.Tenant || in.KB != d.KB {
		return nil, messages.Invalid("kb", "differs from the subject")
	}
	limited, cancel := withinDeadline(ctx)
	defer cancel()
	out, err := s.work.Handle(limited, in)
	switch {
	case err == nil:
	case ctx.Err() == nil && work.Outage(err):
		return nil, bus.Pause(err, embedding.RetryAfter(err))
	default:
		return nil, err
	}
	body, err := messages.Encode(out)
	if err != nil {
		return nil, fmt.Errorf("encode index message: %w", err)
	}
	return []bus.Message{{
		Subject: messages.WorkSubject(messages.StageIndex, in.Tenant, in.KB),
		ID:      in.Ref.MsgID(messages.StageIndex, in.Part),
		Header:  passOn(d.Header),
		Body:    body,
	}}, nil
}

// withinDeadline ends a little before ctx does, so that a message that only waited its turn for too
// long can say so; past ctx's own end it would count as a failed try.
func withinDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*9/10)
}

// passOn keeps the headers that name the document.
func passOn(h bus.Header) bus.Header {
	out := bus.Header{messages.HeaderMsgType: messages.TypeIndex}
	for _, key := range []string{
		messages.HeaderTenant, messages.HeaderKB, messages.HeaderKBID, messages.HeaderDoc,
		messages.HeaderVersion, messages.HeaderFirstAt, messages.HeaderCorrelationID,
	} {
		if v, ok := h[key]; ok {
			out[key] = v
		}
	}
	return out
}
