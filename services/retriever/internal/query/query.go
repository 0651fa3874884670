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

// Embed returns the vector of a text in a space; the caller must not change it. Errors are
// EMBEDDING_UNAVAILABLE for anything that may pass, EMBED_MODEL_NOT_FOUND, EMBEDDING_REJECTED,
// DIMENSION_MISMATCH and DEADLINE_EXCEEDED when ctx has ended.
func (v *Vectors) Embed(ctx context.Context, space messages.Space, text string) ([]float32, error) {
	k := key{space: space, text: sha256.Sum256([]byte(text))}
	if vector := v.get(k); vector != nil {
		return vector, nil
	}
	reply, err := v.call(ctx, messages.EmbedRequest{Space: space, Texts: []string{text}})
	if err != nil {
		return nil, onWire(ctx, err)
	}
	if len(reply.Vectors) != 1 {
		return nil, messages.Errorf(messages.CodeEmbeddingUnavailable, "the embedder returned %d vectors for one text", len(reply.Vectors))
	}
	vector, err := decode(reply.Vectors[0], space.Dims)
	if err != nil {
		return nil, err
	}
	v.put(k, vector)
	return vector, nil
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

// maxHalf is the largest number of a stored vector.
const maxHalf = 65504

func decode(data []byte, dims int) ([]float32, error) {
	if len(data) != 4*dims {
		return nil, messages.Errorf(messages.CodeDimensionMismatch, "the query vector has %d bytes, %d dimensions need %d", len(data), dims, 4*dims)
	}
	vector, zero := make([]float32, dims), true
	for i := range vector {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if !(x >= -maxHalf && x <= maxHalf) {
			return nil, messages.Errorf(messages.CodeEmbeddingRejected, "the query vector holds a number out of range")
		}
		vector[i], zero = x, zero && x == 0
	}
	if zero {
		return nil, messages.Errorf(messages.CodeEmbeddingRejected, "the query vector is zero")
	}
	return vector, nil
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
