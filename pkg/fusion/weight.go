package fusion

import (
	"fmt"
	"math"
)

// sameBelow is the spread of similarities under which they all count as equal.
const sameBelow = 1e-4

func validateWeight(c Config) error { return validWeights(c, "weightConfiguration") }

// fuseWeight is the weighted sum of both scores, each brought to 0..1 over all candidates: similarity from
// the lowest to the highest, BM25 by the highest. Both scores are taken for every candidate, also when the
// leg did not list it: to call an unlisted chunk worthless is what makes the usual recipes poor.
func fuseWeight(c Config, cands []Candidate) ([]Result, error) {
	low, high := spread(cands)
	best := bestText(cands)
	out := make([]Result, len(cands))
	for i, cand := range cands {
		if !cand.Text.Known {
			return nil, fmt.Errorf("candidate %+v has no full-text score", cand.Key)
		}
		dense, text := shares(c, cand, best)
		dense.Part = densePart(cand.Dense, low, high)
		text.Part = text.Scaled
		out[i] = combine(cand.Key, dense, text, c.DenseWeight+c.TextWeight)
	}
	return out, nil
}

func densePart(s Standing, low, high float64) float64 {
	switch {
	case !(high-low >= sameBelow): // also when no candidate has a vector
		return 1
	case !s.Known:
		return 0 // a chunk without a vector counts as the least similar
	default:
		return (s.Raw - low) / (high - low)
	}
}

func spread(cands []Candidate) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range cands {
		if c.Dense.Known {
			low, high = min(low, c.Dense.Raw), max(high, c.Dense.Raw)
		}
	}
	return low, high
}
