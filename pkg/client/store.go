package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// VectorStore is where retrievers look. What a search means is said at StoreQuery; the errors are
// *messages.Error with the codes of the service, or anything about the way there. It must be safe for
// concurrent use. A store that is an io.Closer, or has a Close without a result, is closed with its retriever.
type VectorStore interface {
	// Search returns up to TopK results, best first, none of which was cut by a threshold and none of which
	// comes from another leg than the ones asked for.
	Search(ctx context.Context, q StoreQuery) ([]SearchResult, error)
}

// TextEmbedder is a store that makes query vectors itself: it takes a text where others need a vector.
type TextEmbedder interface{ EmbedsText() bool }

// Embedder makes the vector of a query text.
type Embedder interface {
	Embed(ctx context.Context, text string) ([]float32, error)
}

// StoreQuery is one search of a store.
//
// ModeVector ranks by the similarity of Vector, or of Text's where the store embeds: scores are 0 to 1. A
// vector of another dimension is a VALIDATION_ERROR. ModeSparse ranks by the BM25 score of Text. ModeHybrid
// joins both lists. FilterOnly ranks nothing: results are those that Filter lets pass, in order of document and
// chunk, their path messages.PathFilter. Filter and Subspace apply before any list is cut; ties are in order
// of subspace, document (as bytes) and chunk.
type StoreQuery struct {
	Mode       Mode
	FilterOnly bool // Mode, Text and Vector are then without meaning
	Text       string
	Vector     []float32
	TopK       int           // 1 or more
	Filter     filter.Filter // nil: the store's own default, if it has one
	Subspace   []string
	// Alpha, 0 to 1, is the share of the vector leg in a hybrid search: lists are joined by reciprocal ranks
	// with k 60 and weights Alpha and 1 - Alpha, a leg of weight 0 being left out. nil: as the store is set.
	Alpha *float64
	// Candidates is how many entries each list of a hybrid search should have where the store can. 0: TopK.
	Candidates   int
	OutputFields []string // of the metadata; nil: all
	OutputVector bool
}

// Store is a knowledge base as a VectorStore over NATS. Safe for concurrent use; it closes nothing.
//
// A score threshold that the knowledge base has as a default does not apply, since retrievers have their own, nor
// does a rerank model where one leg alone is asked; its default filter does, where a query has none, and its
// mandatory filter always.
type Store struct {
	kb    *KB
	limit atomic.Int64 // of candidates, as the service told; 0: not known to matter
}

var (
	_ VectorStore  = (*Store)(nil)
	_ TextEmbedder = (*Store)(nil)
)

// Store returns the knowledge base of a name as a store.
func (c *Client) Store(kb string) *Store { return &Store{kb: c.KB(kb)} }

// EmbedsText reports true: the service embeds queries with the knowledge base's model.
func (s *Store) EmbedsText() bool { return true }

// Search runs a query, in several requests where the results do not fit in one reply.
func (s *Store) Search(ctx context.Context, q StoreQuery) ([]SearchResult, error) {
	candidates := max(q.Candidates, q.TopK)
	if limit := int(s.limit.Load()); limit > 0 && candidates > limit {
		candidates = max(limit, q.TopK)
	}
	results, err := s.search(ctx, q, candidates)
	if limit, over := candidateLimit(err); over && candidates > max(limit, q.TopK) {
		s.limit.Store(int64(limit))
		return s.search(ctx, q, max(limit, q.TopK))
	}
	return results, err
}

func (s *Store) search(ctx context.Context, q StoreQuery, candidates int) ([]SearchResult, error) {
	request, err := q.request(candidates)
	if err != nil {
		return nil, err
	}
	q.asPromised(request.Configuration)
	var all []SearchResult
	for {
		reply, err := s.kb.Search(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, reply.Results...)
		if !reply.Truncated || reply.NextCursor == "" || len(all) >= q.TopK || len(reply.Results) == 0 {
			return all[:min(len(all), q.TopK)], nil
		}
		request.Cursor = reply.NextCursor
	}
}

// asPromised takes the place of defaults of the knowledge base that would make something else of the results: a
// rerank model's scores, or none of the texts.
func (q StoreQuery) asPromised(c *messages.RetrievalConfiguration) {
	if !q.FilterOnly && q.Mode != ModeHybrid {
		c.Reranking.Type = messages.RerankWeight // which leaves the scores of one leg alone
	}
	if c.Output == nil {
		c.Output = &messages.OutputConfig{}
	}
	show := true
	c.Output.Content = &show
}

// candidateLimit is the limit that a refusal of too many candidates tells. kb_get tells it as well, but who may
// search need not have the right to that.
func candidateLimit(err error) (limit int, over bool) {
	e, ok := messages.AsError(err)
	if !ok || e.Code != messages.CodeValidation || !strings.HasSuffix(e.Field, "SearchConfiguration.numberOfResults") {
		return 0, false
	}
	return e.Limit, e.Limit > 0
}

// request is the query on the wire, with a number of candidates for each leg. The full-text leg never stands
// in for the dense one, and no threshold applies: that is the retriever's business.
func (q StoreQuery) request(candidates int) (messages.RetrieveRequest, error) {
	c := &messages.RetrievalConfiguration{
		Reranking:      &messages.RerankingConfig{NumberOfResults: &q.TopK},
		ScoreThreshold: json.RawMessage("null"),
	}
	r := messages.RetrieveRequest{Subspace: slices.Clone(q.Subspace), Configuration: c}
	if q.FilterOnly {
		r.Query = &messages.RetrievalQuery{Type: messages.QueryFilter}
	} else {
		r.Query = &messages.RetrievalQuery{Type: messages.QueryText, Text: q.Text, Vector: q.Vector}
		if err := q.legs(c, candidates); err != nil {
			return r, err
		}
	}
	if q.OutputFields != nil || q.OutputVector {
		c.Output = &messages.OutputConfig{Fields: q.OutputFields}
		if q.OutputVector {
			c.Output.Vector = &q.OutputVector
		}
	}
	if q.Filter != nil {
		var err error
		if c.Filter, err = filter.Canonical(q.Filter); err != nil {
			return r, fmt.Errorf("write filter: %w", err)
		}
	}
	return r, nil
}

func (q StoreQuery) legs(c *messages.RetrievalConfiguration, candidates int) error {
	never := false
	dense := &messages.DenseConfig{NumberOfResults: &candidates, FallbackToFullText: &never}
	text := &messages.FullTextConfig{NumberOfResults: &candidates}
	switch q.Mode {
	case ModeVector:
		c.SearchType, c.Dense = []messages.SearchType{messages.DenseVector}, dense
	case ModeSparse:
		c.SearchType, c.FullText = []messages.SearchType{messages.FullText}, text
	case ModeHybrid:
		c.SearchType, c.Dense, c.FullText = []messages.SearchType{messages.DenseVector, messages.FullText}, dense, text
		if q.Alpha != nil {
			rank(c.Reranking, *q.Alpha)
		}
	default:
		return badMode(q.Mode)
	}
	return nil
}

// rank joins the lists by reciprocal ranks.
func rank(r *messages.RerankingConfig, alpha float64) {
	rest, k := 1-alpha, json.Number(strconv.Itoa(messages.DefaultRRFK))
	r.Type, r.RRF = messages.RerankRRF, &messages.RRFConfig{Dense: &alpha, FullText: &rest, K: &k}
}
