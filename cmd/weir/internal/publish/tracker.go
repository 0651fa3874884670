package publish

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// tracker knows the state of every document of a run. Safe for concurrent use; onResult is called under its
// lock, one result at a time.
type tracker struct {
	onResult func(Result)

	mu     sync.Mutex
	counts Counts
	open   map[string]*submit
	closed bool          // no more documents will come
	done   chan struct{} // closed when the last one has ended
	moved  time.Time     // when an event of ours came last
}

// submit is a document on its way.
type submit struct {
	id     string
	item   Item
	began  time.Time
	status messages.DocumentStatus // "" before the first event
	seq    uint64                  // in the docs stream, 0 until stored
	// version that answers it, as an event told; 0: not known.
	version int64
}

func newTracker(onResult func(Result)) *tracker {
	if onResult == nil {
		onResult = func(Result) {}
	}
	return &tracker{onResult: onResult, open: map[string]*submit{}, done: make(chan struct{}), moved: time.Now()}
}

// add registers a document before it is sent, so that no event can come too early.
func (t *tracker) add(id string, item Item) *submit {
	t.mu.Lock()
	defer t.mu.Unlock()
	item.Data = nil // the sender has it
	item.Submit.Text, item.Submit.Data = nil, nil
	s := &submit{id: id, item: item, began: time.Now()}
	t.open[id] = s
	t.counts.Found++
	t.counts.Queued++
	return s
}

func (t *tracker) stored(id string, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.open[id]; ok {
		s.seq = seq
	}
}

// event takes an event of any document of the knowledge base.
func (t *tracker) event(e messages.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ours := t.open[e.SubmitID]
	if !ours {
		return
	}
	t.moved = time.Now()
	if !e.Status.Terminal() {
		*t.counts.state(s.status)--
		s.status, s.version = e.Status, max(s.version, e.Version)
		*t.counts.state(s.status)++
		return
	}
	r := resultOf(s.item, s.id, s.began)
	r.Status, r.Version, r.Unchanged, r.Chunks, r.Reused = e.Status, e.Version, e.Unchanged, e.Chunks, e.Reused
	r.Warnings, r.Error = e.Warnings, e.Error
	if r.Subspace == "" {
		r.Subspace = e.Subspace
	}
	t.finish(s, r)
}

// end finishes a document with a result that no event told.
func (t *tracker) end(id string, fill func(*Result)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, open := t.open[id]
	if !open {
		return
	}
	r := resultOf(s.item, s.id, s.began)
	fill(&r)
	t.finish(s, r)
}

func (t *tracker) finish(s *submit, r Result) {
	delete(t.open, s.id)
	*t.counts.state(s.status)--
	*t.counts.state(r.Status)++
	if r.Status == messages.StatusReady {
		t.counts.Chunks += r.Chunks
		t.counts.Reused += r.Reused
		if r.Unchanged {
			t.counts.Unchanged++
		}
	}
	t.onResult(r)
	t.check()
}

// close says that nothing more will be added.
func (t *tracker) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.check()
}

func (t *tracker) check() {
	if t.closed && len(t.open) == 0 {
		select {
		case <-t.done:
		default:
			close(t.done)
		}
	}
}

func (t *tracker) snapshot() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// silent returns the documents that are stored and open, oldest first and at most limit, when no event
// of ours has come since before; else none.
func (t *tracker) silent(before time.Time, limit int) []submit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.moved.After(before) {
		return nil
	}
	var out []submit
	for _, s := range t.open {
		if s.seq > 0 && s.began.Before(before) {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b submit) int { return a.began.Compare(b.began) })
	return out[:min(len(out), limit)]
}
