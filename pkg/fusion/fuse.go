package fusion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// Config says how to fuse.
type Config struct {
	Method      Method
	DenseWeight float64 // 0, or messages.MinWeight to MaxWeight; not both 0; a leg of weight 0 takes no part
	TextWeight  float64 // likewise
	K           int     // RRF only: constant added to ranks, >= 1
	Metric      Metric  // of the dense leg
	Legs        Legs    // that were run: search type asked for and count above 0
	Limit       int     // results to return at most (N3), >= 1
	// ByRank has RRF fuse one leg alone as well, in place of reporting its scores: the lists of several
	// knowledge bases whose scores cannot be compared.
	ByRank bool
}

// Legs is a set of retrieval legs.
type Legs struct{ Dense, Text bool }

// Result is a candidate with its final score.
type Result struct {
	Key    Key
	Score  float64 // what orders the list and is reported
	Raw    float64 // Score, or with one leg that leg's raw score
	Scaled float64 // Raw brought to 0..1
	Dense  Share   // zero when the leg took no part
	Text   Share
	// Omitted says, with Model, that the model gave no score: the result stands behind those that have one.
	Omitted bool
}

// Share explains what a leg contributed. With both legs active, Score is the sum of Weight*Part.
type Share struct {
	Rank   int     // from 1 in the leg's list, 0 when it did not list the chunk
	Raw    float64 // similarity or BM25; 0 when not known
	Scaled float64 // similarity 0..1, or BM25 divided by the best of the candidates
	Part   float64 // what the weight multiplied: WEIGHT the normalised score, RRF 1/(k+rank)
	Weight float64
}

// Active returns the legs that have a say: those of Legs, except, by a method that weighs, those of
// weight 0. Callers ask before they run the legs.
func (c Config) Active() Legs {
	if c.Method == Model {
		return c.Legs
	}
	return Legs{Dense: c.Legs.Dense && c.DenseWeight > 0, Text: c.Legs.Text && c.TextWeight > 0}
}

// Validate checks what comes from a request: method, weights, K. The error is a VALIDATION_ERROR whose
// field is relative to rerankingConfiguration.
func (c Config) Validate() error {
	m, ok := methodOf(c.Method)
	if !ok {
		return messages.Invalid("type", fmt.Sprintf("%q is none of %s", string(c.Method), methodNames()))
	}
	return m.validate(c)
}

// Fuse orders the candidates and returns the best Limit of them. With one active leg (Config.Active) the
// candidates that this leg listed are returned with its own scores: the scaled similarity, or BM25. With
// none the list is empty. Errors: Validate's, and plain ones for what only a programming mistake brings
// about (a key twice, a score that is not a number, a missing BM25 score under WEIGHT).
func Fuse(c Config, cands []Candidate) ([]Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	results, err := fuse(c, cands)
	if err != nil {
		return nil, fmt.Errorf("fuse %d candidates by %s: %w", len(cands), c.Method, err)
	}
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(boolCompare(a.Omitted, b.Omitted), cmp.Compare(b.Score, a.Score), a.Key.Compare(b.Key))
	})
	return results[:min(c.Limit, len(results))], nil
}

func fuse(c Config, cands []Candidate) ([]Result, error) {
	if c.Limit < 1 {
		return nil, fmt.Errorf("limit %d", c.Limit)
	}
	if err := c.Metric.check(); err != nil && c.Active().Dense {
		return nil, err
	}
	if err := check(cands); err != nil {
		return nil, err
	}
	m, _ := methodOf(c.Method) // Validate has found it
	switch active := c.Active(); {
	case active.Dense && active.Text || m.always || c.ByRank && c.Method == RRF:
		return m.fuse(c, cands)
	case active.Dense:
		return denseOnly(c, cands), nil
	case active.Text:
		return textOnly(cands), nil
	default:
		return nil, nil
	}
}

// boolCompare puts false first.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// metric is that of a candidate's dense score.
func (c Config) metric(cand Candidate) Metric { return cmp.Or(cand.Metric, c.Metric) }

func denseOnly(c Config, cands []Candidate) []Result {
	var out []Result
	for _, cand := range cands {
		if cand.Dense.Rank == 0 {
			continue
		}
		scaled := c.metric(cand).Scale(cand.Dense.Raw)
		share := Share{Rank: cand.Dense.Rank, Raw: cand.Dense.Raw, Scaled: scaled, Part: scaled, Weight: 1}
		out = append(out, Result{Key: cand.Key, Score: scaled, Raw: cand.Dense.Raw, Scaled: scaled, Dense: share})
	}
	return out
}

func textOnly(cands []Candidate) []Result {
	var listed []Candidate
	for _, cand := range cands {
		if cand.Text.Rank > 0 {
			listed = append(listed, cand)
		}
	}
	best := bestText(listed)
	out := make([]Result, 0, len(listed))
	for _, cand := range listed {
		raw, scaled := cand.Text.Raw, divide(cand.Text.Raw, best)
		share := Share{Rank: cand.Text.Rank, Raw: raw, Scaled: scaled, Part: raw, Weight: 1}
		out = append(out, Result{Key: cand.Key, Score: raw, Raw: raw, Scaled: scaled, Text: share})
	}
	return out
}

// shares fills in what all methods report alike.
func shares(c Config, cand Candidate, best float64) (dense, text Share) {
	dense = Share{Rank: cand.Dense.Rank, Weight: c.DenseWeight}
	if cand.Dense.Known {
		dense.Raw, dense.Scaled = cand.Dense.Raw, c.metric(cand).Scale(cand.Dense.Raw)
	}
	text = Share{Rank: cand.Text.Rank, Weight: c.TextWeight}
	if cand.Text.Known {
		text.Raw, text.Scaled = cand.Text.Raw, divide(cand.Text.Raw, best)
	}
	return dense, text
}

// combine adds up the parts; whole is the sum that a perfect candidate would reach.
func combine(key Key, dense, text Share, whole float64) Result {
	// The conversions forbid fused multiply-add: scores must not differ between machines.
	score := float64(dense.Weight*dense.Part) + float64(text.Weight*text.Part)
	return Result{Key: key, Score: score, Raw: score, Scaled: score / whole, Dense: dense, Text: text}
}

func bestText(cands []Candidate) float64 {
	best := 0.0
	for _, c := range cands {
		if c.Text.Known {
			best = max(best, c.Text.Raw)
		}
	}
	return best
}

func divide(raw, best float64) float64 {
	if best == 0 {
		return 0
	}
	return raw / best
}

func validWeights(c Config, object string) error {
	for _, w := range []struct {
		field string
		value float64
	}{
		{"denseVectorSearchWeight", c.DenseWeight},
		{"fullTextSearchWeight", c.TextWeight},
	} {
		if err := messages.CheckWeight(object+"."+w.field, w.value); err != nil {
			return err
		}
	}
	if c.DenseWeight == 0 && c.TextWeight == 0 {
		return messages.Invalid(object, "the two weights must not both be 0")
	}
	return nil
}
