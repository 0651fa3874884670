package embedding

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ProviderConfig is an endpoint and the key under which it is used.
type ProviderConfig struct {
	BaseURL  string
	APIKey   string // never logged
	Governor GovernorConfig
	Batch    BatchLimits
	// Timeout of one request. Default 60 s.
	Timeout time.Duration
	// MaxThrottleWait is how long one call of batch work waits out rate limits before it returns
	// ErrThrottled; queries wait as long as their deadline allows, or this long without one. Default
	// 30 s; negative: not at all.
	MaxThrottleWait time.Duration
}

const defaultMaxThrottleWait = 30 * time.Second

// Provider embeds texts of any model an endpoint serves. All its models share one governor. Safe for
// concurrent use; Close it when done.
type Provider struct {
	cfg      ProviderConfig
	governor *Governor
	http     *http.Client

	mu     sync.Mutex
	models map[modelKey]*served
}

type modelKey struct {
	model string
	dims  int
}

// served is a model and what was learnt about it.
type served struct {
	client *Client
	caps   *caps
}

// NewProvider checks the configuration; it does not connect.
func NewProvider(cfg ProviderConfig) (*Provider, error) {
	if err := validateBaseURL(cfg.BaseURL); err != nil {
		return nil, fmt.Errorf("embedding provider: %w", err)
	}
	g, err := NewGovernor(cfg.Governor)
	if err != nil {
		return nil, err
	}
	if cfg.MaxThrottleWait == 0 {
		cfg.MaxThrottleWait = defaultMaxThrottleWait
	}
	cfg.Batch = cfg.Batch.withDefaults()
	return &Provider{
		cfg: cfg, governor: g, http: NewHTTPClient(defaultConnections), models: map[modelKey]*served{},
	}, nil
}

// Close drops idle connections. Calls under way are not affected.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Governor is the provider's governor, for metrics.
func (p *Provider) Governor() *Governor { return p.governor }

// Limits is what one request may hold, as far as is known: the configured bounds, lowered by experience.
func (p *Provider) Limits(space Space) BatchLimits {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.models[modelKey{space.Model, space.Dims}]; ok {
		return m.caps.get()
	}
	return p.cfg.Batch
}

// Result has one vector a text, in order. Where a text was rejected for good the vector is nil and
// Rejected says why.
type Result struct {
	Vectors  [][]float32
	Rejected map[int]error
	Usage    Usage
}

// Embed sends the texts as they are (see Space.PassageText) in as many requests as the server's
// limits need. Texts the provider refuses do not spoil the others: they are in Result.Rejected.
// Everything else that goes wrong is the error; then the vectors that were computed before it are
// in the result too, nil elsewhere, so that a caller can keep them for the next try.
func (p *Provider) Embed(ctx context.Context, space Space, lane Lane, texts []string) (Result, error) {
	m, err := p.model(space)
	if err != nil {
		return Result{}, err
	}
	r := run{provider: p, served: m, lane: lane, texts: texts, throttleUntil: p.throttleUntil(ctx, lane)}
	r.result.Vectors = make([][]float32, len(texts))
	err = r.pieces(ctx, span{0, len(texts)})
	if space.Normalized {
		for _, v := range r.result.Vectors {
			normalize(v)
		}
	}
	return r.result, err
}

func (p *Provider) throttleUntil(ctx context.Context, lane Lane) time.Time {
	if deadline, ok := ctx.Deadline(); ok && lane == Interactive {
		return deadline
	}
	return time.Now().Add(p.cfg.MaxThrottleWait)
}

// Probe embeds a short text and returns the number of dimensions of the model as served. A space
// with another one is ErrDimension; one with Dims 0 accepts any.
func (p *Provider) Probe(ctx context.Context, space Space) (int, error) {
	c, err := p.newClient(space)
	if err != nil {
		return 0, err
	}
	permit, err := p.governor.Acquire(ctx, Interactive, EstimateTokens(probeText))
	if err != nil {
		return 0, fmt.Errorf("probe model %s: %w", space.Model, err)
	}
	dims, err := c.Probe(ctx)
	permit.Done(Outcome{Err: err, Limits: noLimits()})
	return dims, err
}

// maxModels bounds what is remembered; past it the provider forgets and learns again.
const maxModels = 256

func (p *Provider) model(space Space) (*served, error) {
	key := modelKey{space.Model, space.Dims}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.models[key]; ok {
		return m, nil
	}
	if err := space.Validate(); err != nil {
		return nil, fmt.Errorf("embedding space: %w", err)
	}
	c, err := p.newClient(space)
	if err != nil {
		return nil, err
	}
	if len(p.models) >= maxModels {
		clear(p.models)
	}
	m := &served{client: c, caps: &caps{now: p.cfg.Batch}}
	p.models[key] = m
	return m, nil
}

func (p *Provider) newClient(space Space) (*Client, error) {
	return NewClient(ClientConfig{
		BaseURL: p.cfg.BaseURL, APIKey: p.cfg.APIKey, Model: space.Model, Dims: space.Dims,
		SendDims: space.Dims > 0 && familyOf(space.Model).sendDims, Timeout: p.cfg.Timeout, HTTP: p.http,
	})
}

// run is one call of Embed.
type run struct {
	provider      *Provider
	served        *served
	lane          Lane
	texts         []string
	throttleUntil time.Time
	result        Result
	healthy       bool // a text known to be harmless was accepted after a failure
}

// embed fills the result for a run of texts, in smaller runs where the server insists.
func (r *run) embed(ctx context.Context, s span) error {
	texts := r.texts[s.low:s.high]
	vectors, err := r.send(ctx, texts)
	switch {
	case err == nil:
		copy(r.result.Vectors[s.low:s.high], vectors)
		return nil
	case errors.Is(err, ErrTooLarge) && len(texts) > 1:
		return r.shrink(ctx, s, messageOf(err))
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrRejected):
		return r.blame(ctx, s, err)
	case errors.Is(err, ErrUnavailable):
		return r.doubt(ctx, texts, err)
	default:
		return err
	}
}

// shrink splits a request that was too large. The server's limit is learnt once the halves passed:
// when a single text turns out to be too long, the size of batches was not at fault.
func (r *run) shrink(ctx context.Context, s span, message string) error {
	rejected := len(r.result.Rejected)
	if err := r.halves(ctx, s); err != nil {
		return err
	}
	if len(r.result.Rejected) == rejected {
		r.served.caps.learn(loadOf(r.texts[s.low:s.high]), message)
	}
	return nil
}

func (r *run) halves(ctx context.Context, s span) error {
	middle := (s.low + s.high) / 2
	if err := r.pieces(ctx, span{s.low, middle}); err != nil {
		return err
	}
	return r.pieces(ctx, span{middle, s.high})
}

// pieces embeds a run of texts within the limits as known now.
func (r *run) pieces(ctx context.Context, s span) error {
	for _, piece := range pack(r.texts[s.low:s.high], r.served.caps.get()) {
		if err := r.embed(ctx, span{s.low + piece.low, s.low + piece.high}); err != nil {
			return err
		}
	}
	return nil
}

// blame finds the text that was refused. First it makes sure that a harmless text is accepted: when
// the provider refuses everything, no document is at fault.
func (r *run) blame(ctx context.Context, s span, err error) error {
	if probe := r.probe(ctx); probe != nil {
		if errors.Is(probe, ErrRejected) || errors.Is(probe, ErrTooLarge) {
			return &Error{Kind: ErrUnauthorized, Message: clip("every text is refused: " + messageOf(probe))}
		}
		return probe
	}
	if s.high-s.low > 1 {
		return r.halves(ctx, s)
	}
	if r.result.Rejected == nil {
		r.result.Rejected = map[int]error{}
	}
	rejection := &Error{Kind: ErrRejected, Message: withoutQuote(messageOf(err), r.texts[s.low])}
	if e, ok := errors.AsType[*Error](err); ok {
		rejection.Status = e.Status
	}
	r.result.Rejected[s.low] = rejection
	return nil
}

// doubt tells an outage from a failure that only these texts provoke, an internal error or a batch
// that takes too long: such a text must not stop the work of everyone. A slow batch is made smaller
// for the next try.
func (r *run) doubt(ctx context.Context, texts []string, err error) error {
	e, ok := errors.AsType[*Error](err)
	slow := errors.Is(err, errRequestTimeout)
	internal := ok && (e.Status == http.StatusInternalServerError || e.Status == http.StatusFailedDependency)
	if (!slow && !internal) || r.probe(ctx) != nil {
		return err
	}
	if slow && len(texts) > 1 {
		r.served.caps.learn(loadOf(texts), "")
	}
	message := e.Message
	for _, t := range texts {
		message = withoutQuote(message, t)
	}
	return &Error{Kind: ErrBadAnswer, Status: e.Status, Message: message}
}

// probe sends a harmless text, once a call.
func (r *run) probe(ctx context.Context) error {
	if r.healthy {
		return nil
	}
	_, err := r.send(ctx, []string{probeText})
	r.healthy = err == nil
	return err
}

// send makes one request under the governor, again after each refusal for rate.
func (r *run) send(ctx context.Context, texts []string) ([][]float32, error) {
	for {
		a, err := r.once(ctx, texts)
		r.result.Usage.Requests += a.usage.Requests
		r.result.Usage.Tokens += a.usage.Tokens
		if !errors.Is(err, ErrThrottled) || !r.patient(err) {
			return a.vectors, err
		}
	}
}

// patient reports whether the wait the provider asks for is within what this call may spend.
func (r *run) patient(err error) bool {
	return time.Now().Add(RetryAfter(err)).Before(r.throttleUntil)
}

func (r *run) once(ctx context.Context, texts []string) (answer, error) {
	tokens := loadOf(texts).tokens
	permit, err := r.provider.governor.Acquire(ctx, r.lane, tokens)
	if err != nil {
		return answer{}, err
	}
	a, err := r.served.client.embed(ctx, texts)
	permit.Done(Outcome{Err: err, Tokens: a.usage.Tokens, Limits: a.limits})
	return a, err
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return err.Error()
}
