package client

import "github.com/weir-project/weir/pkg/messages"

// VectorRetriever finds passages by similarity; words answer where vectors find nothing at all. Its only
// mode is vector. Safe for concurrent use.
type VectorRetriever struct{ base }

// NewVectorRetriever returns a retriever over a store. Errors: VECTOR_STORE_NOT_FOUND without one,
// INDEX_TYPE_NOT_SUPPORT, VALIDATION_ERROR of alpha. Whether there is an embedder, here or in the store, shows
// when it is needed: EMBED_MODEL_NOT_FOUND.
func NewVectorRetriever(store VectorStore, opts RetrieverOptions) (*VectorRetriever, error) {
	b, err := newBase(store, opts, ModeVector)
	if err != nil {
		return nil, err
	}
	return &VectorRetriever{b}, nil
}

// SparseRetriever finds passages by words, in order of BM25. Its only mode is sparse. Safe for concurrent
// use.
type SparseRetriever struct{ base }

// NewSparseRetriever returns a retriever over a store. Errors as of NewVectorRetriever.
func NewSparseRetriever(store VectorStore, opts RetrieverOptions) (*SparseRetriever, error) {
	b, err := newBase(store, opts, ModeSparse)
	if err != nil {
		return nil, err
	}
	return &SparseRetriever{b}, nil
}

// HybridRetriever has all modes; hybrid, its default, joins the lists of vectors and words by reciprocal
// ranks, weighted by alpha. Where nobody makes vectors, hybrid is what words find. Over an index of vectors
// or words alone its default mode is that of the index. Safe for concurrent use.
type HybridRetriever struct{ base }

// NewHybridRetriever returns a retriever over a store. Errors as of NewVectorRetriever.
func NewHybridRetriever(store VectorStore, opts RetrieverOptions) (*HybridRetriever, error) {
	modes := []Mode{ModeHybrid, ModeVector, ModeSparse}
	switch opts.IndexType {
	case messages.IndexTypeVector:
		modes = []Mode{ModeVector, ModeSparse, ModeHybrid}
	case messages.IndexTypeBM25:
		modes = []Mode{ModeSparse, ModeVector, ModeHybrid}
	}
	b, err := newBase(store, opts, modes...)
	if err != nil {
		return nil, err
	}
	return &HybridRetriever{b}, nil
}

// retriever is what all of the family are.
type retriever interface {
	Retriever
	BatchRetriever
	SearchResultRetriever
	ModeReporter
	Close() error
}

var _, _, _ retriever = (*VectorRetriever)(nil), (*SparseRetriever)(nil), (*HybridRetriever)(nil)
