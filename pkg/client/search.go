package client

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// search runs queries on a store: it makes vectors, lets words stand in for vectors that find nothing, and
// applies the threshold.
type search struct {
	store     VectorStore
	embedder  Embedder // may be nil
	fallback  bool
	threshold *float64
}

func (s search) run(ctx context.Context, q StoreQuery) ([]SearchResult, error) {
	if !q.FilterOnly && q.Mode != ModeSparse && q.Vector == nil {
		ready, err := s.embed(ctx, &q)
		switch {
		case err != nil:
			return nil, err
		case !ready && q.Mode == ModeVector:
			return nil, messages.Errorf(messages.CodeEmbedModelNotFound, "a search by vectors needs an embedding model")
		case !ready:
			q.Mode = ModeSparse // hybrid without vectors is what words find
		}
	}
	results, err := s.store.Search(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("search store: %w", err)
	}
	if q.FilterOnly || q.Mode != ModeVector {
		return results, nil
	}
	if len(results) == 0 && s.fallback && q.Text != "" {
		return s.words(ctx, q)
	}
	if s.threshold != nil {
		results = slices.DeleteFunc(slices.Clone(results), func(r SearchResult) bool { return rounded(r.Score) < *s.threshold })
	}
	return results, nil
}

// embed puts the vector in, where it is this side's business. ready reports that the store can search by
// vectors then.
func (s search) embed(ctx context.Context, q *StoreQuery) (ready bool, err error) {
	if s.embedder == nil {
		e, ok := s.store.(TextEmbedder)
		return ok && e.EmbedsText(), nil
	}
	v, err := s.embedder.Embed(ctx, q.Text)
	if err != nil {
		return false, fmt.Errorf("embed query: %w", err)
	}
	if err := checkVector(v); err != nil {
		return false, fmt.Errorf("embed query: %w", err)
	}
	q.Vector = v
	return true, nil
}

// words searches by words in place of vectors. An index without words finds nothing.
func (s search) words(ctx context.Context, q StoreQuery) ([]SearchResult, error) {
	q.Mode, q.Vector = ModeSparse, nil
	results, err := s.store.Search(ctx, q)
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeRetrieverModeInvalid {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search store by words: %w", err)
	}
	results = slices.Clone(results)
	for i := range results {
		results[i].RetrievalPath = messages.PathFallback
	}
	return results, nil
}

// rounded is a score as services report it, to four places.
func rounded(score float64) float64 { return math.Round(score*1e4) / 1e4 }

func errNoStore() error {
	return messages.Errorf(messages.CodeVectorStoreNotFound, "a retriever needs a store")
}
