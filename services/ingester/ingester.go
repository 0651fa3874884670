package ingester

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/ingester/internal/intake"
	"github.com/weir-project/weir/services/ingester/internal/joined"
	"github.com/weir-project/weir/services/ingester/internal/split"
	"github.com/weir-project/weir/services/ingester/internal/stage"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// Deps is what the process owns and lends. JS and Store are required, the rest has defaults.
type Deps struct {
	service.Lent
	Store *pgstore.Store
	// AckWait overrides that of the stages, such as a shorter one in tests; 0 keeps it.
	AckWait time.Duration
	// Worker is the program that reads documents: one whose main begins with parseworker.Main. Empty: this one.
	Worker string
	// Parsed is told about every document read; nil: nobody is.
	Parsed func(ParseReport)
}

// Service ingests. New makes one; Run is called once.
type Service struct {
	cfg     Config
	deps    Deps
	pub     *bus.Publisher
	intake  *intake.Intake
	workers *worker.Pool
	runners []*bus.Runner
}

// New checks the configuration and prepares the service; it starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ingester: %w", err)
	}
	if deps.JS == nil || deps.Store == nil {
		return nil, errors.New("ingester: a JetStream handle and a store are required")
	}
	cfg, deps.Lent = cfg.withDefaults(), deps.WithDefaults()
	s := &Service{cfg: cfg, deps: deps}
	var err error
	if s.pub, err = bus.NewPublisher(deps.Publish, bus.PublisherConfig{Telemetry: s.telemetry()}); err != nil {
		return nil, fmt.Errorf("ingester: %w", err)
	}
	store := joined.New(deps.Store)
	s.intake = intake.New(store, intake.NewUploads(deps.JS), deps.Logger, cfg.MaxDocumentBytes)
	s.workers = worker.New(cfg.workers(deps))
	s.intake.UnlockWith(s.workers)
	parsing := stage.New(store, s.pub, s.workers, split.New(store, s.intake, s.pub), cfg.ParseWorkers, cfg.ParseMemoryBytes)
	err = errors.Join(
		s.addRunner(messages.StageIntake, cfg.IntakeWorkers, s.takeIn),
		s.addRunner(messages.StageParse, cfg.ParseWorkers*parseAhead, func(ctx context.Context, d bus.Delivery) ([]bus.Message, error) {
			return parsing.Handle(ctx, d.Body)
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("ingester: %w", err)
	}
	return s, nil
}

// parseAhead is how many messages are in hand for each document that is parsed at a time: the others begin or end
// in the database, many in one transaction.
const parseAhead = 16

func (s *Service) telemetry() bus.Telemetry {
	return bus.Telemetry{Log: s.deps.Logger, Tracer: s.deps.Tracer, Meter: s.deps.Meter}
}

func (s *Service) addRunner(name string, workers int, handle bus.Handler) error {
	st := messages.StageNamed(name)
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

// takeIn handles a submit or delete from the stream, where its place is its identity and its order.
func (s *Service) takeIn(ctx context.Context, d bus.Delivery) ([]bus.Message, error) {
	from := intake.From{
		Tenant: d.Tenant, KB: d.KB, Source: fmt.Sprintf("js/%d/%d", d.StreamCreated.UnixNano(), d.Sequence),
		SubmitID: messages.SubmitRef(d.ID, d.Stream, d.Sequence), Order: pgstore.Order{At: d.StoredAt, Seq: d.Sequence},
		Header: func(name string) string { return d.Header[name] }, Body: d.Body,
	}
	act := s.intake.Submit
	if strings.HasPrefix(d.Subject, messages.SubjectDelete+".") {
		act = s.intake.Delete
	}
	v, err := act(ctx, from)
	return v.Messages, err
}

// Run serves work and requests until ctx is done, and drains. It returns nil on a clean stop, and an
// error when the database or the streams are older than this program, or a stage ends by itself.
func (s *Service) Run(ctx context.Context) error {
	err := s.run(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) { // stopped before everything had started
		return nil
	}
	return fmt.Errorf("ingester: %w", err)
}

func (s *Service) run(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	defer s.workers.Close()
	g, ctx := guard.WithContext(ctx)
	g.Go(func() error { return s.warm(ctx) })
	g.Go(func() error { return s.host().Run(ctx) })
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

// host is what the service does on the bus.
func (s *Service) host() bus.Host {
	return bus.Host{
		Runners: s.runners, Requests: s.deps.Requests, DrainTimeout: s.cfg.DrainTimeout, Ready: s.deps.Ready,
		Info:      bus.ServiceInfo{Name: "weir-ingester", Version: messages.Version, Description: "takes documents in and deletes them"},
		Options:   bus.ServiceOptions{MaxConcurrent: s.cfg.Requests, Outage: pgstore.Retryable, Telemetry: s.telemetry()},
		Endpoints: []bus.Endpoint{s.door(messages.OpSubmit, s.intake.Submit), s.door(messages.OpDelete, s.intake.Delete)},
	}
}

func (s *Service) door(op string, act func(context.Context, intake.From) (intake.Verdict, error)) bus.Endpoint {
	return bus.Endpoint{
		Name: op, Subject: messages.RPCSubject("*", "*", op), Metadata: messages.OperationMetadata(op),
		Handler: func(ctx context.Context, r bus.Request) (any, error) { return s.request(ctx, r, act) },
	}
}

// maxKeyBytes bounds an idempotency key.
const maxKeyBytes = 128

// request takes a submit or delete in at once. Without an idempotency key each request is one of its
// own; its order is the time of its arrival here.
func (s *Service) request(ctx context.Context, r bus.Request, act func(context.Context, intake.From) (intake.Verdict, error)) (any, error) {
	source, id := fmt.Sprintf("rpc/%s/%d", r.ID, r.Received.UnixNano()), r.ID // callers use request ids again
	if key := r.Header[messages.HeaderIdempotencyKey]; key != "" {
		if len(key) > maxKeyBytes || messages.ValidText("", key) != nil {
			return nil, messages.Invalid(messages.HeaderIdempotencyKey, fmt.Sprintf("must be text of at most %d bytes", maxKeyBytes))
		}
		source, id = "key/"+key, key
	}
	v, err := act(ctx, intake.From{
		Tenant: r.Tenant, KB: r.Scope, Source: source, SubmitID: id, Order: pgstore.Order{At: r.Received},
		Header: func(name string) string { return r.Header[name] }, Body: r.Body, Request: true,
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.pub.PublishAck(ctx, v.Messages...); err != nil {
		return nil, err
	}
	return v.Reply, nil
}
