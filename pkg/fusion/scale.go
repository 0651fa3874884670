package fusion

import (
	"fmt"
	"math"
)

// Metric is how vectors of an embedding space are compared.
type Metric string

// Metrics.
const (
	Cosine       Metric = "cosine"
	L2           Metric = "l2"
	InnerProduct Metric = "ip"
)

// Raw turns what pgvector's operator of the metric gives (<=>, <->, <#>) into a score where larger is
// better: the cosine, minus the squared distance, the inner product. An unknown metric gives NaN, which
// Fuse refuses.
func (m Metric) Raw(distance float64) float64 {
	switch m {
	case Cosine:
		return 1 - distance
	case L2:
		return -distance * distance
	case InnerProduct:
		return -distance
	default:
		return math.NaN()
	}
}

// Scale maps a raw score (see Raw) to the reported similarity, 0..1, rounded to 1e-4: vectors are stored
// with half precision and more digits would be noise. Thresholds compare this value.
func (m Metric) Scale(raw float64) float64 {
	switch m {
	case Cosine:
		return round((1 + raw) / 2)
	case L2:
		return round((4 + raw) / 4)
	case InnerProduct:
		return round((raw + 1) / 2)
	default:
		return math.NaN()
	}
}

func round(score float64) float64 {
	return math.Round(min(max(score, 0), 1)*1e4) / 1e4
}

func (m Metric) check() error {
	switch m {
	case Cosine, L2, InnerProduct:
		return nil
	default:
		return fmt.Errorf("unknown metric %q", string(m))
	}
}
