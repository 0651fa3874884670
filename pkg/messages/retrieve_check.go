package messages

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// RetrieveLimits bound what a request may ask for.
type RetrieveLimits struct {
	QueryRunes int // characters of the query text
	Candidates int // N1 and N2
	Results    int // N3
	Subspaces  int // names in a request
}

// DefaultRetrieveLimits returns the usual limits.
func DefaultRetrieveLimits() RetrieveLimits {
	return RetrieveLimits{QueryRunes: 4096, Candidates: 1000, Results: 1000, Subspaces: 32}
}

// TablestoreRetrieveLimits returns the limits of the service whose wire format is spoken here.
func TablestoreRetrieveLimits() RetrieveLimits {
	return RetrieveLimits{QueryRunes: 128, Candidates: 100, Results: 100, Subspaces: 32}
}

// DefaultRRFK is the usual constant of reciprocal rank fusion; MaxRRFK is far above any sense.
const (
	DefaultRRFK = 60
	MaxRRFK     = 1_000_000
)

const configRoot = "retrievalConfiguration"

// CheckStoredRetrieval checks the default retrieval configuration of a knowledge base as it is set: its
// form, its ranges, and that its index has the legs. Nothing, or null, is fine. Errors as Validate.
func CheckStoredRetrieval(raw json.RawMessage, index IndexType) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var c RetrievalConfiguration
	if err := DecodeStrict(raw, &c); err != nil {
		if e, ok := AsError(err); ok && e.Field != "body" {
			return Invalid(configRoot+"."+e.Field, e.Message)
		}
		return Invalid(configRoot, "must be an object of a retrieval configuration")
	}
	if err := c.Validate(DefaultRetrieveLimits()); err != nil {
		return err
	}
	return index.CheckSearch(c.SearchType)
}

// CheckSearch refuses, as RETRIEVER_MODE_INVALID, search types that need a leg the index lacks.
func (t IndexType) CheckSearch(types []SearchType) error {
	if t == IndexTypeBM25 && slices.Contains(types, DenseVector) || t == IndexTypeVector && slices.Contains(types, FullText) {
		return &Error{
			Code: CodeRetrieverModeInvalid, Field: configRoot + ".searchType",
			Message: fmt.Sprintf("a knowledge base of index type %s cannot be searched by %v", t, types),
		}
	}
	return nil
}

// Validate checks the ranges of everything that is given, also of a rerank type that is not in effect;
// nil is fine. Errors are VALIDATION_ERROR, or NOT_SUPPORTED of a rerank type, naming the field.
func (c *RetrievalConfiguration) Validate(limits RetrieveLimits) error {
	if c == nil {
		return nil
	}
	if err := checkSearchTypes(c.SearchType); err != nil {
		return err
	}
	if d := c.Dense; d != nil {
		if err := intWithin(configRoot+".denseVectorSearchConfiguration.numberOfResults", d.NumberOfResults, 0, limits.Candidates); err != nil {
			return err
		}
	}
	if t := c.FullText; t != nil {
		at := configRoot + ".fullTextSearchConfiguration."
		if err := intWithin(at+"numberOfResults", t.NumberOfResults, 0, limits.Candidates); err != nil {
			return err
		}
		if err := floatWithin(at+"k1", t.K1, 1000); err != nil {
			return err
		}
		if err := floatWithin(at+"b", t.B, 1); err != nil {
			return err
		}
	}
	return c.Reranking.validate(limits)
}

func checkSearchTypes(types []SearchType) error {
	if types != nil && len(types) == 0 {
		return Invalid(configRoot+".searchType", "must name DENSE_VECTOR, FULL_TEXT or both")
	}
	for i, t := range types {
		if t != DenseVector && t != FullText {
			return Invalid(fmt.Sprintf("%s.searchType[%d]", configRoot, i), "must be DENSE_VECTOR or FULL_TEXT")
		}
	}
	return nil
}

func (r *RerankingConfig) validate(limits RetrieveLimits) error {
	if r == nil {
		return nil
	}
	at := configRoot + ".rerankingConfiguration."
	switch r.Type {
	case "", RerankWeight, RerankRRF:
	case RerankModel:
		return &Error{Code: CodeNotSupported, Field: at + "type", Message: "no rerank model is configured on this server"}
	default:
		return Invalid(at+"type", "must be WEIGHT, RRF or MODEL")
	}
	if err := intWithin(at+"numberOfResults", r.NumberOfResults, 1, limits.Results); err != nil {
		return err
	}
	if w := r.Weight; w != nil {
		if err := checkWeights(at+"weightConfiguration", w.Dense, w.FullText); err != nil {
			return err
		}
	}
	if f := r.RRF; f != nil {
		if err := checkWeights(at+"rrfConfiguration", f.Dense, f.FullText); err != nil {
			return err
		}
		if _, err := f.Constant(); err != nil {
			return err
		}
	}
	return nil
}

// Constant returns k, a whole number in any notation, or the default when it is not given.
func (f *RRFConfig) Constant() (int, error) {
	if f == nil || f.K == nil {
		return DefaultRRFK, nil
	}
	bad := Invalid(configRoot+".rerankingConfiguration.rrfConfiguration.k", fmt.Sprintf("must be an integer, 1 to %d", MaxRRFK))
	if v, err := f.K.Float64(); err != nil || v < 1 || v > MaxRRFK {
		return 0, bad
	}
	exact, ok := new(big.Rat).SetString(f.K.String())
	if !ok || !exact.IsInt() {
		return 0, bad
	}
	return int(exact.Num().Int64()), nil
}

func intWithin(field string, n *int, low, high int) error {
	if n != nil && (*n < low || *n > high) {
		return Invalid(field, fmt.Sprintf("must be %d to %d", low, high))
	}
	return nil
}

func floatWithin(field string, v *float64, high float64) error {
	if v != nil && !(*v >= 0 && *v <= high) {
		return Invalid(field, fmt.Sprintf("must be 0 to %v", high))
	}
	return nil
}

func checkWeights(at string, dense, text *float64) error {
	if err := floatWithin(at+".denseVectorSearchWeight", dense, math.MaxFloat32); err != nil {
		return err
	}
	if err := floatWithin(at+".fullTextSearchWeight", text, math.MaxFloat32); err != nil {
		return err
	}
	if dense != nil && text != nil && *dense == 0 && *text == 0 {
		return Invalid(at, "has no weight above 0")
	}
	return nil
}
