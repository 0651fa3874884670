package lexical

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// memo is a bounded cache of entries that are a pure function of their key: two slots a hash value, the one
// used last in front. It is safe for concurrent use without locks: entries are never changed, and a race
// between two callers costs no more than making an entry again.
type memo[E any] []atomic.Pointer[E]

// newMemo makes a memo of the given number of slots, a power of two.
func newMemo[E any](slots int) memo[E] {
	return make(memo[E], slots)
}

// get returns the entry that is the one looked for, making it when it is not there.
func (m memo[E]) get(hash uint64, is func(*E) bool, create func() *E) *E {
	i := hash & uint64(len(m)-2)
	front, back := &m[i], &m[i+1]
	first := front.Load()
	if first != nil && is(first) {
		return first
	}
	e := back.Load()
	if e == nil || !is(e) {
		e = create()
	}
	front.Store(e)
	back.Store(first)
	return e
}

// maxMemoKey is the longest text in bytes that a textMemo keeps; longer ones are computed every time.
const maxMemoKey = 64

// textMemo is a memo of a pure function of a string.
type textMemo[V any] struct {
	seed    maphash.Seed
	entries memo[textEntry[V]]
}

type textEntry[V any] struct {
	text  string
	value V
}

func newTextMemo[V any](slots int) *textMemo[V] {
	return &textMemo[V]{seed: maphash.MakeSeed(), entries: newMemo[textEntry[V]](slots)}
}

// get returns the value for text. compute gets a copy, so its result may hold parts of it without keeping the
// caller's text alive.
func (m *textMemo[V]) get(text string, compute func(string) V) *V {
	create := func() *textEntry[V] {
		text := strings.Clone(text)
		return &textEntry[V]{text: text, value: compute(text)}
	}
	if len(text) > maxMemoKey {
		return &create().value
	}
	is := func(e *textEntry[V]) bool { return e.text == text }
	return &m.entries.get(maphash.String(m.seed, text), is, create).value
}
