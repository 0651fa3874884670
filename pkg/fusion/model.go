package fusion

import "math"

// Relevance is what a rerank model says of a candidate. The zero value: nothing.
type Relevance struct {
	Score float64 // as the model gives it: any finite number, larger is better
	Known bool    // the model gave a score
}

func validateModel(Config) error { return nil }

// fuseModel orders by the relevance of a rerank model. The legs only choose the candidates. One that the
// model left out has the score 0 and stands behind all others, whatever theirs are.
func fuseModel(c Config, cands []Candidate) ([]Result, error) {
	best := bestText(cands)
	active := c.Active()
	var out []Result
	for _, cand := range cands {
		if !(active.Dense && cand.Dense.Rank > 0 || active.Text && cand.Text.Rank > 0) {
			continue
		}
		dense, text := shares(c, cand, best)
		dense.Part, text.Part, dense.Weight, text.Weight = dense.Scaled, text.Scaled, 0, 0
		r := Result{Key: cand.Key, Dense: dense, Text: text, Omitted: !cand.Model.Known}
		if cand.Model.Known {
			r.Score = cand.Model.Score
		}
		r.Raw, r.Scaled = r.Score, min(max(r.Score, 0), 1)
		out = append(out, r)
	}
	return out, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
