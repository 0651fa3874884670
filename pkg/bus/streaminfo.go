package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// infoMaxAge is how long a stream's creation time is believed.
const infoMaxAge = 10 * time.Second

// creationTimes remembers when streams were created. Safe for concurrent use.
type creationTimes struct {
	js jetstream.JetStream

	mu   sync.Mutex
	seen map[string]seenStream
}

type seenStream struct{ created, at time.Time }

func newCreationTimes(js jetstream.JetStream) *creationTimes {
	return &creationTimes{js: js, seen: map[string]seenStream{}}
}

// known returns what was heard last.
func (c *creationTimes) known(stream string) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[stream]
	return s.created, ok
}

// fresh returns what was heard less than maxAge ago.
func (c *creationTimes) fresh(stream string, maxAge time.Duration) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[stream]
	return s.created, ok && time.Since(s.at) < maxAge
}

// get returns the creation time of a stream, asking the server when what is known is older than
// maxAge.
func (c *creationTimes) get(ctx context.Context, stream string, maxAge time.Duration) (time.Time, error) {
	if known, ok := c.fresh(stream, maxAge); ok {
		return known, nil
	}
	asked := time.Now()
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("creation time of stream %s: %w", stream, err)
	}
	created := s.CachedInfo().Created
	c.mu.Lock()
	c.seen[stream] = seenStream{created: created, at: asked}
	c.mu.Unlock()
	return created, nil
}
