package embedding

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"
)

// BatchLimits bounds one request. Zero fields take the defaults of DefaultBatchLimits.
type BatchLimits struct {
	Items  int // texts
	Tokens int // estimated, see EstimateTokens
	Bytes  int // of text
}

// DefaultBatchLimits fit the common servers: 64 texts, 32,768 tokens, 1 MiB.
func DefaultBatchLimits() BatchLimits {
	return BatchLimits{Items: 64, Tokens: 32 << 10, Bytes: 1 << 20}
}

func (b BatchLimits) withDefaults() BatchLimits {
	d := DefaultBatchLimits()
	if b.Items <= 0 {
		b.Items = d.Items
	}
	if b.Tokens <= 0 {
		b.Tokens = d.Tokens
	}
	if b.Bytes <= 0 {
		b.Bytes = d.Bytes
	}
	return b
}

// EstimateTokens is about how many tokens a text has: a quarter of its ASCII characters and one for
// every other character. It errs on the high side for scripts without spaces.
func EstimateTokens(text string) int {
	wide := 0   // characters of several bytes
	narrow := 0 // and of one
	for ; len(text) >= 8; text = text[8:] {
		w := binary.LittleEndian.Uint64([]byte(text[:8]))
		high := w & 0x8080808080808080
		narrow += 8 - bits.OnesCount64(high)
		wide += bits.OnesCount64(high & (w << 1)) // a character begins with two bits set, and goes on with one
	}
	for i := range len(text) {
		switch {
		case text[i] < utf8.RuneSelf:
			narrow++
		case utf8.RuneStart(text[i]):
			wide++
		}
	}
	return narrow/4 + wide + 1
}

// load is the size of a run of texts in all measures.
type load struct{ items, tokens, bytes int }

func loadOf(texts []string) load {
	l := load{items: len(texts)}
	for _, t := range texts {
		l.tokens += EstimateTokens(t)
		l.bytes += len(t)
	}
	return l
}

// Share is the part of a request within the limits that texts take up: with 1 it is full.
func (b BatchLimits) Share(texts []string) float64 {
	b = b.withDefaults()
	l := loadOf(texts)
	return max(float64(l.items)/float64(b.Items), float64(l.tokens)/float64(b.Tokens), float64(l.bytes)/float64(b.Bytes))
}

// caps is what is known of a server's limits: the configured bounds, lowered by experience. Safe for
// concurrent use.
type caps struct {
	mu  sync.Mutex
	now BatchLimits
}

func (c *caps) get() BatchLimits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// learn halves the measure that a refused request of this load must have broken. The provider's words
// tell which; number of texts is the guess when they do not.
func (c *caps) learn(l load, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	message = strings.ToLower(message)
	switch {
	case strings.Contains(message, "token") && !strings.Contains(message, "batch size"):
		c.now.Tokens = max(1, min(c.now.Tokens, l.tokens/2))
	case containsAny(message, "byte", "payload", "body", "entity"):
		c.now.Bytes = max(1, min(c.now.Bytes, l.bytes/2))
	default:
		c.now.Items = max(1, min(c.now.Items, (l.items+1)/2))
	}
}

// span is a run of texts, from low up to and without high.
type span struct{ low, high int }

// pack cuts texts into runs within the limits, in order. A text over a limit by itself gets a run of
// its own: only the server can say whether it is too large.
func pack(texts []string, limits BatchLimits) []span {
	var spans []span
	var l load
	low := 0
	for i, t := range texts {
		tokens := EstimateTokens(t)
		full := l.items+1 > limits.Items || l.tokens+tokens > limits.Tokens || l.bytes+len(t) > limits.Bytes
		if i > low && full {
			spans, low, l = append(spans, span{low, i}), i, load{}
		}
		l = load{l.items + 1, l.tokens + tokens, l.bytes + len(t)}
	}
	if low < len(texts) {
		spans = append(spans, span{low, len(texts)})
	}
	return spans
}
