package messages

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
)

// RetrieveLimits bound what a request may ask for.
type RetrieveLimits struct {
	QueryRunes int          `json:"queryCharacters"` // of the query text
	Candidates int          `json:"candidates"`      // N1 and N2
	Results    int          `json:"results"`         // N3
	Subspaces  int          `json:"subspaces"`       // names in a request
	Filter     FilterLimits `json:"filter"`
}

// DefaultRetrieveLimits returns the usual limits.
func DefaultRetrieveLimits() RetrieveLimits {
	return RetrieveLimits{QueryRunes: 4096, Candidates: 1000, Results: 1000, Subspaces: 32, Filter: DefaultFilterLimits()}
}

// TablestoreRetrieveLimits returns the limits of the service whose wire format is spoken here.
func TablestoreRetrieveLimits() RetrieveLimits {
	return RetrieveLimits{QueryRunes: 128, Candidates: 100, Results: 100, Subspaces: 32, Filter: DefaultFilterLimits()}
}

// RetrieveLimitsNamed returns a preset of limits: default (or nothing) or tablestore.
func RetrieveLimitsNamed(preset string) (RetrieveLimits, bool) {
	switch preset {
	case "", "default":
		return DefaultRetrieveLimits(), true
	case "tablestore":
		return TablestoreRetrieveLimits(), true
	}
	return RetrieveLimits{}, false
}

// DefaultRRFK is the usual constant of reciprocal rank fusion; MaxRRFK is far above any sense.
const (
	DefaultRRFK = 60
	MaxRRFK     = 1_000_000
)

const configRoot = "retrievalConfiguration"

// CheckStoredRetrieval checks the default retrieval configuration of a knowledge base as it is set: its
// form, its ranges, that its index has the legs and its schema the fields. Its filters are left to
// pkg/pgstore/filter. Nothing, or null, is fine. Errors as Validate.
func CheckStoredRetrieval(raw json.RawMessage, index IndexType, schema MetadataSchema) error {
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
	if err := c.ValidateStored(DefaultRetrieveLimits()); err != nil {
		return err
	}
	if err := index.CheckSearch(c.SearchType); err != nil {
		return err
	}
	if c.Output != nil {
		if err := schema.CheckProjection(c.Output.Fields); err != nil {
			return err
		}
	}
	if _, given, _ := c.Threshold(); given && !c.denseAlone(index) {
		return ThresholdMisplaced()
	}
	return nil
}

// CheckProjection checks the fields of an output configuration. Internal ones do not exist for callers. Names
// of what results always show are taken as well.
func (s MetadataSchema) CheckProjection(names []string) error {
	for i, name := range names {
		f, declared := s.Field(name)
		if declared && !f.Internal || !declared && slices.Contains([]string{"id", "docId", "chunkId", "content", "title"}, name) {
			continue
		}
		return Invalid(fmt.Sprintf("%s.outputConfiguration.fields[%d]", configRoot, i), fmt.Sprintf("%q is not a declared field", name))
	}
	return nil
}

// ThresholdMisplaced is the error of a score threshold where not the dense leg alone runs.
func ThresholdMisplaced() *Error {
	return &Error{Code: CodeScoreThreshold, Field: configRoot + ".scoreThreshold", Message: "is allowed only where the dense leg alone runs"}
}

// denseAlone reports whether the configuration, with nothing above it, runs the dense leg and no other.
func (c *RetrievalConfiguration) denseAlone(index IndexType) bool {
	dense, text := index != IndexTypeBM25, index != IndexTypeVector
	if c.SearchType != nil {
		dense, text = slices.Contains(c.SearchType, DenseVector), slices.Contains(c.SearchType, FullText)
	}
	if dense && text {
		d, t := c.Reranking.weights()
		dense, text = !isZero(d), !isZero(t)
	}
	dense = dense && (c.Dense == nil || !isZero(c.Dense.NumberOfResults))
	return dense && (!text || c.FullText != nil && isZero(c.FullText.NumberOfResults))
}

// weights of the type in effect, nil for the default and for MODEL, which has none.
func (r *RerankingConfig) weights() (dense, text *float64) {
	switch {
	case r == nil, r.Type == RerankModel:
	case r.Type == RerankRRF && r.RRF != nil:
		return r.RRF.Dense, r.RRF.FullText
	case r.Type != RerankRRF && r.Weight != nil:
		return r.Weight.Dense, r.Weight.FullText
	}
	return nil, nil
}

func isZero[T comparable](p *T) bool {
	var zero T
	return p != nil && *p == zero
}

// NewThreshold returns a score threshold for RetrievalConfiguration.
func NewThreshold(score float64) json.RawMessage {
	return json.RawMessage(strconv.FormatFloat(score, 'g', -1, 64))
}

// Threshold returns the score threshold; given is false where there is none and where null clears it.
func (c *RetrievalConfiguration) Threshold() (score float64, given bool, err error) {
	if c == nil || len(c.ScoreThreshold) == 0 || string(c.ScoreThreshold) == "null" {
		return 0, false, nil
	}
	field := configRoot + ".scoreThreshold"
	if err := json.Unmarshal(c.ScoreThreshold, &score); err != nil {
		return 0, false, Invalid(field, "must be a number from 0 to 1, or null")
	}
	return score, true, floatWithin(field, &score, 1)
}

// FiltersGiven reports whether the configuration says anything of filters, be it null.
func (c *RetrievalConfiguration) FiltersGiven() bool {
	return c != nil && (c.Filter != nil || c.FilterExpression != nil)
}

// NewExpression returns a filter expression for RetrievalConfiguration.
func NewExpression(text string) json.RawMessage {
	out, err := json.Marshal(text)
	if err != nil {
		panic("messages: a string has no JSON form: " + err.Error())
	}
	return out
}

// Expression returns the filter expression; given is false where there is none and where null clears it.
func (c *RetrievalConfiguration) Expression() (text string, given bool, err error) {
	if c == nil || len(c.FilterExpression) == 0 || string(c.FilterExpression) == "null" {
		return "", false, nil
	}
	if err := json.Unmarshal(c.FilterExpression, &text); err != nil {
		return "", false, Invalid(configRoot+".filterExpression", "must be a string, or null")
	}
	return text, true, nil
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

// ValidateStored is Validate for the configuration of a knowledge base, which may tighten the limits.
func (c *RetrievalConfiguration) ValidateStored(limits RetrieveLimits) error {
	if c == nil {
		return nil
	}
	if _, ok := RetrieveLimitsNamed(c.Limits); !ok {
		return Invalid(configRoot+".limits", "must be default or tablestore")
	}
	if err := c.FilterLimits.validate(); err != nil {
		return err
	}
	request := *c
	request.Limits, request.FilterLimits = "", nil
	return request.Validate(c.Tightened(limits))
}

// Tightened returns the limits as the configuration of a knowledge base tightens them; nil does not.
func (c *RetrievalConfiguration) Tightened(limits RetrieveLimits) RetrieveLimits {
	if c == nil {
		return limits
	}
	limits.Filter = c.FilterLimits.tightened(limits.Filter)
	l, ok := RetrieveLimitsNamed(c.Limits)
	if !ok || c.Limits == "" {
		return limits
	}
	return RetrieveLimits{
		QueryRunes: min(limits.QueryRunes, l.QueryRunes), Candidates: min(limits.Candidates, l.Candidates),
		Results: min(limits.Results, l.Results), Subspaces: min(limits.Subspaces, l.Subspaces),
		Filter: limits.Filter,
	}
}

// Validate checks the ranges of everything that is given in a request, also of a rerank type that is not
// in effect; nil is fine. Whether the server has a rerank model is for CheckModel. Errors are VALIDATION_ERROR
// naming the field.
func (c *RetrievalConfiguration) Validate(limits RetrieveLimits) error {
	if c == nil {
		return nil
	}
	if c.Limits != "" {
		return Invalid(configRoot+".limits", "is a setting of the knowledge base, not of a request")
	}
	if c.FilterLimits != nil {
		return Invalid(configRoot+".filterLimits", "is a setting of the knowledge base, not of a request")
	}
	if err := checkSearchTypes(c.SearchType); err != nil {
		return err
	}
	if _, _, err := c.Threshold(); err != nil {
		return err
	}
	if _, _, err := c.Expression(); err != nil {
		return err
	}
	if c.Output != nil && len(c.Output.Fields) > MaxMetadataFields {
		return Invalid(configRoot+".outputConfiguration.fields", fmt.Sprintf("names more than %d fields", MaxMetadataFields))
	}
	if d := c.Dense; d != nil {
		if err := intWithin(configRoot+".denseVectorSearchConfiguration.numberOfResults", d.NumberOfResults, 0, limits.Candidates); err != nil {
			return err
		}
	}
	if t := c.FullText; t != nil {
		at := configRoot + ".fullTextSearchConfiguration."
		if t.Syntax != "" && t.Syntax != SyntaxPlain && t.Syntax != SyntaxSimple {
			return Invalid(at+"syntax", "must be plain or simple")
		}
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
	case "", RerankWeight, RerankRRF, RerankModel:
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
	return r.Model.validate()
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
		e := Invalid(field, fmt.Sprintf("must be %d to %d", low, high))
		if *n > high {
			e.Limit = high
		}
		return e
	}
	return nil
}

func floatWithin(field string, v *float64, high float64) error {
	if v != nil && !(*v >= 0 && *v <= high) {
		return Invalid(field, fmt.Sprintf("must be 0 to %v", high))
	}
	return nil
}

// Weights above 0 are within these bounds: with others the parts of a score could vanish or overflow.
const (
	MinWeight = 1e-30
	MaxWeight = 1e30
)

// CheckWeight checks the weight of a leg. Errors are VALIDATION_ERROR of the field.
func CheckWeight(field string, w float64) error {
	if w == 0 || w >= MinWeight && w <= MaxWeight {
		return nil
	}
	return Invalid(field, fmt.Sprintf("must be 0, or %g to %g", MinWeight, MaxWeight))
}

func checkWeights(at string, dense, text *float64) error {
	for _, w := range []struct {
		field string
		value *float64
	}{{".denseVectorSearchWeight", dense}, {".fullTextSearchWeight", text}} {
		if w.value == nil {
			continue
		}
		if err := CheckWeight(at+w.field, *w.value); err != nil {
			return err
		}
	}
	if dense != nil && text != nil && *dense == 0 && *text == 0 {
		return Invalid(at, "has no weight above 0")
	}
	return nil
}
