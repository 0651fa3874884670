package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
)

// Variant is one way to make a ranking of the legs' lists.
type Variant struct {
	Legs        Mode          // Hybrid, or the leg that answers alone
	Method      fusion.Method // of Hybrid
	N1, N2      int           // entries of the dense and of the full-text list
	DenseWeight float64       // of Hybrid
	TextWeight  float64
	K           int // of RRF
}

// Default is what a knowledge base does that says nothing else.
func Default() Variant {
	return Variant{Legs: Hybrid, Method: fusion.Weight, N1: 20, N2: 20, DenseWeight: 0.7, TextWeight: 0.3}
}

// Counts are the numbers of entries of the two lists.
type Counts struct{ N1, N2 int }

// Grid says which variants to try.
type Grid struct {
	Counts []Counts
	Shares []float64 // dense weights of WEIGHT; the full-text weight is what is missing to 1
	Ks     []int     // constants of RRF with equal weights
}

// DefaultGrid is wide enough to see where a set has its best.
func DefaultGrid() Grid {
	return Grid{
		Counts: []Counts{{20, 20}, {100, 100}},
		Shares: []float64{0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1},
		Ks:     []int{10, 60, 100},
	}
}

// alone is how many entries the list of a leg that answers alone has: what Recall@100 needs.
const alone = results

// Variants are both legs alone, and every method at every count. The default comes first if it is among them,
// or is added.
func (g Grid) Variants() []Variant {
	out := []Variant{Default(), {Legs: Vector, N1: alone}, {Legs: Sparse, N2: alone}}
	for _, n := range g.Counts {
		for _, share := range g.Shares {
			out = append(out, Variant{Legs: Hybrid, Method: fusion.Weight, N1: n.N1, N2: n.N2, DenseWeight: share, TextWeight: rest(share)})
		}
		for _, k := range g.Ks {
			out = append(out, Variant{Legs: Hybrid, Method: fusion.RRF, N1: n.N1, N2: n.N2, DenseWeight: 1, TextWeight: 1, K: k})
		}
	}
	var unique []Variant
	for _, v := range out {
		if !slices.Contains(unique, v) {
			unique = append(unique, v)
		}
	}
	return unique
}

// rest is 1 - share without what binary fractions add to it.
func rest(share float64) float64 {
	text := strconv.FormatFloat(1-share, 'g', 12, 64)
	out, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 1 - share
	}
	return out
}

// Largest is the longest list that a variant needs.
func Largest(variants []Variant) int {
	n := 1
	for _, v := range variants {
		n = max(n, v.N1, v.N2)
	}
	return n
}

// Name is the method in words.
func (v Variant) Name() string {
	switch {
	case v.Legs == Vector:
		return "dense alone"
	case v.Legs == Sparse:
		return "full text alone"
	case v.Method == fusion.RRF:
		return fmt.Sprintf("RRF k %d", v.K)
	}
	return string(v.Method)
}

// Lists is the number of entries of the lists, as text.
func (v Variant) Lists() string {
	switch {
	case v.Legs == Vector:
		return strconv.Itoa(v.N1)
	case v.Legs == Sparse:
		return strconv.Itoa(v.N2)
	case v.N1 == v.N2:
		return strconv.Itoa(v.N1)
	}
	return fmt.Sprintf("%d/%d", v.N1, v.N2)
}

// Weights are the weights as text, nothing for a leg alone.
func (v Variant) Weights() string {
	if v.Legs != Hybrid {
		return ""
	}
	return number(v.DenseWeight) + "/" + number(v.TextWeight)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// Configuration is the variant as the retrieval configuration of a request or of a knowledge base.
func (v Variant) Configuration() *messages.RetrievalConfiguration {
	c := &messages.RetrievalConfiguration{}
	if v.Legs != Sparse {
		c.SearchType = append(c.SearchType, messages.DenseVector)
		c.Dense = &messages.DenseConfig{NumberOfResults: &v.N1}
	}
	if v.Legs != Vector {
		c.SearchType = append(c.SearchType, messages.FullText)
		c.FullText = &messages.FullTextConfig{NumberOfResults: &v.N2}
	}
	if v.Legs != Hybrid {
		return c
	}
	c.Reranking = &messages.RerankingConfig{Type: messages.RerankType(v.Method)}
	if v.Method == fusion.RRF {
		k := json.Number(strconv.Itoa(v.K))
		c.Reranking.RRF = &messages.RRFConfig{Dense: &v.DenseWeight, FullText: &v.TextWeight, K: &k}
	} else {
		c.Reranking.Weight = &messages.WeightConfig{Dense: &v.DenseWeight, FullText: &v.TextWeight}
	}
	return c
}

// fusion is the variant as the retriever fuses.
func (v Variant) fusion(metric fusion.Metric) fusion.Config {
	c := fusion.Config{
		Method: v.Method, DenseWeight: v.DenseWeight, TextWeight: v.TextWeight, K: v.K, Metric: metric, Limit: results,
		Legs: fusion.Legs{Dense: v.Legs != Sparse && v.N1 > 0, Text: v.Legs != Vector && v.N2 > 0},
	}
	if v.Legs != Hybrid { // a leg alone is not weighed
		c.Method, c.DenseWeight, c.TextWeight = fusion.Weight, 1, 1
	}
	return c
}
