package fusion

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// scored are candidates c1, c2, … of the dense leg with the scores of a rerank model; NaN: none.
func scored(scores ...float64) []Candidate {
	out := make([]Candidate, len(scores))
	for i, s := range scores {
		out[i] = Candidate{Key: Key{DocID: "c", ChunkID: i + 1}, Dense: Standing{Raw: 0.5, Known: true, Rank: i + 1}}
		if !math.IsNaN(s) {
			out[i].Model = Relevance{Score: s, Known: true}
		}
	}
	return out
}

func modelConfig() Config {
	return Config{Method: Model, Metric: Cosine, Legs: Legs{Dense: true, Text: true}, Limit: 100}
}

func chunks(results []Result) []int {
	var out []int
	for _, r := range results {
		out = append(out, r.Key.ChunkID)
	}
	return out
}

func TestModelOrdersByItsScores(t *testing.T) { // CT-25, D-13, D-14
	none := math.NaN()
	for name, c := range map[string]struct {
		scores []float64
		want   []int
	}{
		"reverse order":                   {[]float64{0.1, 0.2, 0.3}, []int{3, 2, 1}},
		"ties by key":                     {[]float64{0.5, 0.5, 0.9, 0.5}, []int{3, 1, 2, 4}},
		"what is omitted comes last":      {[]float64{none, 0.2, none, 0.9}, []int{4, 2, 1, 3}},
		"also behind negative scores":     {[]float64{none, -3, -7.5}, []int{2, 3, 1}},
		"all omitted":                     {[]float64{none, none}, []int{1, 2}},
		"nothing":                         {nil, nil},
		"scores above one keep their way": {[]float64{1.5, 8, 3}, []int{2, 3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Fuse(modelConfig(), scored(c.scores...))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(chunks(got), c.want) {
				t.Errorf("got %v, want %v", chunks(got), c.want)
			}
			for _, r := range got {
				s := c.scores[r.Key.ChunkID-1]
				want := Result{Score: s, Raw: s, Scaled: min(max(s, 0), 1)}
				if math.IsNaN(s) {
					want = Result{Omitted: true}
				}
				if r.Score != want.Score || r.Raw != want.Raw || r.Scaled != want.Scaled || r.Omitted != want.Omitted {
					t.Errorf("c%d: got %+v, want %+v", r.Key.ChunkID, r, want)
				}
				if r.Dense.Rank != r.Key.ChunkID || r.Dense.Scaled != 0.75 || r.Dense.Weight != 0 {
					t.Errorf("c%d: dense share %+v", r.Key.ChunkID, r.Dense)
				}
			}
		})
	}
}

func TestModelRunsForOneLeg(t *testing.T) { // C-32
	c := modelConfig()
	c.Legs.Text = false
	cands := scored(0.1, 0.2)
	cands = append(cands, Candidate{Key: Key{DocID: "t"}, Text: Standing{Raw: 3, Known: true, Rank: 1}, Model: Relevance{Score: 9, Known: true}})
	got, err := Fuse(c, cands)
	if err != nil || !slices.Equal(chunks(got), []int{2, 1}) {
		t.Errorf("got %v, %v; want the dense leg's candidates in the model's order", chunks(got), err)
	}
}

func TestModelRefusesScoresThatAreNone(t *testing.T) {
	for _, bad := range []float64{math.Inf(1), math.Inf(-1)} {
		if _, err := Fuse(modelConfig(), scored(0.5, bad)); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
	cands := scored(0.5)
	cands[0].Model.Score = math.NaN()
	if _, err := Fuse(modelConfig(), cands); err == nil {
		t.Error("NaN passes")
	}
	cands = scored(0.5)
	cands[0].Metric = "hamming"
	if _, err := Fuse(modelConfig(), cands); err == nil {
		t.Error("an unknown metric of a candidate passes")
	}
}

func TestByRankFusesOneLeg(t *testing.T) { // D-25: lists of several knowledge bases
	c := Config{Method: RRF, Metric: Cosine, DenseWeight: 1, TextWeight: 1, K: 60, Legs: Legs{Dense: true}, Limit: 10, ByRank: true}
	cands := []Candidate{
		{Key: Key{KB: 1, DocID: "b"}, Dense: Standing{Raw: 0.9, Known: true, Rank: 1}},
		{Key: Key{KB: 0, DocID: "a"}, Dense: Standing{Raw: -4, Known: true, Rank: 1}, Metric: L2},
		{Key: Key{KB: 1, DocID: "c"}, Dense: Standing{Raw: 0.8, Known: true, Rank: 2}},
	}
	got, err := Fuse(c, cands)
	if err != nil {
		t.Fatal(err)
	}
	var docs []string
	for _, r := range got {
		docs = append(docs, r.Key.DocID)
	}
	if !slices.Equal(docs, []string{"a", "b", "c"}) {
		t.Fatalf("got %v, want ties by the order of the knowledge bases", docs)
	}
	if got[0].Score != 1.0/61 || got[0].Scaled != 1 || got[0].Dense.Scaled != 0 || got[1].Dense.Scaled != 0.95 {
		t.Errorf("got %+v and %+v", got[0], got[1])
	}
	c.ByRank = false
	if got, err = Fuse(c, cands); err != nil || got[0].Key.DocID != "b" || got[0].Score != 0.95 {
		t.Errorf("without it a leg keeps its scores: got %+v, %v", got, errors.Unwrap(err))
	}
}
