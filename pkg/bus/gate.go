package bus

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Bounds of a pause whose length the failing side did not tell.
const (
	pauseMin = 250 * time.Millisecond
	pauseMax = 30 * time.Second
	// pauseCap bounds what the failing side may ask for.
	pauseCap = 10 * time.Minute
)

// gate is shut while the stage is paused. Safe for concurrent use.
type gate struct {
	now func() time.Time

	mu    sync.Mutex
	until time.Time
	level int
}

func newGate() *gate { return &gate{now: time.Now} }

// pause shuts the gate and returns for how long. Failures while it is shut already belong to the same
// outage: they can prolong it by an explicit after, and do not make it grow.
func (g *gate) pause(after time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	open := !now.Before(g.until)
	if open {
		g.level++
	}
	if after <= 0 && open {
		after = backoff(g.level, pauseMin, pauseMax)
	}
	if until := now.Add(min(after, pauseCap)); until.After(g.until) {
		g.until = until
	}
	return g.until.Sub(now)
}

// succeeded ends the growth when the gate is open.
func (g *gate) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.now().Before(g.until) {
		g.level = 0
	}
}

// wait returns how long the gate stays shut, zero when it is open.
func (g *gate) wait() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.until.Sub(g.now()))
}

// backoff doubles from lo for the first attempt to hi, the upper half of it random.
func backoff(attempt int, lo, hi time.Duration) time.Duration {
	d := hi
	if shift := max(attempt-1, 0); shift < 30 && lo<<shift > 0 {
		d = min(lo<<shift, hi)
	}
	if d < 2 {
		return d
	}
	return d/2 + rand.N(d/2)
}
