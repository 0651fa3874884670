package lexical

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// maxMemoKey is the longest key in bytes that a memo keeps; longer ones are computed every time.
const maxMemoKey = 64

// memo is a bounded cache of a pure function of a string: two slots a hash value, the one used last in front.
// It is safe for concurrent use without locks: entries are never changed, and a race between two callers
// costs no more than computing a value again.
type memo[V any] struct {
	seed  maphash.Seed
	slots []atomic.Pointer[memoEntry[V]]
}

type memoEntry[V any] struct {
	key   string
	value V
}

// newMemo makes a memo of the given number of slots, a power of two.
func newMemo[V any](slots int) *memo[V] {
	return &memo[V]{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[memoEntry[V]], slots)}
}

// get returns the value for key, computing it when it is not there. compute gets a copy of key, so its
// result may hold parts of it without keeping the caller's text alive.
func (m *memo[V]) get(key string, compute func(string) V) *V {
	if len(key) > maxMemoKey {
		v := compute(strings.Clone(key))
		return &v
	}
	i := maphash.String(m.seed, key) & uint64(len(m.slots)-2)
	front, back := &m.slots[i], &m.slots[i+1]
	first := front.Load()
	if first != nil && first.key == key {
		return &first.value
	}
	e := back.Load()
	if e == nil || e.key != key {
		key = strings.Clone(key)
		e = &memoEntry[V]{key: key, value: compute(key)}
	}
	front.Store(e)
	back.Store(first)
	return &e.value
}
