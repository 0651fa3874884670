// Package work turns chunk texts into vectors: the embed stage, free of the bus.
package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/embedder/internal/route"
)

// Embedder computes vectors; *embedding.Provider is one.
type Embedder interface {
	Embed(ctx context.Context, space embedding.Space, lane embedding.Lane, texts []string) (embedding.Result, error)
}

// Bounds of a work message.
const (
	MaxTextBytes = 64<<10 + 2<<10 // of a chunk, with prefix and context
	// maxAnswerBytes is what the answer may have; the stream takes a little more.
	maxAnswerBytes = 240 << 10
	vectorOverhead = 40 // bytes of a vector's place
)

// Handler embeds work messages. Safe for concurrent use.
type Handler struct {
	provider func(model string) (Embedder, error)
	kept     *kept
}

// New returns a handler; provider finds who serves a model.
func New(provider func(model string) (Embedder, error)) *Handler {
	return &Handler{provider: provider, kept: newKept()}
}

// Handle returns the one index message that answers in, with the same part number.
//
// Errors: a *messages.Error is permanent and fails the document (EMBEDDING_REJECTED names the chunk,
// DIMENSION_MISMATCH, VALIDATION_ERROR, EMBED_MODEL_NOT_FOUND); the kinds of package embedding are
// what they say, see Outage. Vectors computed before a failure are kept in memory for the next try.
func (h *Handler) Handle(ctx context.Context, in messages.EmbedWork) (messages.IndexWork, error) {
	space, err := check(&in)
	if err != nil {
		return messages.IndexWork{}, err
	}
	provider, err := h.provider(space.Model)
	if err != nil {
		return messages.IndexWork{}, err
	}
	out := messages.IndexWork{Ref: in.Ref, Part: in.Part, Parts: in.Parts, Vectors: make([]messages.IndexVector, len(in.Chunks))}
	var texts []string
	var missing []int
	for i, c := range in.Chunks {
		out.Vectors[i].Ordinal = c.Ordinal
		if v := h.kept.get(space, c.Text); v != nil {
			out.Vectors[i].Vector = embedding.EncodeVector(v)
			continue
		}
		texts, missing = append(texts, c.Text), append(missing, i)
	}
	result, err := provider.Embed(ctx, space, embedding.Batch, texts)
	if err != nil {
		h.kept.keep(space, texts, result.Vectors)
		return messages.IndexWork{}, permanent(err)
	}
	if err := rejected(result, in.Chunks, missing); err != nil {
		return messages.IndexWork{}, err
	}
	for k, i := range missing {
		out.Vectors[i].Vector = embedding.EncodeVector(result.Vectors[k])
	}
	out.Tokens = result.Usage.Tokens
	h.kept.drop(space, in.Chunks)
	return out, nil
}

// check refuses a message that can never be answered.
func check(in *messages.EmbedWork) (embedding.Space, error) {
	if err := in.Validate(); err != nil {
		return embedding.Space{}, err
	}
	space, err := route.SpaceOf(in.Space)
	if err != nil {
		return embedding.Space{}, err
	}
	if size := len(in.Chunks) * (4*space.Dims + vectorOverhead); size > maxAnswerBytes {
		return embedding.Space{}, messages.Invalid("chunks", fmt.Sprintf(
			"%d vectors of %d dimensions need %d bytes, a message has %d", len(in.Chunks), space.Dims, size, maxAnswerBytes))
	}
	for i, c := range in.Chunks {
		if c.Text == "" || len(c.Text) > MaxTextBytes {
			return embedding.Space{}, messages.Invalid(fmt.Sprintf("chunks[%d].text", i), fmt.Sprintf("must have 1 to %d bytes", MaxTextBytes))
		}
		if hash := embedding.Hash(c.Text); len(c.Hash) > 0 && !bytes.Equal(c.Hash, hash[:]) {
			return embedding.Space{}, messages.Invalid(fmt.Sprintf("chunks[%d].hash", i), "is not the SHA-256 of the text")
		}
	}
	return space, nil
}

// rejected names the first chunk the provider refused.
func rejected(result embedding.Result, chunks []messages.EmbedChunk, sent []int) error {
	if len(result.Rejected) == 0 {
		return nil
	}
	indexes := make([]int, 0, len(result.Rejected))
	for k := range result.Rejected {
		indexes = append(indexes, k)
	}
	slices.Sort(indexes)
	first := indexes[0]
	text := fmt.Sprintf("chunk %d: %v", chunks[sent[first]].Ordinal, result.Rejected[first])
	if more := len(indexes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more chunks of this part)", more)
	}
	return &messages.Error{Code: messages.CodeEmbeddingRejected, Message: text, Stage: messages.StageEmbed}
}

// permanent gives errors that no second try can mend their code.
func permanent(err error) error {
	if errors.Is(err, embedding.ErrDimension) {
		return &messages.Error{Code: messages.CodeDimensionMismatch, Message: err.Error(), Stage: messages.StageEmbed}
	}
	return err
}

// Outage reports an error that is the provider's state, not this message's: everyone waits, and no
// try is counted. A limit on rate is one too, as is a message that waited its turn for too long.
func Outage(err error) bool {
	for _, kind := range []error{
		embedding.ErrUnavailable, embedding.ErrThrottled, embedding.ErrUnauthorized, context.DeadlineExceeded,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
