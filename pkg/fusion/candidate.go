package fusion

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Key identifies a chunk.
type Key struct {
	KB       int // position of the knowledge base in the request, 0 when there is one
	Subspace string
	DocID    string
	ChunkID  int // number of the chunk in its document, from 0
}

// Compare orders keys: -1, 0 or 1.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.KB, o.KB),
		cmp.Compare(k.Subspace, o.Subspace),
		cmp.Compare(k.DocID, o.DocID),
		cmp.Compare(k.ChunkID, o.ChunkID),
	)
}

// Standing is what one leg says of a candidate.
type Standing struct {
	Raw   float64 // larger is better: similarity (Metric.Raw) or BM25; only when Known
	Known bool    // the score was computed, whether the leg listed the chunk or not
	Rank  int     // from 1 within the leg's own list, 0 when it did not list the chunk
}

// Candidate is a chunk of the union of the lists.
type Candidate struct {
	Key   Key
	Dense Standing // not Known: the chunk has no vector
	Text  Standing // Known with Raw 0: the chunk holds no query term
	// Model is the relevance of the method Model; others do not look at it.
	Model Relevance
	// Metric of the dense score where it is not that of the Config: candidates of several embedding spaces.
	Metric Metric
}

// Listed is an entry of a leg's list.
type Listed struct {
	Key Key
	Raw float64
}

// Union makes the candidates of two lists, each by falling score: ranks are positions, and a key that
// occurs twice in a list counts once, at its better rank. The candidates come in the order of their keys.
// A score that the other leg did not list is left not Known: the caller looks up the exact value and
// fills it in before a method that needs it.
func Union(dense, text []Listed) []Candidate {
	at := make(map[Key]int, len(dense)+len(text))
	out := make([]Candidate, 0, len(dense)+len(text))
	place := func(k Key) *Candidate {
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, Candidate{Key: k})
		}
		return &out[i]
	}
	for i, l := range dense {
		list(&place(l.Key).Dense, l.Raw, i+1)
	}
	for i, l := range text {
		list(&place(l.Key).Text, l.Raw, i+1)
	}
	slices.SortFunc(out, func(a, b Candidate) int { return a.Key.Compare(b.Key) })
	return out
}

func list(s *Standing, raw float64, rank int) {
	if s.Rank == 0 {
		*s = Standing{Raw: raw, Known: true, Rank: rank}
	}
}

// check finds what no caller may pass: it would give a wrong order in silence.
func check(cands []Candidate) error {
	seen := make(map[Key]struct{}, len(cands))
	for _, c := range cands {
		if _, ok := seen[c.Key]; ok {
			return fmt.Errorf("candidate %+v given twice", c.Key)
		}
		seen[c.Key] = struct{}{}
		for leg, s := range [...]Standing{c.Dense, c.Text} {
			if s.Known && (math.IsNaN(s.Raw) || math.IsInf(s.Raw, 0)) || s.Rank < 0 || s.Rank > 0 && !s.Known {
				return fmt.Errorf("candidate %+v: impossible standing %+v in leg %d", c.Key, s, leg)
			}
		}
		if c.Model.Known && !finite(c.Model.Score) {
			return fmt.Errorf("candidate %+v: impossible relevance %v", c.Key, c.Model.Score)
		}
		if c.Metric != "" && c.Metric.check() != nil {
			return fmt.Errorf("candidate %+v: %w", c.Key, c.Metric.check())
		}
		if c.Text.Raw < 0 {
			return fmt.Errorf("candidate %+v: negative full-text score %v", c.Key, c.Text.Raw)
		}
	}
	return nil
}
