package client

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// DefaultMaxResults is how many results a SearchBuilder asks for.
const DefaultMaxResults = 4

// SearchBuilder builds one search: a text or vector, how many results, a lowest similarity, conditions on
// metadata, and what results show. It searches by vectors alone unless SearchTypes says otherwise.
//
// Methods return the builder. One that is given something wrong changes nothing, and Err tells of it at
// once; Build and Search then fail with it, so that no condition is ever left out. NewSearch makes one; the zero
// value cannot be used. Make one for each request and share it with nobody.
type SearchBuilder struct {
	conditions[*SearchBuilder]

	text       string
	vector     []float32
	maxResults int
	minScore   *float64
	filterOnly bool
	types      []messages.SearchType
	subspace   []string
	fields     []string
	vectors    bool
}

// NewSearch returns a builder for up to DefaultMaxResults results of a dense search.
func NewSearch() *SearchBuilder {
	b := &SearchBuilder{maxResults: DefaultMaxResults, types: []messages.SearchType{messages.DenseVector}}
	b.self = b
	return b
}

// Text is what to look for. Where there is a vector too, it is used by the full-text leg alone.
func (b *SearchBuilder) Text(text string) *SearchBuilder {
	if strings.TrimSpace(text) == "" {
		return b.did(messages.Invalid("text", "is blank"))
	}
	if err := messages.ValidText("text", text); err != nil {
		return b.did(err)
	}
	b.text = text
	return b
}

// Vector is the query as the model of the knowledge base embeds it; the text is then not embedded. It must
// have the knowledge base's dimensions, be finite and not zero.
func (b *SearchBuilder) Vector(v []float32) *SearchBuilder {
	if err := checkVector(v); err != nil {
		return b.did(err)
	}
	b.vector = slices.Clone(v)
	return b
}

func checkVector(v []float32) error {
	zero := true
	for i, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return messages.Invalid(fmt.Sprintf("vector[%d]", i), "is no finite number")
		}
		zero = zero && x == 0
	}
	if zero {
		return messages.Invalid("vector", "is empty or zero")
	}
	return nil
}

// MaxResults is how many results to return at most, 1 or more.
func (b *SearchBuilder) MaxResults(n int) *SearchBuilder {
	if n < 1 {
		return b.did(messages.Invalid("maxResults", "must be 1 or more"))
	}
	b.maxResults = n
	return b
}

// MinScore drops results of a lower similarity, from 0 to 1: for cosine (1 + cos) / 2. Only a dense search
// has one.
func (b *SearchBuilder) MinScore(score float64) *SearchBuilder {
	if !(score >= 0 && score <= 1) {
		return b.did(messages.Invalid("minScore", "must be 0 to 1"))
	}
	b.minScore = &score
	return b
}

// WithVector false asks for the documents that meet the conditions, of which there must be one: no query is
// embedded, nothing ranked, results have no score and come in order of document and chunk.
func (b *SearchBuilder) WithVector(with bool) *SearchBuilder {
	b.filterOnly = !with
	return b
}

// SearchTypes chooses the legs; both together are a hybrid search, fused as the knowledge base says.
func (b *SearchBuilder) SearchTypes(types ...messages.SearchType) *SearchBuilder {
	c := messages.RetrievalConfiguration{SearchType: append([]messages.SearchType{}, types...)}
	if err := c.Validate(messages.DefaultRetrieveLimits()); err != nil {
		return b.did(err)
	}
	b.types = c.SearchType
	return b
}

// Subspace names the subspaces to search, where the knowledge base has some.
func (b *SearchBuilder) Subspace(names ...string) *SearchBuilder {
	for i, name := range names {
		if err := messages.ValidateName(fmt.Sprintf("subspace[%d]", i), name); err != nil {
			return b.did(err)
		}
	}
	b.subspace = slices.Clone(names)
	return b
}

// OutputFields are the metadata fields that results show; all without it. Ids and content are always there.
func (b *SearchBuilder) OutputFields(names ...string) *SearchBuilder {
	for i, name := range names {
		if strings.TrimSpace(name) == "" {
			return b.did(messages.Invalid(fmt.Sprintf("outputFields[%d]", i), "is blank"))
		}
	}
	b.fields = slices.Clone(names)
	return b
}

// OutputVector asks for the stored vectors, which cost time and space.
func (b *SearchBuilder) OutputVector(show bool) *SearchBuilder {
	b.vectors = show
	return b
}

// Build returns the request for KB.Retrieve or KB.Search. The builder may be used further.
func (b *SearchBuilder) Build() (messages.RetrieveRequest, error) {
	q, err := b.query()
	if err != nil {
		return messages.RetrieveRequest{}, err
	}
	r, err := q.request(q.TopK)
	if err != nil {
		return r, err
	}
	if b.minScore != nil {
		r.Configuration.ScoreThreshold = messages.NewThreshold(*b.minScore)
	} else {
		r.Configuration.ScoreThreshold = nil
	}
	if r.Configuration.Dense != nil {
		r.Configuration.Dense.FallbackToFullText = nil
	}
	return r, nil
}

// Search runs the search on a store. embedder, which may be nil, makes the vector of the text unless there
// is one or the store embeds by itself. Results of an empty dense search are the full-text ones, marked with
// messages.PathFallback.
func (b *SearchBuilder) Search(ctx context.Context, store VectorStore, embedder Embedder) ([]SearchResult, error) {
	q, err := b.query()
	if err != nil {
		return nil, err
	}
	if store == nil {
		return nil, errNoStore()
	}
	s := search{store: store, embedder: embedder, fallback: true, threshold: b.minScore}
	return s.run(ctx, q)
}

// query checks what can only be seen together.
func (b *SearchBuilder) query() (StoreQuery, error) {
	if err := b.Err(); err != nil {
		return StoreQuery{}, err
	}
	f, conditional := b.Filter()
	q := StoreQuery{
		Mode: modeOf(b.types), FilterOnly: b.filterOnly, Text: b.text, Vector: slices.Clone(b.vector), TopK: b.maxResults,
		Subspace: slices.Clone(b.subspace), OutputFields: slices.Clone(b.fields), OutputVector: b.vectors,
	}
	if conditional {
		q.Filter = f
	}
	switch {
	case b.filterOnly && !conditional:
		return q, messages.Invalid("condition", "a search without a vector needs a condition")
	case b.filterOnly && b.minScore != nil:
		return q, messages.Invalid("minScore", "a search without a vector has no scores")
	case b.filterOnly:
		q.Text, q.Vector = "", nil
	case q.Text == "" && (q.Vector == nil || q.Mode != ModeVector):
		return q, messages.Invalid("text", "is missing")
	case b.minScore != nil && q.Mode != ModeVector:
		return q, messages.ThresholdMisplaced()
	}
	return q, nil
}
