package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// PublishWait publishes a document and waits for the event that ends it: Ready, Superseded or Deleted where
// something newer came in between, or Failed, which is also returned as a *messages.Error. It waits as long as
// ctx allows. When no event comes for a long while (the connection was down, or the user may not subscribe to
// events) it asks for the document's state instead.
func (k *KB) PublishWait(ctx context.Context, d Document, opts ...PublishOption) (messages.Event, error) {
	o, err := k.Prepare(ctx, d, opts...)
	if err != nil {
		return messages.Event{}, err
	}
	return k.sendAndWait(ctx, o)
}

// PublishDeleteWait publishes a delete and waits for the event that ends it, as PublishWait does.
func (k *KB) PublishDeleteWait(ctx context.Context, d messages.Delete, opts ...PublishOption) (messages.Event, error) {
	o, err := k.PrepareDelete(d, opts...)
	if err != nil {
		return messages.Event{}, err
	}
	return k.sendAndWait(ctx, o)
}

func (k *KB) sendAndWait(ctx context.Context, o *Outgoing) (messages.Event, error) {
	l, err := k.c.listen(k.name)
	if err != nil && !errors.Is(err, ErrPermission) {
		return messages.Event{}, errors.Join(err, o.Discard(ctx))
	}
	w := &wait{end: make(chan messages.Event, 1)}
	if l != nil {
		defer k.c.unlisten(l)
		l.add(o.ID(), w)
		defer l.remove(o.ID(), w)
	}
	s, err := k.Send(ctx, o)
	if err != nil {
		if errors.Is(err, ErrBackpressure) {
			err = errors.Join(err, o.Discard(ctx))
		}
		return messages.Event{}, err
	}
	return k.await(ctx, s, w)
}

// await returns the end of a submit.
func (k *KB) await(ctx context.Context, s Submitted, w *wait) (messages.Event, error) {
	tick := time.NewTicker(k.c.opts.Silence)
	defer tick.Stop()
	var unseen error
	for {
		select {
		case e := <-w.end:
			return ended(e)
		case <-tick.C:
			s.Version = w.version()
			e, over, err := k.Ended(ctx, s)
			if over {
				return ended(e)
			}
			unseen = err
		case <-ctx.Done():
			return messages.Event{}, fmt.Errorf("wait for the end of %s: %w", s.ID, errors.Join(context.Cause(ctx), unseen))
		}
	}
}

func ended(e messages.Event) (messages.Event, error) {
	if e.Status != messages.StatusFailed {
		return e, nil
	}
	if e.Error == nil {
		return e, messages.Errorf(messages.CodeInternal, "document %q failed without a reason", e.DocID)
	}
	return e, e.Error
}

// wait is a submit whose end is waited for.
type wait struct {
	end chan messages.Event

	mu   sync.Mutex
	seen int64 // version that an event told
}

func (w *wait) version() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *wait) event(e messages.Event) {
	w.mu.Lock()
	w.seen = max(w.seen, e.Version)
	w.mu.Unlock()
	if !e.Status.Terminal() {
		return
	}
	select {
	case w.end <- e:
	default: // told again
	}
}

// listener hands the events of a knowledge base to those who wait for them. Many waits share one.
type listener struct {
	kb    string
	users int           // guarded by the client's lock
	ready chan struct{} // closed when stop and err are known
	stop  func()
	err   error

	mu    sync.Mutex
	waits map[string]map[*wait]struct{} // by submit id
}

// listen returns the listener of a knowledge base, subscribed, and to be given back.
func (c *Client) listen(kb string) (*listener, error) {
	c.mu.Lock()
	l, known := c.listeners[kb]
	if !known {
		l = &listener{kb: kb, ready: make(chan struct{}), waits: map[string]map[*wait]struct{}{}}
		c.listeners[kb] = l
	}
	l.users++
	c.mu.Unlock()
	if !known {
		l.stop, l.err = c.watch(kb, l.event)
		close(l.ready)
	}
	<-l.ready // within flushTimeout
	if l.err != nil {
		c.unlisten(l)
		return nil, l.err
	}
	return l, nil
}

// unlisten ends the subscription with the last user.
func (c *Client) unlisten(l *listener) {
	c.mu.Lock()
	l.users--
	last := l.users == 0
	if last {
		delete(c.listeners, l.kb)
	}
	c.mu.Unlock()
	if last && l.err == nil {
		l.stop()
	}
}

func (l *listener) add(id string, w *wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits[id] == nil {
		l.waits[id] = map[*wait]struct{}{}
	}
	l.waits[id][w] = struct{}{}
}

func (l *listener) remove(id string, w *wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.waits[id], w); len(l.waits[id]) == 0 {
		delete(l.waits, id)
	}
}

func (l *listener) event(e messages.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.waits[e.SubmitID] {
		w.event(e)
	}
}
