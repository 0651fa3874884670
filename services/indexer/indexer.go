package indexer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/indexer/internal/admin"
	"github.com/weir-project/weir/services/indexer/internal/commit"
	"github.com/weir-project/weir/services/indexer/internal/dead"
	"github.com/weir-project/weir/services/indexer/internal/index"
	"github.com/weir-project/weir/services/indexer/internal/jobs"
	"github.com/weir-project/weir/services/indexer/internal/lines"
	"github.com/weir-project/weir/services/indexer/internal/reconcile"
	"github.com/weir-project/weir/services/indexer/internal/upkeep"
)

// Deps is what the process owns and lends. JS and Store are required, the rest has defaults.
type Deps struct {
	service.Lent
	Store *pgstore.Store
	// AckWait overrides that of the stages, such as a shorter one in tests; 0 keeps it.
	AckWait time.Duration
}

// Service indexes. New makes one; Run is called once.
type Service struct {
	cfg        Config
	deps       Deps
	pub        *bus.Publisher
	committer  *commit.Committer
	merger     *upkeep.Merger
	keeper     *upkeep.Housekeeper
	reconciler *reconcile.Reconciler
	admin      *admin.Admin
	jobs       *jobs.Runner
	lines      *lines.Ender
	runners    []*bus.Runner
}

// New checks the configuration and prepares the service; it starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	if deps.JS == nil || deps.Store == nil {
		return nil, errors.New("indexer: a JetStream handle and a store are required")
	}
	cfg, deps.Lent = cfg.withDefaults(), deps.WithDefaults()
	s := &Service{cfg: cfg, deps: deps}
	var err error
	if s.pub, err = bus.NewPublisher(deps.Publish, bus.PublisherConfig{Telemetry: s.telemetry()}); err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	s.merger = upkeep.NewMerger(deps.Store, deps.Logger)
	s.keeper = upkeep.NewHousekeeper(deps.Store, s.pub, deps.Logger, cfg.QueryGrace)
	s.committer = commit.New(deps.Store, commit.Limits{Docs: cfg.GroupDocs, Chunks: cfg.GroupChunks, Wait: cfg.GroupWait, Spacing: cfg.GroupSpacing}, s.merger.Touch)
	indexing := index.New(deps.Store, s.committer)
	letters := dead.New(deps.Store)
	s.reconciler = reconcile.New(deps.Store, indexing, s.pub, deps.JS, deps.Logger, cfg.Grace)
	s.lines = lines.New(deps.Store, s.pub, deps.Logger)
	s.admin = admin.New(deps.Store, deps.JS, s.pub, s.probe, messages.Space(embedding.SpaceOf(cfg.Model, cfg.Dims)), cfg.Rerank.Names(), func() { s.jobs.Wake() })
	searcher := pgstore.NewSearcher(deps.Store, gateCacheBytes)
	s.jobs = jobs.New(deps.Store, s.pub, jobs.NewMeasure(deps.Store, searcher, s.embedQueries), s.merger.Touch, deps.Logger, jobs.Config{
		Owner: owner(), Lease: cfg.JobLease, Window: cfg.JobWindow,
	})
	err = errors.Join(
		s.addRunner(messages.StageIndex, cfg.Workers, func(ctx context.Context, d bus.Delivery) ([]bus.Message, error) {
			return indexing.Handle(ctx, d.Body)
		}),
		s.addRunner(messages.StageDead, deadWorkers, letters.Handle),
	)
	if err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	return s, nil
}

const (
	deadWorkers    = 4
	linesEvery     = time.Second
	gateCacheBytes = 64 << 20 // of segments that gates of jobs read
)

// owner names this process in leases, for people.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

func (s *Service) telemetry() bus.Telemetry {
	return bus.Telemetry{Log: s.deps.Logger, Tracer: s.deps.Tracer, Meter: s.deps.Meter}
}

func (s *Service) addRunner(stage string, workers int, handle bus.Handler) error {
	st := messages.StageNamed(stage)
	if s.deps.AckWait > 0 {
		st.AckWait = s.deps.AckWait
	}
	r, err := bus.NewRunner(s.deps.JS, s.pub, handle, bus.SubscriberConfig{
		Stage: st, Workers: workers, DrainTimeout: s.cfg.DrainTimeout, Telemetry: s.telemetry(),
		Outage: pgstore.Retryable, Done: done,
	})
	s.runners = append(s.runners, r)
	return err
}

// done tells which errors mean that work came too late.
func done(err error) bool { return errors.Is(err, pgstore.ErrStale) }

// Run serves work and requests and does the upkeep until ctx is done, and drains. It returns nil on a
// clean stop, and an error when the database or the streams are older than this program, or a stage ends
// by itself.
func (s *Service) Run(ctx context.Context) error {
	defer s.committer.Close()
	err := s.run(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) { // stopped before everything had started
		return nil
	}
	return fmt.Errorf("indexer: %w", err)
}

func (s *Service) run(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	g, ctx := guard.WithContext(ctx)
	g.Go(func() error { return s.host().Run(ctx) })
	g.Go(func() error { return s.reconcile(ctx) })
	g.Go(func() error { return s.merger.Run(ctx, s.cfg.HousekeepingEvery) })
	g.Go(func() error { return s.keeper.Run(ctx, s.cfg.HousekeepingEvery) })
	g.Go(func() error { return s.jobs.Run(ctx) })
	g.Go(func() error { return s.lines.Run(ctx, linesEvery) })
	return g.Wait()
}

// check looks whether database and streams are what this program needs; an outage of either is waited for.
func (s *Service) check(ctx context.Context) error {
	err := service.Await(ctx, s.deps.Logger, pgstore.Retryable, s.deps.Store.CheckSchema)
	if err != nil {
		return err
	}
	return service.Await(ctx, s.deps.Logger, func(err error) bool { return !errors.Is(err, bus.ErrTopology) }, func(ctx context.Context) error {
		return bus.Check(ctx, s.deps.JS, messages.Streams(), messages.Stages())
	})
}

func (s *Service) reconcile(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.ReconcileEvery)
	defer tick.Stop()
	for {
		if err := s.reconciler.Pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.deps.Logger.Error("reconcile", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// host is what the service does on the bus.
func (s *Service) host() bus.Host {
	return bus.Host{
		Runners: s.runners, Requests: s.deps.Requests, Endpoints: s.endpoints(), DrainTimeout: s.cfg.DrainTimeout, Ready: s.deps.Ready,
		Info:    bus.ServiceInfo{Name: "weir-indexer", Version: messages.Version, Description: "changes knowledge bases, and looks after dead letters"},
		Options: bus.ServiceOptions{MaxConcurrent: s.cfg.Requests, Outage: pgstore.Retryable, Telemetry: s.telemetry()},
	}
}

// endpoints is the table of requests.
func (s *Service) endpoints() []bus.Endpoint {
	tenant := func(op string, h func(context.Context, bus.Request) (any, error)) bus.Endpoint {
		return bus.Endpoint{Name: op, Subject: messages.RPCSubject("*", messages.TenantScope, op), Metadata: messages.OperationMetadata(op), Handler: h}
	}
	kb := func(op string, h func(context.Context, bus.Request) (any, error)) bus.Endpoint {
		return bus.Endpoint{Name: op, Subject: messages.RPCSubject("*", "*", op), Metadata: messages.OperationMetadata(op), Handler: h}
	}
	return []bus.Endpoint{
		tenant(messages.OpKBCreate, s.admin.CreateKB),
		kb(messages.OpKBUpdate, s.admin.UpdateKB),
		kb(messages.OpKBDelete, s.deleteKB),
		kb(messages.OpChunkUpdate, s.admin.UpdateChunk),
		tenant(messages.OpDLQList, s.admin.ListDead),
		tenant(messages.OpDLQGet, s.admin.GetDead),
		tenant(messages.OpDLQReplay, s.admin.ReplayDead),
		tenant(messages.OpDLQDiscard, s.admin.DiscardDead),
		tenant(messages.OpJobStart, s.admin.StartJob),
		tenant(messages.OpJobList, s.admin.ListJobs),
		tenant(messages.OpJobGet, s.admin.GetJob),
		tenant(messages.OpJobPause, s.admin.PauseJob),
		tenant(messages.OpJobResume, s.admin.ResumeJob),
		tenant(messages.OpJobCancel, s.admin.CancelJob),
		tenant(messages.OpJobApprove, s.admin.ApproveJob),
		tenant(messages.OpJobRollback, s.admin.RollbackJob),
	}
}

// deleteKB has what the knowledge base left open ended soon.
func (s *Service) deleteKB(ctx context.Context, r bus.Request) (any, error) {
	data, err := s.admin.DeleteKB(ctx, r)
	if err == nil {
		s.keeper.Wake()
	}
	return data, err
}

// probe asks the embedder for one vector of a space.
func (s *Service) probe(ctx context.Context, space messages.Space) error {
	_, err := s.embedQueries(ctx, space, []string{"dimension probe"})
	if err == nil {
		return nil
	}
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeUnavailable {
		return messages.Errorf(messages.CodeEmbeddingUnavailable, "the embedding server cannot be asked about model %s: %s", space.Model, e.Message)
	}
	return err
}

// maxTexts is how many texts a call of the embedder may carry.
const maxTexts = 64

// embedQueries asks the embedder for query vectors.
func (s *Service) embedQueries(ctx context.Context, space messages.Space, texts []string) ([][]float32, error) {
	client := bus.Client{NC: s.deps.Requests, Telemetry: s.telemetry()}
	out := make([][]float32, 0, len(texts))
	for part := range slices.Chunk(texts, maxTexts) {
		var reply messages.EmbedReply
		if err := client.Call(ctx, messages.SubjectEmbed, nil, messages.EmbedRequest{Space: space, Texts: part}, &reply); err != nil {
			return nil, err
		}
		if len(reply.Vectors) != len(part) {
			return nil, fmt.Errorf("embed %d queries: got %d vectors", len(part), len(reply.Vectors))
		}
		for _, raw := range reply.Vectors {
			v, err := embedding.DecodeVector(raw)
			if err != nil {
				return nil, fmt.Errorf("embed queries: %w", err)
			}
			out = append(out, v)
		}
	}
	return out, nil
}
