package embedding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Lane is the urgency of a request.
type Lane int

// Interactive requests have somebody waiting; Batch requests fill the rest.
const (
	Interactive Lane = iota
	Batch
)

// String is the lane's name in metrics.
func (l Lane) String() string {
	if l == Interactive {
		return "interactive"
	}
	return "batch"
}

// GovernorConfig is what a provider key allows.
type GovernorConfig struct {
	// RequestsPerMinute and TokensPerMinute are the plan's limits; 0 means none.
	RequestsPerMinute int
	TokensPerMinute   int
	// InFlight is the most requests under way at once. Default 8. Batch work uses one less, so that
	// a query finds a free place, unless there is only one.
	InFlight int
	// Hooks are called outside of locks; each may be nil.
	Hooks Hooks
}

// Hooks observe a governor.
type Hooks struct {
	Waited func(lane Lane, d time.Duration)            // before a request was let through
	Done   func(lane Lane, d time.Duration, err error) // after it was answered
	Held   func(d time.Duration)                       // everyone waits this long, at the provider's word
}

// GovernorStats is a snapshot.
type GovernorStats struct {
	InFlight, Limit             int // requests under way, and how many may be at the moment
	WaitingQueries, WaitingWork int
	HeldUntil                   time.Time // zero or past: not held
}

// Governor lets requests through to one provider key: as many at once and a minute as allowed,
// queries ahead of batch work, nobody while the provider asked to wait. It halves the number at once
// when throttled and raises it again with success. Safe for concurrent use; see NewGovernor.
type Governor struct {
	cfg GovernorConfig

	mu        sync.Mutex
	queues    [2][]*waiter
	inFlight  [2]int
	limit     int // current maximum in flight
	successes int // in a row, since the limit last changed
	throttles int // in a row, for the wait when the provider names none
	requests  *bucket
	tokens    *bucket
	reducedAt time.Time // when the limit last fell
	heldUntil time.Time
	timer     *time.Timer
}

type waiter struct {
	tokens  int
	granted chan struct{}
}

const defaultInFlight = 8

// NewGovernor returns a governor. Negative settings are an error.
func NewGovernor(cfg GovernorConfig) (*Governor, error) {
	if cfg.RequestsPerMinute < 0 || cfg.TokensPerMinute < 0 || cfg.InFlight < 0 {
		return nil, errors.New("embedding governor: limits must not be negative")
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = defaultInFlight
	}
	now := time.Now()
	return &Governor{
		cfg: cfg, limit: cfg.InFlight,
		requests: newBucket(cfg.RequestsPerMinute, now), tokens: newBucket(cfg.TokensPerMinute, now),
	}, nil
}

// BatchPlaces is how many requests of batch work may be under way at once, at least 1.
func (g *Governor) BatchPlaces() int { return max(g.cfg.InFlight-1, 1) }

// Outcome is what a request taught about the provider.
type Outcome struct {
	Err    error
	Tokens int // as counted by the provider, 0 when it does not say
	Limits Limits
}

// Permit is the right to send one request. Done must be called once.
type Permit struct {
	g       *Governor
	lane    Lane
	tokens  int
	started time.Time
}

// Acquire waits for a place for a request of about so many tokens. It fails when ctx ends, and at
// once with ErrThrottled when the provider asked everyone to wait beyond ctx's deadline.
func (g *Governor) Acquire(ctx context.Context, lane Lane, tokens int) (*Permit, error) {
	start := time.Now()
	w := &waiter{tokens: tokens, granted: make(chan struct{})}
	if err := g.enqueue(ctx, lane, w); err != nil {
		return nil, err
	}
	select {
	case <-w.granted:
	case <-ctx.Done():
		if g.abandon(lane, w) {
			return nil, fmt.Errorf("wait for the embedding provider: %w", context.Cause(ctx))
		}
	}
	now := time.Now()
	if g.cfg.Hooks.Waited != nil {
		g.cfg.Hooks.Waited(lane, now.Sub(start))
	}
	return &Permit{g: g, lane: lane, tokens: tokens, started: now}, nil
}

func (g *Governor) enqueue(ctx context.Context, lane Lane, w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok && g.heldUntil.After(deadline) {
		return &Error{
			Kind: ErrThrottled, RetryAfter: time.Until(g.heldUntil),
			Message: "the provider asked to wait longer than the deadline allows",
		}
	}
	g.queues[lane] = append(g.queues[lane], w)
	g.dispatch()
	return nil
}

// abandon takes a waiter out of its queue; false when it was granted in the meantime.
func (g *Governor) abandon(lane Lane, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.queues[lane] {
		if other == w {
			g.queues[lane] = append(g.queues[lane][:i], g.queues[lane][i+1:]...)
			g.dispatch()
			return true
		}
	}
	return false
}

// dispatch grants whatever may go now and sets the timer for what may go later. Batch work never
// passes a waiting query. Called with the lock held.
func (g *Governor) dispatch() {
	now := time.Now()
	for {
		lane, w := g.next()
		if w == nil {
			return
		}
		if wait := g.delay(lane, w, now); wait > 0 {
			g.wakeIn(wait)
			return
		}
		g.requests.take(1, now)
		g.tokens.take(w.tokens, now)
		g.inFlight[lane]++
		g.queues[lane] = g.queues[lane][1:]
		close(w.granted)
	}
}

// next is the waiter whose turn it is, nil when there is none or no place.
func (g *Governor) next() (Lane, *waiter) {
	total := g.inFlight[Interactive] + g.inFlight[Batch]
	if total >= g.limit {
		return 0, nil
	}
	if q := g.queues[Interactive]; len(q) > 0 {
		return Interactive, q[0]
	}
	if q := g.queues[Batch]; len(q) > 0 && g.inFlight[Batch] < max(1, g.limit-1) {
		return Batch, q[0]
	}
	return 0, nil
}

// delay is how long rate limits and the provider's word keep the waiter.
func (g *Governor) delay(lane Lane, w *waiter, now time.Time) time.Duration {
	reserve := 0.0
	if lane == Batch {
		reserve = interactiveShare
	}
	return max(g.heldUntil.Sub(now), g.requests.delay(1, reserve, now), g.tokens.delay(w.tokens, reserve, now))
}

func (g *Governor) wakeIn(d time.Duration) {
	if g.timer != nil {
		g.timer.Reset(d)
		return
	}
	g.timer = time.AfterFunc(d, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.dispatch()
	})
}

// Done gives the place back and adapts to the outcome.
func (p *Permit) Done(o Outcome) {
	g, now := p.g, time.Now()
	g.mu.Lock()
	g.inFlight[p.lane]--
	if o.Tokens > 0 {
		g.tokens.take(o.Tokens-p.tokens, now)
	}
	held := g.adapt(o, p.started, now)
	g.dispatch()
	g.mu.Unlock()
	if held > 0 && g.cfg.Hooks.Held != nil {
		g.cfg.Hooks.Held(held)
	}
	if g.cfg.Hooks.Done != nil {
		g.cfg.Hooks.Done(p.lane, now.Sub(p.started), o.Err)
	}
}

// adapt learns from the outcome and returns for how long everyone is now held.
func (g *Governor) adapt(o Outcome, started, now time.Time) time.Duration {
	throttled := errors.Is(o.Err, ErrThrottled)
	switch {
	case throttled && started.After(g.reducedAt): // those sent before the last reduction say nothing new
		g.throttles++
		g.successes = 0
		g.limit = max(1, g.limit/2)
		g.reducedAt = now
	case o.Err == nil:
		g.throttles = 0
		g.raise()
	}
	hold := RetryAfter(o.Err)
	if throttled && hold == 0 {
		hold = throttleBackoff(max(1, g.throttles))
	}
	hold = max(hold, exhausted(o.Limits.RemainingRequests, o.Limits.ResetRequests),
		exhausted(o.Limits.RemainingTokens, o.Limits.ResetTokens))
	if until := now.Add(hold); hold > 0 && until.After(g.heldUntil) {
		g.heldUntil = until
		return hold
	}
	return 0
}

// raise adds a place after as many successes as there are places.
func (g *Governor) raise() {
	if g.limit >= g.cfg.InFlight {
		return
	}
	if g.successes++; g.successes >= g.limit {
		g.limit, g.successes = g.limit+1, 0
	}
}

// exhausted is the wait a provider announces when nothing is left of a limit.
func exhausted(remaining int, reset time.Duration) time.Duration {
	if remaining == 0 {
		return reset
	}
	return 0
}

const (
	throttleBackoffMin = 500 * time.Millisecond
	throttleBackoffMax = 30 * time.Second
)

// throttleBackoff is the wait after the n-th refusal in a row that names none, with jitter.
func throttleBackoff(n int) time.Duration {
	d := throttleBackoffMax
	if n < 7 {
		d = throttleBackoffMin << (n - 1)
	}
	return d/2 + rand.N(d/2)
}

// Stats is a snapshot for metrics and health.
func (g *Governor) Stats() GovernorStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return GovernorStats{
		InFlight: g.inFlight[Interactive] + g.inFlight[Batch], Limit: g.limit,
		WaitingQueries: len(g.queues[Interactive]), WaitingWork: len(g.queues[Batch]),
		HeldUntil: g.heldUntil,
	}
}
