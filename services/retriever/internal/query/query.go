// Package query turns query texts into vectors, by way of the embedder service, and remembers some.
package query

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/weir-project/weir/pkg/messages"
)

// Caller makes one call of the embedder; errors with a code are *messages.Error.
type Caller func(ctx context.Context, in messages.EmbedRequest) (messages.EmbedReply, error)

// Vectors computes query vectors. Safe for concurrent use.
type Vectors struct {
	call Caller

	mu    sync.Mutex
	max   int
	order *list.List // of *entry, most recently used first
	known map[key]*list.Element
}

type key struct {
	space messages.Space
	text  [sha256.Size]byte
}

type entry struct {
	key    key
	vector []float32
}

// New returns Vectors that remember up to entries vectors.
func New(call Caller, entries int) *Vectors {
	return &Vectors{call: call, max: entries, order: list.New(), known: map[key]*list.Element{}}
}

// maxTexts is how many texts a call of the embedder may carry.
const maxTexts = 64

// Embed returns the vectors of texts in a space, in their order; the caller must not change them. A text
// given twice is asked for once. Errors are EMBEDDING_UNAVAILABLE for anything that may pass,
// EMBED_MODEL_NOT_FOUND, EMBEDDING_REJECTED, DIMENSION_MISMATCH and DEADLINE_EXCEEDED when ctx has ended.
func (v *Vectors) Embed(ctx context.Context, space messages.Space, texts []string) ([][]float32, error) {
	known := make(map[string][]float32, len(texts))
	var missing []string
	for _, text := range texts {
		if _, ok := known[text]; ok {
			continue
		}
		if known[text] = v.get(keyOf(space, text)); known[text] == nil {
			missing = append(missing, text)
		}
	}
	for part := range slices.Chunk(missing, maxTexts) {
		if err := v.ask(ctx, space, part, known); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = known[text]
	}
	return out, nil
}

func keyOf(space messages.Space, text string) key {
	return key{space: space, text: sha256.Sum256([]byte(text))}
}

// ask makes one call.
func (v *Vectors) ask(ctx context.Context, space messages.Space, texts []string, into map[string][]float32) error {
	reply, err := v.call(ctx, messages.EmbedRequest{Space: space, Texts: texts})
	if err != nil {
		return onWire(ctx, err)
	}
	if len(reply.Vectors) != len(texts) {
		return messages.Errorf(messages.CodeEmbeddingUnavailable, "the embedder returned %d vectors for %d texts", len(reply.Vectors), len(texts))
	}
	for i, text := range texts {
		vector, err := decode(reply.Vectors[i], space.Dims)
		if err != nil {
			return err
		}
		into[text] = vector
		v.put(keyOf(space, text), vector)
	}
	return nil
}

// onWire sorts the embedder's errors: what concerns the text or the model stays, the rest is an outage.
func onWire(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeDeadlineExceeded, "the query was not embedded in time"), err)
	}
	if e, ok := messages.AsError(err); ok {
		switch e.Code {
		case messages.CodeEmbedModelNotFound, messages.CodeEmbeddingRejected, messages.CodeDimensionMismatch, messages.CodeEmbeddingUnavailable:
			return err
		}
	}
	return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeEmbeddingUnavailable, "the query could not be embedded"), err)
}

func decode(data []byte, dims int) ([]float32, error) {
	if len(data) != 4*dims {
		return nil, messages.Errorf(messages.CodeDimensionMismatch, "the query vector has %d bytes, %d dimensions need %d", len(data), dims, 4*dims)
	}
	vector := make([]float32, dims)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	if reason := Unusable(vector); reason != "" {
		return nil, messages.Errorf(messages.CodeEmbeddingRejected, "the query vector %s", reason)
	}
	return vector, nil
}

// Range of the numbers that vectors are stored and compared with, which have half precision.
const (
	maxHalf  = 65504
	leastOne = 1.0 / (1 << 25) // nothing up to it differs from zero
)

// Unusable tells why nothing can be near a vector, or nothing.
func Unusable(vector []float32) string {
	zero := true
	for _, x := range vector {
		if !(x >= -maxHalf && x <= maxHalf) {
			return "holds a number out of range"
		}
		zero = zero && x <= leastOne && x >= -leastOne
	}
	if zero {
		return "is zero"
	}
	return ""
}

func (v *Vectors) get(k key) []float32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.known[k]
	if at == nil {
		return nil
	}
	v.order.MoveToFront(at)
	return of(at).vector
}

func (v *Vectors) put(k key, vector []float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known[k] != nil || v.max <= 0 {
		return
	}
	v.known[k] = v.order.PushFront(&entry{key: k, vector: vector})
	if len(v.known) > v.max {
		last := v.order.Back()
		v.order.Remove(last)
		delete(v.known, of(last).key)
	}
}

func of(at *list.Element) *entry {
	e, _ := at.Value.(*entry) // nothing else is ever put in the list
	return e
}
