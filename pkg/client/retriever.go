package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// Retriever finds passages for a query, best first.
type Retriever interface {
	Retrieve(ctx context.Context, query string, cfg RetrievalConfig) ([]RetrievalResult, error)
}

// BatchRetriever answers several queries at once, in their order. When one fails, the others are cancelled
// and all fail.
type BatchRetriever interface {
	BatchRetrieve(ctx context.Context, queries []string, cfg RetrievalConfig) ([][]RetrievalResult, error)
}

// SearchResultRetriever returns what it finds in the form of a store's results, which have ids.
type SearchResultRetriever interface {
	RetrieveSearchResults(ctx context.Context, query string, cfg RetrievalConfig) ([]SearchResult, error)
}

// ModeReporter tells the modes that a retriever can answer, its default first.
type ModeReporter interface{ SupportedModes() []Mode }

// DefaultTopK is how many results a retriever returns.
const DefaultTopK = 5

// RetrievalConfig says how to retrieve. The zero value means the defaults.
type RetrievalConfig struct {
	TopK *int // 1 or more, else TOP_K_INVALID; nil: DefaultTopK
	// ScoreThreshold drops results of a lower similarity, 0 to 1. Only mode vector has one; any other mode is
	// SCORE_THRESHOLD_INVALID.
	ScoreThreshold *float64
	Mode           Mode // "": the retriever's default
	// Filters are fields of the metadata and the values they must have; Filter is any condition. All must hold,
	// in every search that a retriever makes.
	Filters map[string]any
	Filter  filter.Filter
	// Alpha is the share of vectors in mode hybrid, 0 (words alone) to 1 (vectors alone); nil: the retriever's.
	Alpha *float64
	// FallbackToFullText lets words answer in mode vector when vectors find nothing at all; nil: true.
	FallbackToFullText *bool
	Subspace           []string // where the knowledge base has subspaces
}

// RetrieverOptions are what a retriever works with. The zero value is usable.
type RetrieverOptions struct {
	// Embedder makes the vectors of queries. nil: the store does, or nobody.
	Embedder Embedder
	// IndexType of the store; a mode it cannot answer is then RETRIEVER_MODE_INVALID before anything is asked. "":
	// not known, the store decides.
	IndexType messages.IndexType
	// Alpha is the share of vectors in mode hybrid; nil: 0.5.
	Alpha *float64
}

// batchAtOnce is how many queries of a batch run at once.
const batchAtOnce = 16

// hybridCandidates is how many entries the lists of a hybrid search have at least, whatever is asked for: so
// the first results do not depend on how many are.
const hybridCandidates = 200

// NewRetriever returns the retriever that fits an index type: a VectorRetriever for vector, a SparseRetriever
// for bm25, else a HybridRetriever.
func NewRetriever(store VectorStore, opts RetrieverOptions) (Retriever, error) {
	if err := checkOptions(store, opts); err != nil {
		return nil, err
	}
	switch opts.IndexType {
	case messages.IndexTypeVector:
		return NewVectorRetriever(store, opts)
	case messages.IndexTypeBM25:
		return NewSparseRetriever(store, opts)
	}
	return NewHybridRetriever(store, opts)
}

// base is what the retrievers over a store have in common.
type base struct {
	store VectorStore
	opts  RetrieverOptions
	modes []Mode // the default first
	close func() error
}

func newBase(store VectorStore, opts RetrieverOptions, modes ...Mode) (base, error) {
	if err := checkOptions(store, opts); err != nil {
		return base{}, err
	}
	return base{store: store, opts: opts, modes: modes, close: sync.OnceValue(func() error { return closeStore(store) })}, nil
}

func checkOptions(store VectorStore, opts RetrieverOptions) error {
	if store == nil {
		return errNoStore()
	}
	if err := checkAlpha(opts.Alpha); err != nil || opts.IndexType == "" {
		return err
	}
	_, err := ModesOf(opts.IndexType)
	return err
}

func checkAlpha(alpha *float64) error {
	if alpha != nil && !(*alpha >= 0 && *alpha <= 1) {
		return messages.Invalid("alpha", "must be 0 to 1")
	}
	return nil
}

func closeStore(store VectorStore) error {
	switch s := store.(type) {
	case io.Closer:
		if err := s.Close(); err != nil {
			return fmt.Errorf("close store: %w", err)
		}
	case interface{ Close() }:
		s.Close()
	}
	return nil
}

// SupportedModes returns the modes of the retriever, its default first.
func (b *base) SupportedModes() []Mode { return slices.Clone(b.modes) }

// Close closes the store, where it can be closed, once however often it is called.
func (b *base) Close() error { return b.close() }

// Retrieve finds passages for a query, best first.
func (b *base) Retrieve(ctx context.Context, query string, cfg RetrievalConfig) ([]RetrievalResult, error) {
	found, err := b.RetrieveSearchResults(ctx, query, cfg)
	if err != nil {
		return nil, err
	}
	out := make([]RetrievalResult, len(found))
	for i, r := range found {
		out[i] = passage(r)
	}
	return out, nil
}

// RetrieveSearchResults is Retrieve in the form of the store's results.
func (b *base) RetrieveSearchResults(ctx context.Context, query string, cfg RetrievalConfig) ([]SearchResult, error) {
	s, q, err := b.plan(query, cfg)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, q)
}

// BatchRetrieve answers queries at the same time, in their order. When one fails, the others are cancelled
// and its error is returned.
func (b *base) BatchRetrieve(ctx context.Context, queries []string, cfg RetrievalConfig) ([][]RetrievalResult, error) {
	return batch(ctx, queries, func(ctx context.Context, query string) ([]RetrievalResult, error) {
		return b.Retrieve(ctx, query, cfg)
	})
}

func batch(ctx context.Context, queries []string, retrieve func(context.Context, string) ([]RetrievalResult, error)) ([][]RetrievalResult, error) {
	out := make([][]RetrievalResult, len(queries))
	g, ctx := guard.WithContext(ctx)
	g.SetLimit(batchAtOnce)
	for i, query := range queries {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var err error
			if out[i], err = retrieve(ctx, query); err != nil {
				return fmt.Errorf("query %d: %w", i, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// plan checks a request and says how to carry it out.
func (b *base) plan(query string, cfg RetrievalConfig) (search, StoreQuery, error) {
	mode, err := b.mode(cfg.Mode)
	if err != nil {
		return search{}, StoreQuery{}, err
	}
	topK, err := cfg.check(mode)
	if err != nil {
		return search{}, StoreQuery{}, err
	}
	if strings.TrimSpace(query) == "" {
		return search{}, StoreQuery{}, messages.Invalid("query", "is blank")
	}
	q := StoreQuery{Mode: mode, Text: query, TopK: topK, Subspace: slices.Clone(cfg.Subspace)}
	if q.Filter, err = cfg.conditions(); err != nil {
		return search{}, StoreQuery{}, err
	}
	if mode == ModeHybrid {
		alpha := b.alpha(cfg)
		q.Alpha, q.Candidates = &alpha, max(hybridCandidates, topK)
	}
	return search{
		store: b.store, embedder: b.opts.Embedder, threshold: cfg.ScoreThreshold,
		fallback: (cfg.FallbackToFullText == nil || *cfg.FallbackToFullText) && b.opts.IndexType != messages.IndexTypeVector,
	}, q, nil
}

// mode is the one to use: first what the retriever is able to, then what the index is.
func (b *base) mode(asked Mode) (Mode, error) {
	switch {
	case asked == "":
		asked = b.modes[0]
	case !slices.Contains(Modes(), asked):
		return "", badMode(asked)
	case !slices.Contains(b.modes, asked):
		return "", &messages.Error{
			Code: messages.CodeModeNotSupported, Field: "mode", Message: fmt.Sprintf("this retriever has no mode %s", asked),
		}
	}
	if b.opts.IndexType == "" {
		return asked, nil
	}
	return asked, CheckMode(b.opts.IndexType, asked)
}

func (b *base) alpha(cfg RetrievalConfig) float64 {
	for _, given := range []*float64{cfg.Alpha, b.opts.Alpha} {
		if given != nil {
			return *given
		}
	}
	return 0.5
}

// check checks what needs no store and returns the number of results.
func (c RetrievalConfig) check(mode Mode) (topK int, err error) {
	topK = DefaultTopK
	if c.TopK != nil {
		topK = *c.TopK
	}
	if topK < 1 {
		return 0, &messages.Error{Code: messages.CodeTopKInvalid, Field: "topK", Message: "must be 1 or more"}
	}
	if t := c.ScoreThreshold; t != nil {
		if mode != ModeVector {
			return 0, &messages.Error{
				Code: messages.CodeScoreThreshold, Field: "scoreThreshold", Message: fmt.Sprintf("is allowed in mode vector only, not in %s", mode),
			}
		}
		if !(*t >= 0 && *t <= 1) {
			return 0, messages.Invalid("scoreThreshold", "must be 0 to 1")
		}
	}
	return topK, checkAlpha(c.Alpha)
}

// conditions joins both kinds of filters; nil when there are none.
func (c RetrievalConfig) conditions() (filter.Filter, error) {
	var all []filter.Filter
	for _, key := range slices.Sorted(maps.Keys(c.Filters)) {
		f, err := filter.New("equals", key, c.Filters[key])
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if c.Filter != nil {
		all = append(all, c.Filter)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return filter.AllOf(all...), nil
}
