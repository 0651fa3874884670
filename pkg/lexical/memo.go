package lexical

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// maxMemoKey is the longest text in bytes that a textMemo keeps; longer ones are computed every time.
const maxMemoKey = 64

// textMemo is a bounded cache of a pure function of a string: two slots a hash value, the one used last in front.
// It is safe for concurrent use without locks: entries are never changed, and a race between two callers costs no
// more than making an entry again.
type textMemo[V any] struct {
	seed    maphash.Seed
	entries []atomic.Pointer[textEntry[V]]
}

type textEntry[V any] struct {
	text  string
	value V
}

// newTextMemo makes a memo of the given number of slots, a power of two.
func newTextMemo[V any](slots int) *textMemo[V] {
	return &textMemo[V]{seed: maphash.MakeSeed(), entries: make([]atomic.Pointer[textEntry[V]], slots)}
}

// get returns the value for text. compute gets a copy, so its result may hold parts of it without keeping the
// caller's text alive.
func (m *textMemo[V]) get(text string, compute func(string) V) *V {
	if v := m.find(text); v != nil {
		return v
	}
	text = strings.Clone(text)
	return m.put(text, compute(text))
}

// find returns the value for text, nil when it is not there.
func (m *textMemo[V]) find(text string) *V {
	if len(text) > maxMemoKey {
		return nil
	}
	front, back := m.slots(text)
	first := front.Load()
	if first != nil && first.text == text {
		return &first.value
	}
	second := back.Load()
	if second == nil || second.text != text {
		return nil
	}
	front.Store(second)
	back.Store(first)
	return &second.value
}

// put returns the value for text that it is given, and keeps it.
func (m *textMemo[V]) put(text string, value V) *V {
	e := &textEntry[V]{text: text, value: value}
	if len(text) <= maxMemoKey {
		front, back := m.slots(text)
		back.Store(front.Load())
		front.Store(e)
	}
	return &e.value
}

func (m *textMemo[V]) slots(text string) (front, back *atomic.Pointer[textEntry[V]]) {
	i := maphash.String(m.seed, text) & uint64(len(m.entries)-2)
	return &m.entries[i], &m.entries[i+1]
}
