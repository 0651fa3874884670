package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// Judged is a set with the pools of its queries.
type Judged struct {
	Set   *Set
	KB    string
	Pools Pools
}

// SweepReport compares variants on sets.
type SweepReport struct {
	Sets []SweepSet `json:"sets"`
	Rows []SweepRow `json:"variants"`
	// Baseline is the place of the row that the others are compared with.
	Baseline int `json:"baseline"`
	// Level of the intervals, and the number of samples and the seed they were made with.
	Level   float64 `json:"level"`
	Samples int     `json:"samples"`
	Seed    uint64  `json:"seed"`
}

// SweepSet is a set of a report.
type SweepSet struct {
	Set         string   `json:"set"`
	KB          string   `json:"kb"`
	Queries     int      `json:"queries"`
	Refused     []string `json:"refused,omitempty"`
	Approximate bool     `json:"approximate,omitempty"`
}

// SweepRow is what a variant does. All means are of nDCG@10.
type SweepRow struct {
	Method        string                           `json:"method"`
	N1            int                              `json:"n1,omitempty"`
	N2            int                              `json:"n2,omitempty"`
	Weights       string                           `json:"weights,omitempty"`
	NDCG10        []float64                        `json:"ndcg@10"` // of each set
	Mean          float64                          `json:"mean"`    // over the sets
	Difference    Difference                       `json:"difference"`
	Configuration *messages.RetrievalConfiguration `json:"retrievalConfiguration"`

	variant Variant
}

// Difference is a row's mean less the baseline's, query by query.
type Difference struct {
	Mean   float64 `json:"mean"`
	Low    float64 `json:"low"` // of the interval
	High   float64 `json:"high"`
	Better int     `json:"better"` // queries
	Worse  int     `json:"worse"`
}

// Clear reports that the interval leaves out 0.
func (d Difference) Clear() bool { return d.Low > 0 || d.High < 0 }

// Settings of the intervals: a percentile bootstrap over paired queries, drawn within each set.
const (
	sweepLevel   = 0.95
	sweepSamples = 4000
	sweepSeed    = 1
)

// Sweep ranks every query by every variant and compares the variants with one of them. Nothing is asked.
func Sweep(sets []Judged, variants []Variant, baseline int) (SweepReport, error) {
	out := SweepReport{Baseline: baseline, Level: sweepLevel, Samples: sweepSamples, Seed: sweepSeed}
	for _, s := range sets {
		out.Sets = append(out.Sets, SweepSet{Set: s.Set.Name, KB: s.KB, Refused: s.Pools.Refused, Approximate: s.Pools.Approximate})
	}
	scores := make([][][]float64, len(variants)) // by variant, set, query
	for i, v := range variants {
		row := SweepRow{
			Method: v.Name(), N1: v.N1, N2: v.N2, Weights: v.Weights(), Configuration: v.Configuration(), variant: v,
		}
		for j, s := range sets {
			run, err := s.Pools.Rank(v)
			if err != nil {
				return SweepReport{}, fmt.Errorf("sweep %s: %w", s.Set.Name, err)
			}
			each := PerQuery(s.Set.Qrels, run)
			if len(each) == 0 {
				return SweepReport{}, fmt.Errorf("sweep %s: %w", s.Set.Name, ErrNoJudgment)
			}
			scores[i] = append(scores[i], each)
			row.NDCG10 = append(row.NDCG10, mean(each))
			out.Sets[j].Queries = len(each)
		}
		row.Mean = mean(row.NDCG10)
		out.Rows = append(out.Rows, row)
	}
	compareAll(out.Rows, scores, baseline)
	return out, nil
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// compareAll fills in the differences. All rows see the same samples.
func compareAll(rows []SweepRow, scores [][][]float64, baseline int) {
	samples := make([][]float64, len(rows))
	differences := make([][][]float64, len(rows))
	for i := range rows {
		differences[i], rows[i].Difference = less(scores[i], scores[baseline])
	}
	rng := rand.New(rand.NewPCG(sweepSeed, sweepSeed)) //nolint:gosec // a fixed seed, so that figures can be had again
	for range sweepSamples {
		drawn := draw(rng, scores[baseline])
		for i := range rows {
			samples[i] = append(samples[i], meanOf(differences[i], drawn))
		}
	}
	for i := range rows {
		slices.Sort(samples[i])
		rows[i].Difference.Low = quantile(samples[i], (1-sweepLevel)/2)
		rows[i].Difference.High = quantile(samples[i], (1+sweepLevel)/2)
	}
}

// less subtracts query by query.
func less(a, b [][]float64) (out [][]float64, d Difference) {
	for i := range a {
		each := make([]float64, len(a[i]))
		for j := range each {
			each[j] = a[i][j] - b[i][j]
			switch {
			case each[j] > 0:
				d.Better++
			case each[j] < 0:
				d.Worse++
			}
		}
		out = append(out, each)
		d.Mean += mean(each) / float64(len(a))
	}
	return out, d
}

// draw picks as many queries of each set as it has, with replacement.
func draw(rng *rand.Rand, sets [][]float64) [][]int {
	out := make([][]int, len(sets))
	for i, set := range sets {
		out[i] = make([]int, len(set))
		for j := range out[i] {
			out[i][j] = rng.IntN(len(set))
		}
	}
	return out
}

// meanOf is the mean over sets of the means of the queries drawn.
func meanOf(sets [][]float64, drawn [][]int) float64 {
	total := 0.0
	for i, set := range sets {
		sum := 0.0
		for _, j := range drawn[i] {
			sum += set[j]
		}
		total += sum / float64(len(set))
	}
	return total / float64(len(sets))
}

// quantile is the nearest rank of sorted values.
func quantile(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
