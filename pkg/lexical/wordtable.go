package lexical

import "sync/atomic"

const (
	wordTableBits = 17 // 4 MB, of which memory is taken as it fills
	wordProbes    = 8  // slots that a word can be in
)

// wordCache holds the terms of short words that become one term and nothing else, which are nearly all words. It
// is safe for concurrent use. When it is full it begins anew; words of today crowd out those of yesterday.
type wordCache struct {
	hash  termHash
	table atomic.Pointer[wordTable]
}

// wordTable is a hash table to which words are only added. Looking up takes no lock, and one look at memory in most
// cases: two slots are a cache line.
type wordTable struct {
	used  atomic.Int32
	slots [1 << wordTableBits]wordSlot
}

// wordSlot is a word and its term. It is written once: first to claim it, head last.
type wordSlot struct {
	head          atomic.Uint64 // of the term; zero while the slot cannot be read
	tail          atomic.Uint64 // of the term, which has less than shortBytes: the last byte is stopMark or zero
	first, second atomic.Uint64 // the word's key; first is zero while the slot is free
}

// stopMark says in a tail that the word is a stop word.
const stopMark = 1

func newWordCache(hash termHash) *wordCache {
	c := &wordCache{hash: hash}
	c.table.Store(new(wordTable))
	return c
}

// lookUp finds the terms of words.
func (c *wordCache) lookUp(words []cutWord) {
	t := c.table.Load()
	for i := range words {
		w := &words[i]
		at := c.slot(w.key)
		for range wordProbes {
			s := &t.slots[at]
			head := s.head.Load()
			if head == 0 {
				break
			}
			if s.first.Load() == w.key.first && s.second.Load() == w.key.second {
				w.head, w.tail = head, s.tail.Load()
				break
			}
			at = (at + 1) % uint64(len(t.slots))
		}
	}
}

// slot returns the first slot for a key.
func (c *wordCache) slot(k wordKey) uint64 {
	return c.hash.mix(k.first, k.second) % (1 << wordTableBits) &^ 1
}

// add takes in a word that lookUp did not find, unless it does not belong here.
func (c *wordCache) add(key wordKey, word *analysedWord) bool {
	if key == (wordKey{}) || !word.plain || len(word.term) >= shortBytes {
		return false
	}
	var none longTerms
	term := none.term(word.term)
	if word.stop {
		term.tail |= stopMark
	}
	t := c.table.Load()
	at := c.slot(key)
	for range wordProbes {
		s := &t.slots[at]
		if s.first.CompareAndSwap(0, key.first) {
			s.second.Store(key.second)
			s.tail.Store(term.tail)
			s.head.Store(term.head)
			if t.used.Add(1) > int32(len(t.slots)/4*3) {
				c.table.CompareAndSwap(t, new(wordTable))
			}
			return true
		}
		if s.first.Load() == key.first && s.second.Load() == key.second { // it came in meanwhile
			return true
		}
		at = (at + 1) % uint64(len(t.slots))
	}
	return true // it is not worth more
}
