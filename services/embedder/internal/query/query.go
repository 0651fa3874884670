// Package query embeds query texts for the retriever: small, urgent, often repeated.
package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/embedder/internal/route"
)

// Bounds of a request.
const (
	MaxTexts     = 64
	MaxTextBytes = 64 << 10
)

// Embedder computes vectors; *embedding.Provider is one.
type Embedder interface {
	Embed(ctx context.Context, space embedding.Space, lane embedding.Lane, texts []string) (embedding.Result, error)
}

// Handler answers requests for query vectors. Safe for concurrent use.
type Handler struct {
	provider func(model string) (Embedder, error)
	cache    *embedding.Cache
}

// New returns a handler; provider finds who serves a model. The cache stays the caller's.
func New(provider func(model string) (Embedder, error), cache *embedding.Cache) *Handler {
	return &Handler{provider: provider, cache: cache}
}

// Handle returns one vector a text, in order. Every error is a *messages.Error: VALIDATION_ERROR,
// EMBED_MODEL_NOT_FOUND, EMBEDDING_REJECTED, DIMENSION_MISMATCH, EMBEDDING_UNAVAILABLE,
// DEADLINE_EXCEEDED.
func (h *Handler) Handle(ctx context.Context, in messages.EmbedRequest) (messages.EmbedReply, error) {
	space, err := check(in)
	if err != nil {
		return messages.EmbedReply{}, err
	}
	provider, err := h.provider(space.Model)
	if err != nil {
		return messages.EmbedReply{}, err
	}
	texts := make([]string, len(in.Texts))
	for i, t := range in.Texts {
		texts[i] = space.QueryText(t)
	}
	vectors, tokens, err := h.embed(ctx, provider, space, texts)
	if err != nil {
		return messages.EmbedReply{}, onWire(err)
	}
	reply := messages.EmbedReply{Vectors: make([][]byte, len(vectors)), Tokens: tokens}
	for i, v := range vectors {
		reply.Vectors[i] = embedding.EncodeVector(v)
	}
	return reply, nil
}

// embed asks cache and provider. The computation has the deadline of the caller that started it; one
// who joined it and has more time left tries once for himself.
func (h *Handler) embed(ctx context.Context, provider Embedder, space embedding.Space, texts []string) ([][]float32, int, error) {
	used := make(chan int, 2)
	compute := func(shared context.Context, texts []string) (embedding.Result, error) {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			shared, cancel = context.WithDeadline(shared, deadline)
			defer cancel()
		}
		r, err := provider.Embed(shared, space, embedding.Interactive, texts)
		used <- r.Usage.Tokens
		return r, err
	}
	vectors, _, err := h.cache.Embed(ctx, space, texts, compute)
	if errors.Is(err, context.DeadlineExceeded) && hasTime(ctx) {
		vectors, _, err = h.cache.Embed(ctx, space, texts, compute)
	}
	if err != nil {
		return nil, 0, err
	}
	select {
	case tokens := <-used:
		return vectors, tokens, nil
	default:
		return vectors, 0, nil
	}
}

// hasTime reports whether a caller can still be answered. The clock decides, since a context learns of its end a
// little later.
func hasTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Now().Before(deadline))
}

func check(in messages.EmbedRequest) (embedding.Space, error) {
	space, err := route.SpaceOf(in.Space)
	if err != nil {
		return embedding.Space{}, err
	}
	if len(in.Texts) == 0 || len(in.Texts) > MaxTexts {
		return embedding.Space{}, messages.Invalid("texts", fmt.Sprintf("must have 1 to %d texts", MaxTexts))
	}
	for i, t := range in.Texts {
		if t == "" || len(t) > MaxTextBytes {
			return embedding.Space{}, messages.Invalid(fmt.Sprintf("texts[%d]", i), fmt.Sprintf("must have 1 to %d bytes", MaxTextBytes))
		}
	}
	return space, nil
}

// onWire gives an error its code.
func onWire(err error) error {
	if _, ok := messages.AsError(err); ok {
		return err
	}
	code := messages.CodeEmbeddingUnavailable
	switch {
	case errors.Is(err, embedding.ErrRejected):
		code = messages.CodeEmbeddingRejected
	case errors.Is(err, embedding.ErrDimension):
		code = messages.CodeDimensionMismatch
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		code = messages.CodeDeadlineExceeded
	}
	return &messages.Error{Code: code, Message: err.Error()}
}
