package bus

import "sync"

const (
	// maxCounted bounds the messages whose failures a stage remembers.
	maxCounted = 4096
	// DeliveryFactor times MaxTries deliveries dead-letter a message, however they ended.
	DeliveryFactor = 3
)

// tries counts failures by stream sequence. When full, the message that failed first is forgotten; it
// then merely gets more tries. Safe for concurrent use.
type tries struct {
	mu    sync.Mutex
	count map[uint64]int
	order []uint64 // of first failures; may hold sequences that are done
}

func newTries() *tries { return &tries{count: map[uint64]int{}} }

// failed counts one failure and returns how many there are now.
func (t *tries) failed(seq uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.count[seq]; !ok {
		t.order = append(t.order, seq)
		if len(t.order) > maxCounted {
			delete(t.count, t.order[0])
			t.order = t.order[1:]
		}
	}
	t.count[seq]++
	return t.count[seq]
}

// done forgets a message.
func (t *tries) done(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.count, seq)
}
