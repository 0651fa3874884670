// Package config decides how a request is run: the request's own configuration over the knowledge
// base's over the system's, leaf by leaf, all of it checked. It is pure.
package config

import (
	"slices"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/postings"
)

// Settings is how a request is run, nothing left open. Fusion.Metric is the caller's to fill in.
type Settings struct {
	Limits     messages.RetrieveLimits // the server's, as tightened by the knowledge base
	DenseLimit int                     // N1
	TextLimit  int                     // N2
	K1, B      float64
	Simple     bool          // the query text is of the syntax simple
	Fallback   bool          // the full-text leg may answer for an empty dense one
	Threshold  float64       // of the scaled similarity; 0: none
	Fusion     fusion.Config // with N3 and the legs
	Model      Model         // of the fusion MODEL
	Output     Output
	// Filters are the filters in effect, in the configuration that gives them; nil: none.
	Filters *messages.RetrievalConfiguration
}

// Model is a rerank model that the server is set up with.
type Model struct {
	Provider string
	Name     string // empty: the provider's only one
}

// Output is what results show.
type Output struct {
	Fields          []string // of the metadata; nil: all
	Vector, Content bool
}

// Defaults of the system (D-02, TS-05).
const (
	defaultCandidates = 20
	defaultResults    = 20
	defaultDense      = 0.7
	defaultText       = 0.3
	defaultRRF        = 1.0
)

// root names the configuration in errors.
const root = "retrievalConfiguration"

// Server is what the server is set up with.
type Server struct {
	Limits messages.RetrieveLimits
	Models messages.RerankProviders
}

// Resolve lays the request's configuration over the knowledge base's; either may be nil. Errors are
// VALIDATION_ERROR naming the field, or RETRIEVER_MODE_INVALID.
func Resolve(server Server, index messages.IndexType, kb, request *messages.RetrievalConfiguration) (Settings, error) {
	limits := server.Limits
	if err := kb.ValidateStored(limits); err != nil {
		return Settings{}, ofDefaults(err)
	}
	limits = kb.Tightened(limits)
	if err := request.Validate(limits); err != nil {
		return Settings{}, err
	}
	if err := request.CheckModel(server.Models); err != nil {
		return Settings{}, err
	}
	m := overlay(kb, request)
	s := Settings{
		Limits: limits, Simple: m.FullText.Syntax == messages.SyntaxSimple, Output: output(m.Output),
		DenseLimit: or(m.Dense.NumberOfResults, min(defaultCandidates, limits.Candidates)),
		TextLimit:  or(m.FullText.NumberOfResults, min(defaultCandidates, limits.Candidates)),
		Filters:    filters(&m),
		K1:         or(m.FullText.K1, postings.DefaultK1), B: or(m.FullText.B, postings.DefaultB),
	}
	legs, err := chooseLegs(index, m.SearchType)
	if err != nil {
		return Settings{}, err
	}
	s.Fusion = fuse(m.Reranking)
	if s.Fusion.Method == fusion.Model {
		if s.Model.Provider, s.Model.Name, err = server.Models.Choose(m.Reranking.Model); err != nil {
			return Settings{}, err
		}
	}
	s.Fusion.Limit = or(m.Reranking.NumberOfResults, min(defaultResults, limits.Results))
	if !legs.Dense || !legs.Text { // a leg alone is not weighed
		s.Fusion.DenseWeight, s.Fusion.TextWeight = 1, 1
	}
	s.Fusion.Legs = fusion.Legs{Dense: legs.Dense && s.DenseLimit > 0, Text: legs.Text && s.TextLimit > 0}
	if err := s.Fusion.Validate(); err != nil {
		return Settings{}, under(root+".rerankingConfiguration.", err)
	}
	if active := s.Fusion.Active(); !active.Dense && !active.Text {
		return Settings{}, messages.Invalid(root, "leaves no search to run: numberOfResults or weights are 0")
	}
	return s, s.denseOnly(&m)
}

// Reranking is how the lists of several knowledge bases are joined.
type Reranking struct {
	Fusion fusion.Config // method, weights, K and N3
	Model  Model
}

// ResolveReranking lays the request's reranking configuration over a knowledge base's (nil: the system's alone),
// whatever legs there are. Both must have passed Resolve.
func ResolveReranking(server Server, kb, request *messages.RetrievalConfiguration) (Reranking, error) {
	limits := kb.Tightened(server.Limits)
	m := overlay(kb, request)
	r := Reranking{Fusion: fuse(m.Reranking)}
	r.Fusion.Limit = or(m.Reranking.NumberOfResults, min(defaultResults, limits.Results))
	var err error
	if r.Fusion.Method == fusion.Model {
		r.Model.Provider, r.Model.Name, err = server.Models.Choose(m.Reranking.Model)
	}
	return r, err
}

// Ranks is the fusion by rank that the request asks for, over the system's: for lists whose scores cannot be
// compared.
func Ranks(request *messages.RetrievalConfiguration) fusion.Config {
	r := overlay(nil, request).Reranking
	r.Type = messages.RerankRRF
	return fuse(r)
}

// denseOnly sets what exists only where the dense leg alone runs.
func (s *Settings) denseOnly(m *messages.RetrievalConfiguration) error {
	threshold, given, err := m.Threshold()
	if err != nil {
		return err
	}
	if active := s.Fusion.Active(); active.Text {
		if given {
			return messages.ThresholdMisplaced()
		}
		return nil
	}
	s.Threshold = threshold
	s.Fallback = or(m.Dense.FallbackToFullText, true) && s.TextLimit > 0
	return nil
}

// filters is what a merged configuration says of filters.
func filters(m *messages.RetrievalConfiguration) *messages.RetrievalConfiguration {
	if !m.FiltersGiven() {
		return nil
	}
	return &messages.RetrievalConfiguration{Filter: m.Filter, FilterExpression: m.FilterExpression}
}

func output(o *messages.OutputConfig) Output {
	return Output{Fields: o.Fields, Vector: or(o.Vector, false), Content: or(o.Content, true)}
}

// chooseLegs turns the search types into legs that the index has.
func chooseLegs(index messages.IndexType, types []messages.SearchType) (fusion.Legs, error) {
	has := fusion.Legs{Dense: index != messages.IndexTypeBM25, Text: index != messages.IndexTypeVector}
	if types == nil {
		return has, nil
	}
	want := fusion.Legs{Dense: slices.Contains(types, messages.DenseVector), Text: slices.Contains(types, messages.FullText)}
	return want, index.CheckSearch(types)
}

// fuse reads the reranking configuration; fields of the type that is not in effect are ignored.
func fuse(r *messages.RerankingConfig) fusion.Config {
	switch r.Type {
	case messages.RerankRRF:
		k, _ := r.RRF.Constant() // checked already
		return fusion.Config{Method: fusion.RRF, DenseWeight: or(r.RRF.Dense, defaultRRF), TextWeight: or(r.RRF.FullText, defaultRRF), K: k}
	case messages.RerankModel:
		return fusion.Config{Method: fusion.Model, K: fusion.DefaultK}
	}
	return fusion.Config{Method: fusion.Weight, DenseWeight: or(r.Weight.Dense, defaultDense), TextWeight: or(r.Weight.FullText, defaultText), K: fusion.DefaultK}
}

// ofDefaults says that not the request is to blame: the server's limits may be tighter now than when they were set.
func ofDefaults(err error) error {
	e, ok := messages.AsError(err)
	if !ok {
		return err
	}
	out := *e
	out.Message = "of the knowledge base's defaults: " + e.Message
	return &out
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// under completes the field of a VALIDATION_ERROR.
func under(prefix string, err error) error {
	e, ok := messages.AsError(err)
	if !ok {
		return err
	}
	out := *e
	out.Field = prefix + e.Field
	return &out
}
