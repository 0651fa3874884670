package config

import "github.com/weir-project/weir/pkg/messages"

// ResolveFilter is Resolve for a query that ranks nothing: of the configurations the filters, the number of
// results and the output are in effect. The others are checked and ignored, but for a threshold of the
// request's own, which would promise something. The number of results is Fusion.Limit.
func ResolveFilter(server Server, kb, request *messages.RetrievalConfiguration) (Settings, error) {
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
	if _, given, err := request.Threshold(); err != nil || given {
		return Settings{}, messages.Invalid(root+".scoreThreshold", "has no place in a FILTER query, which has no scores")
	}
	m := overlay(kb, request)
	s := Settings{Limits: limits, Output: output(m.Output), Filters: filters(&m)}
	s.Fusion.Limit = or(m.Reranking.NumberOfResults, min(defaultResults, limits.Results))
	return s, nil
}
