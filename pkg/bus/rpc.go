package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// ServiceInfo is how a service shows itself to discovery.
type ServiceInfo struct {
	Name        string // [A-Za-z0-9_-]
	Version     string // semantic version
	Description string
	Metadata    map[string]string
}

// ServiceOptions are the limits of a service. The zero value is usable.
type ServiceOptions struct {
	// MaxConcurrent requests are handled at once over all endpoints; zero is 64. A quarter of it is
	// kept for endpoints with Priority.
	MaxConcurrent int
	// DefaultDeadline is the time of a request that names none; zero is 10 s. MaxDeadline caps what a
	// request may ask for; zero is 2 min.
	DefaultDeadline, MaxDeadline time.Duration
	// RetryAfter is what an OVERLOADED reply asks callers to wait; zero is 1 s.
	RetryAfter time.Duration
	// Outage, if set, tells which errors of handlers mean that something requests need is away, such as
	// the database: the reply is UNAVAILABLE, as by [Pause].
	Outage func(error) bool
	Telemetry
}

func (o ServiceOptions) withDefaults() ServiceOptions {
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = 64
	}
	if o.DefaultDeadline <= 0 {
		o.DefaultDeadline = 10 * time.Second
	}
	if o.MaxDeadline <= 0 {
		o.MaxDeadline = 2 * time.Minute
	}
	if o.RetryAfter <= 0 {
		o.RetryAfter = time.Second
	}
	o.Telemetry = o.Telemetry.withDefaults()
	return o
}

// Request is one request as it reaches an endpoint.
type Request struct {
	Subject string
	// Tenant and Scope are the tokens of a weir.rpc subject, empty elsewhere. Scope is a knowledge
	// base, messages.TenantScope or messages.AllScope.
	Tenant, Scope string
	Header        Header
	Body          []byte
	ID            string // request id, also in the reply
	Received      time.Time
}

// Endpoint is one operation.
type Endpoint struct {
	Name    string // [A-Za-z0-9_-]
	Subject string // wildcards allowed
	// QueueGroup shares requests among replicas; empty is micro's default.
	QueueGroup string
	// Metadata is shown by discovery; schemas belong here.
	Metadata map[string]string
	// MaxConcurrent bounds this endpoint's requests; zero leaves only the service's limit.
	MaxConcurrent int
	// Priority endpoints may use the part of the service's limit that others may not.
	Priority bool
	// Handler returns the data of the reply. Its context ends at the request's deadline. An error that
	// holds a messages.Error is the reply; Pause is UNAVAILABLE; anything else is logged and INTERNAL.
	Handler func(ctx context.Context, r Request) (any, error)
}

// Service serves endpoints. Safe for concurrent use.
type Service struct {
	nc      *nats.Conn
	opts    ServiceOptions
	name    string
	svc     micro.Service
	metrics *rpcMetrics
	all     chan struct{} // slots of every endpoint
	plain   chan struct{} // of those without Priority
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
	stats   map[string]*endpointStats
}

// NewService registers a service for discovery. Endpoints follow with AddEndpoint: only when they can
// be served. The connection stays the caller's, who drains it after Stop.
func NewService(nc *nats.Conn, info ServiceInfo, opts ServiceOptions) (*Service, error) {
	opts = opts.withDefaults()
	m, err := newRPCMetrics(opts.Telemetry)
	if err != nil {
		return nil, fmt.Errorf("create service %s: %w", info.Name, err)
	}
	s := &Service{
		nc: nc, opts: opts, name: info.Name, metrics: m, stats: map[string]*endpointStats{},
		all:   make(chan struct{}, opts.MaxConcurrent),
		plain: make(chan struct{}, max(1, opts.MaxConcurrent-opts.MaxConcurrent/4)),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.svc, err = micro.AddService(nc, micro.Config{
		Name: info.Name, Version: info.Version, Description: info.Description, Metadata: info.Metadata,
		StatsHandler: s.statsOf,
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			opts.Log.Error("service error", "service", info.Name, "subject", e.Subject, "err", e)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create service %s: %w", info.Name, err)
	}
	return s, nil
}

// AddEndpoint starts to serve e.
func (s *Service) AddEndpoint(e Endpoint) error {
	if e.Handler == nil {
		return fmt.Errorf("add endpoint %s: a handler is required", e.Name)
	}
	stats := &endpointStats{}
	s.mu.Lock()
	s.stats[e.Name] = stats
	s.mu.Unlock()
	ep := &endpoint{Endpoint: e, s: s, stats: stats}
	if e.MaxConcurrent > 0 {
		ep.slots = make(chan struct{}, e.MaxConcurrent)
	}
	opts := []micro.EndpointOpt{micro.WithEndpointSubject(e.Subject), micro.WithEndpointMetadata(e.Metadata)}
	if e.QueueGroup != "" {
		opts = append(opts, micro.WithEndpointQueueGroup(e.QueueGroup))
	}
	if err := s.svc.AddEndpoint(e.Name, micro.HandlerFunc(ep.accept), opts...); err != nil {
		return fmt.Errorf("add endpoint %s on %s: %w", e.Name, e.Subject, err)
	}
	return nil
}

// Stop takes no more requests and waits for those under way. When ctx ends first it cancels their
// contexts, waits two seconds more and returns an error if some still run.
func (s *Service) Stop(ctx context.Context) error {
	err := s.svc.Stop()
	if errors.Is(err, nats.ErrConnectionClosed) {
		err = nil
	}
	// A request already in the client's buffer is still handed to its callback: let it in.
	if ferr := s.nc.FlushTimeout(time.Second); ferr != nil && !errors.Is(ferr, nats.ErrConnectionClosed) {
		s.opts.Log.Warn("flush at stop", "err", ferr)
	}
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	return errors.Join(err, s.wait(ctx))
}

func (s *Service) wait(ctx context.Context) error {
	defer s.cancel(ErrStopping)
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.cancel(ErrStopping)
	select {
	case <-done:
		return nil
	case <-time.After(cancelGrace):
		return fmt.Errorf("stop service %s: requests still run", s.name)
	}
}

// enter registers a request unless the service has stopped.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.running.Add(1)
	return true
}
