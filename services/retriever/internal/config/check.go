package config

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/fusion"
)

// check refuses values out of range, also those of a rerank type that is not in effect.
func check(limits Limits, c *messages.RetrievalConfiguration) error {
	if c == nil {
		return nil
	}
	if err := checkTypes(c.SearchType); err != nil {
		return err
	}
	if d := c.Dense; d != nil {
		if err := within(Root+".denseVectorSearchConfiguration.numberOfResults", d.NumberOfResults, 0, limits.Candidates); err != nil {
			return err
		}
	}
	if t := c.FullText; t != nil {
		at := Root + ".fullTextSearchConfiguration."
		if err := within(at+"numberOfResults", t.NumberOfResults, 0, limits.Candidates); err != nil {
			return err
		}
		if err := between(at+"k1", t.K1, 1000); err != nil {
			return err
		}
		if err := between(at+"b", t.B, 1); err != nil {
			return err
		}
	}
	if c.Reranking == nil {
		return nil
	}
	return checkReranking(limits, c.Reranking)
}

func checkTypes(types []messages.SearchType) error {
	if types != nil && len(types) == 0 {
		return messages.Invalid(Root+".searchType", "must name DENSE_VECTOR, FULL_TEXT or both")
	}
	for i, t := range types {
		if t != messages.DenseVector && t != messages.FullText {
			return messages.Invalid(fmt.Sprintf("%s.searchType[%d]", Root, i), "must be DENSE_VECTOR or FULL_TEXT")
		}
	}
	return nil
}

func checkReranking(limits Limits, r *messages.RerankingConfig) error {
	at := Root + ".rerankingConfiguration."
	switch r.Type {
	case "", messages.RerankWeight, messages.RerankRRF:
	case messages.RerankModel:
		return &messages.Error{Code: messages.CodeNotSupported, Field: at + "type", Message: "no rerank model is configured on this server"}
	default:
		return messages.Invalid(at+"type", "must be WEIGHT, RRF or MODEL")
	}
	if err := within(at+"numberOfResults", r.NumberOfResults, 1, limits.Results); err != nil {
		return err
	}
	if w := r.Weight; w != nil {
		if err := weights(at+"weightConfiguration", w.Dense, w.FullText); err != nil {
			return err
		}
	}
	if f := r.RRF; f != nil {
		if err := weights(at+"rrfConfiguration", f.Dense, f.FullText); err != nil {
			return err
		}
		if _, err := integer(f.K); err != nil {
			return err
		}
	}
	return nil
}

func within(field string, n *int, low, high int) error {
	if n != nil && (*n < low || *n > high) {
		return messages.Invalid(field, fmt.Sprintf("must be %d to %d", low, high))
	}
	return nil
}

func between(field string, v *float64, high float64) error {
	if v != nil && !(*v >= 0 && *v <= high) {
		return messages.Invalid(field, fmt.Sprintf("must be 0 to %v", high))
	}
	return nil
}

func weights(at string, dense, text *float64) error {
	if err := between(at+".denseVectorSearchWeight", dense, math.MaxFloat32); err != nil {
		return err
	}
	if err := between(at+".fullTextSearchWeight", text, math.MaxFloat32); err != nil {
		return err
	}
	if dense != nil && text != nil && *dense == 0 && *text == 0 {
		return messages.Invalid(at, "has no weight above 0")
	}
	return nil
}

// maxK is far above any sense; it keeps k an int everywhere.
const maxK = 1_000_000

// integer reads k: a whole number of 1 or more in any notation; nil is the default.
func integer(n *json.Number) (int, error) {
	if n == nil {
		return fusion.DefaultK, nil
	}
	bad := messages.Invalid(Root+".rerankingConfiguration.rrfConfiguration.k", fmt.Sprintf("must be an integer, 1 to %d", maxK))
	f, err := n.Float64()
	if err != nil || f < 1 || f > maxK {
		return 0, bad
	}
	exact, ok := new(big.Rat).SetString(n.String())
	if !ok || !exact.IsInt() {
		return 0, bad
	}
	return int(exact.Num().Int64()), nil
}
