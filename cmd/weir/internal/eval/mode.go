package eval

import (
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
)

// Mode is which legs answer.
type Mode string

// The modes.
const (
	Sparse Mode = "sparse"
	Vector Mode = "vector"
	Hybrid Mode = "hybrid"
)

// Modes lists them in the order tables show them.
func Modes() []Mode { return []Mode{Sparse, Vector, Hybrid} }

// results is how many documents a query returns at most: what Recall@100 needs.
const results = 100

// Request is a query in a mode. n is the number of candidates of each leg; 0 is 20 each in hybrid, as the
// service's own default, and 100 for a single leg.
func Request(mode Mode, text string, n int) (messages.RetrieveRequest, error) {
	if n == 0 {
		n = results
		if mode == Hybrid {
			n = 20
		}
	}
	kept := results
	c := &messages.RetrievalConfiguration{Reranking: &messages.RerankingConfig{NumberOfResults: &kept}}
	switch mode {
	case Sparse:
		c.SearchType = []messages.SearchType{messages.FullText}
		c.FullText = &messages.FullTextConfig{NumberOfResults: &n}
	case Vector:
		c.SearchType = []messages.SearchType{messages.DenseVector}
		c.Dense = &messages.DenseConfig{NumberOfResults: &n}
	case Hybrid:
		c.SearchType = []messages.SearchType{messages.DenseVector, messages.FullText}
		c.Dense = &messages.DenseConfig{NumberOfResults: &n}
		c.FullText = &messages.FullTextConfig{NumberOfResults: &n}
	default:
		return messages.RetrieveRequest{}, messages.Invalid("mode", fmt.Sprintf("%q is not sparse, vector or hybrid", mode))
	}
	return messages.RetrieveRequest{
		Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: text}, Configuration: c,
	}, nil
}

// Fold keeps the best chunk of each document, in the order of the results.
func Fold(chunks []messages.RetrievedChunk) []Hit {
	seen := map[string]bool{}
	hits := []Hit{}
	for _, c := range chunks {
		if seen[c.DocID] {
			continue
		}
		seen[c.DocID] = true
		hits = append(hits, Hit{Doc: c.DocID, Score: c.Score})
	}
	return hits
}
