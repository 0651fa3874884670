package bus

import "sync"

// crew runs functions on goroutines that stay. A handler reaches deep, and a new goroutine for each message
// would grow its stack anew every time, which costs more than the message. There are as many as ever ran at
// once. The zero value is ready; it is safe for concurrent use.
type crew struct {
	mu     sync.Mutex
	idle   []*hand // the last that worked first: its stack is warm
	closed bool
}

// hand is one goroutine of a crew.
type hand struct {
	work chan func()
	done chan struct{}
}

// run returns when f has, or has ended its goroutine. f must not panic.
func (c *crew) run(f func()) {
	h := c.take()
	h.work <- f
	if _, stays := <-h.done; stays {
		c.giveBack(h)
	}
}

func (c *crew) take() *hand {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return h
	}
	h := &hand{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		for f := range h.work {
			f()
			h.done <- struct{}{}
		}
	}()
	return h
}

func (c *crew) giveBack(h *hand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		close(h.work)
		return
	}
	c.idle = append(c.idle, h)
}

// close ends the goroutines, those that are running when they are done.
func (c *crew) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, h := range c.idle {
		close(h.work)
	}
	c.idle = nil
}
