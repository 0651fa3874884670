package config

import (
	"cmp"

	"github.com/weir-project/weir/pkg/messages"
)

// overlay merges leaf by leaf, upper over lower. Every object of the result is set and its own.
func overlay(lower, upper *messages.RetrievalConfiguration) messages.RetrievalConfiguration {
	l, u := deref(lower), deref(upper)
	out := messages.RetrievalConfiguration{SearchType: l.SearchType}
	if u.SearchType != nil {
		out.SearchType = u.SearchType
	}
	ld, ud := deref(l.Dense), deref(u.Dense)
	out.Dense = &messages.DenseConfig{
		NumberOfResults: first(ud.NumberOfResults, ld.NumberOfResults), FallbackToFullText: first(ud.FallbackToFullText, ld.FallbackToFullText),
	}
	lt, ut := deref(l.FullText), deref(u.FullText)
	out.FullText = &messages.FullTextConfig{
		NumberOfResults: first(ut.NumberOfResults, lt.NumberOfResults), K1: first(ut.K1, lt.K1), B: first(ut.B, lt.B),
		Syntax: cmp.Or(ut.Syntax, lt.Syntax),
	}
	out.ScoreThreshold = l.ScoreThreshold
	if u.ScoreThreshold != nil { // null too: it clears
		out.ScoreThreshold = u.ScoreThreshold
	}
	out.Filter, out.FilterExpression = l.Filter, l.FilterExpression
	if u.FiltersGiven() { // one leaf
		out.Filter, out.FilterExpression = u.Filter, u.FilterExpression
	}
	lo, uo := deref(l.Output), deref(u.Output)
	out.Output = &messages.OutputConfig{Fields: lo.Fields, Vector: first(uo.Vector, lo.Vector), Content: first(uo.Content, lo.Content)}
	if uo.Fields != nil {
		out.Output.Fields = uo.Fields
	}
	out.Reranking = overlayReranking(deref(l.Reranking), deref(u.Reranking))
	return out
}

func overlayReranking(l, u messages.RerankingConfig) *messages.RerankingConfig {
	out := &messages.RerankingConfig{Type: l.Type, NumberOfResults: first(u.NumberOfResults, l.NumberOfResults)}
	if u.Type != "" {
		out.Type = u.Type
	}
	lw, uw := deref(l.Weight), deref(u.Weight)
	out.Weight = &messages.WeightConfig{Dense: first(uw.Dense, lw.Dense), FullText: first(uw.FullText, lw.FullText)}
	lr, ur := deref(l.RRF), deref(u.RRF)
	out.RRF = &messages.RRFConfig{Dense: first(ur.Dense, lr.Dense), FullText: first(ur.FullText, lr.FullText), K: first(ur.K, lr.K)}
	lm, um := deref(l.Model), deref(u.Model)
	out.Model = &messages.ModelConfig{Provider: cmp.Or(um.Provider, lm.Provider), Model: cmp.Or(um.Model, lm.Model)}
	return out
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func deref[T any](p *T) T {
	var zero T
	return or(p, zero)
}
