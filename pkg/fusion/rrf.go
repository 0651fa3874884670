package fusion

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// DefaultK is the usual constant of reciprocal rank fusion.
const DefaultK = 60

func validateRRF(c Config) error {
	if c.K < 1 {
		return messages.Invalid("rrfConfiguration.k", "must be an integer, 1 or more")
	}
	return validWeights(c, "rrfConfiguration")
}

func fuseRanks(c Config, cands []Candidate) ([]Result, error) {
	best := bestText(cands)
	whole := c.activeWeight() / float64(c.K+1)
	out := make([]Result, len(cands))
	for i, cand := range cands {
		if cand.Dense.Rank == 0 && cand.Text.Rank == 0 {
			return nil, fmt.Errorf("candidate %+v is in no list", cand.Key)
		}
		dense, text := shares(c, cand, best)
		dense.Part, text.Part = reciprocal(dense.Rank, c.K), reciprocal(text.Rank, c.K)
		out[i] = combine(cand.Key, dense, text, whole)
	}
	return out, nil
}

// activeWeight is the sum of the weights of the legs that have a say.
func (c Config) activeWeight() float64 {
	sum, active := 0.0, c.Active()
	if active.Dense {
		sum += c.DenseWeight
	}
	if active.Text {
		sum += c.TextWeight
	}
	return sum
}

func reciprocal(rank, k int) float64 {
	if rank == 0 {
		return 0
	}
	return 1 / (float64(k) + float64(rank))
}

// Ranked is an item of a fused list.
type Ranked[T any] struct {
	Item  T // as it first occurred
	Score float64
}

// FuseRRF joins lists by the sum of weight/(k+rank), rank being the position from 1. Items with one key are
// one item, at its best rank in each list. The result is by falling score; items that tie keep the order
// in which they are first met, going through the lists one after the other. Nil weights are all 1; a list
// of weight 0 adds nothing. The lists are not modified. No lists give an empty result. Errors are
// VALIDATION_ERRORs of k or weights.
func FuseRRF[T any, K comparable](lists [][]T, weights []float64, k int, key func(T) K) ([]Ranked[T], error) {
	weights, err := listWeights(len(lists), weights, k)
	if err != nil {
		return nil, err
	}
	var (
		out   []Ranked[T]
		parts [][]float64
		at    = map[K]int{}
	)
	for l, items := range lists {
		if weights[l] == 0 {
			continue
		}
		inList := map[K]struct{}{}
		for rank, item := range items {
			id := key(item)
			if _, ok := inList[id]; ok {
				continue
			}
			inList[id] = struct{}{}
			i, ok := at[id]
			if !ok {
				i = len(out)
				at[id] = i
				out, parts = append(out, Ranked[T]{Item: item}), append(parts, nil)
			}
			parts[i] = append(parts[i], weights[l]/(float64(k)+float64(rank+1)))
		}
	}
	for i := range out {
		out[i].Score = sum(parts[i])
	}
	slices.SortStableFunc(out, func(a, b Ranked[T]) int { return cmp.Compare(b.Score, a.Score) })
	return out, nil
}

// sum adds from the smallest up, so that equal parts give equal sums whatever list they come from.
func sum(parts []float64) float64 {
	slices.Sort(parts)
	total := 0.0
	for _, p := range parts {
		total += p
	}
	return total
}

func listWeights(lists int, weights []float64, k int) ([]float64, error) {
	if k < 1 {
		return nil, messages.Invalid("k", "must be an integer, 1 or more")
	}
	if weights == nil {
		return slices.Repeat([]float64{1}, lists), nil
	}
	if len(weights) != lists {
		return nil, messages.Invalid("weights", fmt.Sprintf("%d weights for %d lists", len(weights), lists))
	}
	for _, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, messages.Invalid("weights", "must be finite numbers, 0 or more")
		}
	}
	return weights, nil
}
