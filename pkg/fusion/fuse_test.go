package fusion_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
)

func key(doc string) fusion.Key { return fusion.Key{DocID: doc} }

func listOf(docs ...string) []fusion.Listed {
	out := make([]fusion.Listed, len(docs))
	for i, d := range docs {
		out[i] = fusion.Listed{Key: key(d), Raw: 1 - float64(i)/10}
	}
	return out
}

func rrf(dense, text float64, k int) fusion.Config {
	return fusion.Config{
		Method: fusion.RRF, DenseWeight: dense, TextWeight: text, K: k,
		Metric: fusion.Cosine, Legs: fusion.Legs{Dense: true, Text: true}, Limit: 20,
	}
}

func weight(dense, text float64) fusion.Config {
	c := rrf(dense, text, 0)
	c.Method = fusion.Weight
	return c
}

type want struct {
	doc   string
	score float64
}

func checkScores(t *testing.T, got []fusion.Result, wants ...want) {
	t.Helper()
	if len(got) != len(wants) {
		t.Fatalf("got %d results, want %d: %+v", len(got), len(wants), got)
	}
	for i, w := range wants {
		if got[i].Key.DocID != w.doc || math.Abs(got[i].Score-w.score) > 1e-7 {
			t.Errorf("rank %d: got %s %.7f, want %s %.7f", i+1, got[i].Key.DocID, got[i].Score, w.doc, w.score)
		}
	}
}

func fuse(t *testing.T, c fusion.Config, cands []fusion.Candidate) []fusion.Result {
	t.Helper()
	got, err := fusion.Fuse(c, cands)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRRFAddsReciprocalRanks(t *testing.T) { // CT-18, CT-19
	t.Parallel()
	cands := fusion.Union(listOf("A", "B"), listOf("B", "C"))
	got := fuse(t, rrf(1, 1, 60), cands)
	checkScores(t, got, want{"B", 0.0325225}, want{"A", 0.0163934}, want{"C", 0.0161290})
	if scaled := got[0].Scaled; math.Abs(scaled-0.0325225/(2.0/61)) > 1e-5 || got[0].Raw != got[0].Score {
		t.Errorf("B: raw %v, scaled %v", got[0].Raw, scaled)
	}
	got = fuse(t, rrf(0.6, 0.4, 20), cands)
	checkScores(t, got, want{"B", 0.0463203}, want{"A", 0.0285714}, want{"C", 0.0181818})
}

func TestRRFCountsARepeatedKeyAtItsBestRank(t *testing.T) {
	t.Parallel()
	got := fuse(t, rrf(1, 1, 60), fusion.Union(listOf("A", "A", "B"), listOf("B")))
	checkScores(t, got, want{"B", 1.0/63 + 1.0/61}, want{"A", 1.0 / 61})
}

// ct21 is a union where A holds no query term and C is outside the dense list.
func ct21() []fusion.Candidate {
	return []fusion.Candidate{
		{Key: key("A"), Dense: fusion.Standing{Raw: 0.9, Known: true, Rank: 1}, Text: fusion.Standing{Known: true}},
		{
			Key: key("B"), Dense: fusion.Standing{Raw: 0.5, Known: true, Rank: 2},
			Text: fusion.Standing{Raw: 4, Known: true, Rank: 1},
		},
		{
			Key: key("C"), Dense: fusion.Standing{Raw: 0.3, Known: true},
			Text: fusion.Standing{Raw: 2, Known: true, Rank: 2},
		},
	}
}

func TestWeightSumsBothScoresOfTheWholeUnion(t *testing.T) { // CT-21
	t.Parallel()
	got := fuse(t, weight(0.7, 0.3), ct21())
	checkScores(t, got, want{"A", 0.7}, want{"B", 0.5333333}, want{"C", 0.15})
	b := got[1]
	wantDense := fusion.Share{Rank: 2, Raw: 0.5, Scaled: 0.75, Part: b.Dense.Part, Weight: 0.7}
	wantText := fusion.Share{Rank: 1, Raw: 4, Scaled: 1, Part: 1, Weight: 0.3}
	if b.Dense != wantDense || b.Text != wantText || math.Abs(b.Dense.Part-1.0/3) > 1e-12 {
		t.Errorf("B: got %+v and %+v", b.Dense, b.Text)
	}
	if c := got[2]; c.Dense.Rank != 0 || c.Dense.Raw != 0.3 {
		t.Errorf("C, outside the dense list: got %+v", c.Dense)
	}
	got = fuse(t, weight(7, 3), ct21())
	checkScores(t, got, want{"A", 7}, want{"B", 5.3333333}, want{"C", 1.5})
	if math.Abs(got[1].Scaled-0.53333333) > 1e-7 || got[1].Raw != got[1].Score {
		t.Errorf("weights 7 and 3: scaled %v, raw %v", got[1].Scaled, got[1].Raw)
	}
}

func TestWeightAtTheEdges(t *testing.T) {
	t.Parallel()
	same := ct21()
	for i := range same {
		same[i].Dense.Raw = 0.5 + float64(i)*4e-5
	}
	checkScores(t, fuse(t, weight(0.7, 0.3), same), want{"B", 1}, want{"C", 0.85}, want{"A", 0.7})

	noVector := ct21()
	noVector[0].Dense = fusion.Standing{}
	checkScores(t, fuse(t, weight(0.7, 0.3), noVector), want{"B", 1}, want{"C", 0.15}, want{"A", 0})

	noVectors := ct21()
	for i := range noVectors {
		noVectors[i].Dense = fusion.Standing{}
	}
	checkScores(t, fuse(t, weight(0.7, 0.3), noVectors), want{"B", 1}, want{"C", 0.85}, want{"A", 0.7})

	noMatch := ct21()
	for i := range noMatch {
		noMatch[i].Text = fusion.Standing{Known: true}
	}
	checkScores(t, fuse(t, weight(0.7, 0.3), noMatch), want{"A", 0.7}, want{"B", 0.2333333}, want{"C", 0})

	checkScores(t, fuse(t, weight(0.7, 0.3), ct21()[:1]), want{"A", 0.7})
	checkScores(t, fuse(t, weight(0.7, 0.3), nil))
}

func TestTiesAreOrderedByKey(t *testing.T) { // CT-23
	t.Parallel()
	tied := []fusion.Key{
		{Subspace: "", DocID: "b", ChunkID: 2},
		{Subspace: "", DocID: "b", ChunkID: 10},
		{Subspace: "", DocID: "z"},
		{Subspace: "", DocID: "é"},
		{Subspace: "", DocID: "\uffee"}, // above the next one in UTF-16, below it in UTF-8
		{Subspace: "", DocID: "\U00010000"},
		{Subspace: "a", DocID: "a"},
		{KB: 1, DocID: "a"},
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []fusion.Config{weight(0.7, 0.3), rrf(1, 1, 60), weight(1, 0), weight(0, 1)} {
		for range 100 {
			cands := make([]fusion.Candidate, len(tied))
			for i, k := range tied {
				s := fusion.Standing{Raw: 0.5, Known: true, Rank: 1}
				cands[i] = fusion.Candidate{Key: k, Dense: s, Text: s}
			}
			rng.Shuffle(len(cands), func(i, j int) { cands[i], cands[j] = cands[j], cands[i] })
			for i, r := range fuse(t, c, cands) {
				if r.Key != tied[i] {
					t.Fatalf("%s: rank %d: got %+v, want %+v", c.Method, i+1, r.Key, tied[i])
				}
			}
		}
	}
}

func TestOneLegReportsItsOwnScores(t *testing.T) { // CT-27, C-32, D-13
	t.Parallel()
	denseOnly := weight(0.7, 0.3)
	denseOnly.Legs.Text = false
	zeroText := rrf(1, 0, 60)
	for name, c := range map[string]fusion.Config{"not asked for": denseOnly, "weight 0": zeroText} {
		got := fuse(t, c, ct21())
		checkScores(t, got, want{"A", 0.95}, want{"B", 0.75})
		if got[1].Raw != 0.5 || got[1].Scaled != 0.75 || got[1].Text != (fusion.Share{}) || got[1].Dense.Rank != 2 {
			t.Errorf("%s: got %+v", name, got[1])
		}
	}
	textOnly := weight(0, 0.3)
	got := fuse(t, textOnly, ct21())
	checkScores(t, got, want{"B", 4}, want{"C", 2})
	if got[1].Raw != 2 || got[1].Scaled != 0.5 || got[1].Dense != (fusion.Share{}) {
		t.Errorf("text only: got %+v", got[1])
	}
	none := weight(0, 1)
	none.Legs.Text = false
	checkScores(t, fuse(t, none, ct21()))

	limited := weight(0.7, 0.3)
	limited.Limit = 5
	if got := fuse(t, limited, ct21()); len(got) != 3 {
		t.Errorf("limit 5 of 3 candidates: got %d results", len(got))
	}
	limited.Limit = 2
	checkScores(t, fuse(t, limited, ct21()), want{"A", 0.7}, want{"B", 0.5333333})
}

func TestSimilaritiesAreScaledByMetric(t *testing.T) { // CT-28, D-10
	t.Parallel()
	for _, tc := range []struct {
		metric          fusion.Metric
		distance        float64
		wantRaw, scaled float64
	}{
		{fusion.Cosine, 0.4, 0.6, 0.8},
		{fusion.Cosine, 2, -1, 0},
		{fusion.L2, 1, -1, 0.75},
		{fusion.L2, math.Sqrt(5), -5, 0},
		{fusion.L2, 2, -4, 0},
		{fusion.InnerProduct, -0.5, 0.5, 0.75},
		{fusion.InnerProduct, -3, 3, 1},
		{fusion.InnerProduct, 2, -2, 0},
		{fusion.Cosine, 0.43219, 0.56781, 0.7839},
	} {
		raw := tc.metric.Raw(tc.distance)
		if math.Abs(raw-tc.wantRaw) > 1e-12 || tc.metric.Scale(raw) != tc.scaled {
			t.Errorf("%s %v: got %v and %v, want %v and %v",
				tc.metric, tc.distance, raw, tc.metric.Scale(raw), tc.wantRaw, tc.scaled)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		c     fusion.Config
		field string
	}{
		"method":        {fusion.Config{Method: "MEAN", DenseWeight: 1}, "type"},
		"k 0":           {rrf(1, 1, 0), "rrfConfiguration.k"},
		"k -1":          {rrf(1, 1, -1), "rrfConfiguration.k"},
		"k 1":           {rrf(1, 1, 1), ""},
		"weight -0.1":   {weight(-0.1, 1), "weightConfiguration.denseVectorSearchWeight"},
		"weight NaN":    {weight(1, math.NaN()), "weightConfiguration.fullTextSearchWeight"},
		"weight inf":    {rrf(1, math.Inf(1), 60), "rrfConfiguration.fullTextSearchWeight"},
		"weight tiny":   {rrf(5e-324, 1, 60), "rrfConfiguration.denseVectorSearchWeight"}, // 5e-324/61 is 0: a score would be 0/0
		"weight huge":   {weight(1e308, 1e308), "weightConfiguration.denseVectorSearchWeight"},
		"at the bounds": {rrf(messages.MinWeight, messages.MaxWeight, 60), ""},
		"both 0":        {weight(0, 0), "weightConfiguration"},
		"both 0 by RRF": {rrf(0, 0, 60), "rrfConfiguration"},
		"2 and 3":       {weight(2, 3), ""},
	} {
		_, err := fusion.Fuse(tc.c, nil)
		if tc.field == "" {
			if err != nil {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		var e *messages.Error
		if !errors.As(err, &e) || e.Code != messages.CodeValidation || e.Field != tc.field || e.Message == "" {
			t.Errorf("%s: got %v, want field %s", name, err, tc.field)
		}
	}
}

func TestFuseRefusesImpossibleCandidates(t *testing.T) {
	t.Parallel()
	known := func(raw float64, rank int) fusion.Standing { return fusion.Standing{Raw: raw, Known: true, Rank: rank} }
	one := func(dense, text fusion.Standing) []fusion.Candidate {
		return []fusion.Candidate{{Key: key("A"), Dense: dense, Text: text}}
	}
	for name, tc := range map[string]struct {
		c     fusion.Config
		cands []fusion.Candidate
	}{
		"key twice":            {weight(1, 1), append(ct21(), ct21()[0])},
		"similarity NaN":       {weight(1, 1), one(known(math.NaN(), 1), known(0, 0))},
		"text score infinite":  {weight(1, 1), one(known(1, 1), known(math.Inf(1), 1))},
		"text score negative":  {weight(1, 1), one(known(1, 1), known(-1, 1))},
		"text score not known": {weight(1, 1), one(known(1, 1), fusion.Standing{})},
		"rank without score":   {weight(1, 1), one(fusion.Standing{Rank: 1}, known(0, 0))},
		"in no list":           {rrf(1, 1, 60), one(known(1, 0), known(0, 0))},
		"unknown metric":       {fusion.Config{Method: fusion.RRF, DenseWeight: 1, K: 1, Limit: 1, Legs: fusion.Legs{Dense: true}}, nil},
		"limit 0":              {fusion.Config{Method: fusion.RRF, DenseWeight: 1, K: 1, Metric: fusion.Cosine}, nil},
	} {
		if got, err := fusion.Fuse(tc.c, tc.cands); err == nil {
			t.Errorf("%s: got %v and no error", name, got)
		}
	}
}

// Properties of every method of the table.

func randomCandidates(rng *rand.Rand) []fusion.Candidate {
	cands := make([]fusion.Candidate, 1+rng.IntN(30))
	for i := range cands {
		c := &cands[i]
		c.Key = fusion.Key{KB: rng.IntN(2), DocID: fmt.Sprint(rng.IntN(8)), ChunkID: i}
		c.Text = fusion.Standing{Known: true}
		if rng.IntN(8) > 0 {
			c.Dense = fusion.Standing{Raw: float64(rng.IntN(20)) / 10, Known: true, Rank: rng.IntN(6)}
		}
		if rng.IntN(3) > 0 || c.Dense.Rank == 0 {
			c.Text = fusion.Standing{Raw: float64(rng.IntN(10)), Known: true, Rank: 1 + rng.IntN(6)}
		}
	}
	return cands
}

func randomConfigs(rng *rand.Rand) []fusion.Config {
	var out []fusion.Config
	for _, m := range fusion.Methods() {
		out = append(out, fusion.Config{
			Method: m, DenseWeight: 0.1 + rng.Float64(), TextWeight: 0.1 + rng.Float64(), K: 1 + rng.IntN(80),
			Metric: fusion.Cosine, Legs: fusion.Legs{Dense: true, Text: true}, Limit: 1 + rng.IntN(40),
		})
	}
	return out
}

func TestOrderOfCandidatesDoesNotMatterAndInputIsKept(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		cands := randomCandidates(rng)
		kept := slices.Clone(cands)
		for _, c := range randomConfigs(rng) {
			first := fuse(t, c, cands)
			if !slices.Equal(cands, kept) {
				t.Fatalf("%s modified its candidates", c.Method)
			}
			shuffled := slices.Clone(cands)
			rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if second := fuse(t, c, shuffled); !reflect.DeepEqual(first, second) {
				t.Fatalf("%s: got %+v, then %+v", c.Method, first, second)
			}
		}
	}
}

func TestScoreIsTheSumOfItsShares(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		cands := randomCandidates(rng)
		for _, c := range randomConfigs(rng) {
			for _, r := range fuse(t, c, cands) {
				sum := r.Dense.Part*r.Dense.Weight + r.Text.Part*r.Text.Weight
				if math.Abs(sum-r.Score) > 1e-12 || r.Scaled < 0 || r.Scaled > 1+1e-12 {
					t.Fatalf("%s: score %v, shares add up to %v, scaled %v", c.Method, r.Score, sum, r.Scaled)
				}
			}
		}
	}
}

// A candidate that is ahead, and at least as good in the dense leg, stays ahead when that leg gains weight.
func TestMoreWeightNeverHurtsTheBetterOfItsLeg(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		cands := randomCandidates(rng)
		for _, c := range randomConfigs(rng) {
			c.Limit = len(cands)
			before := fuse(t, c, cands)
			c.DenseWeight += rng.Float64() * 3
			after := map[fusion.Key]int{}
			for i, r := range fuse(t, c, cands) {
				after[r.Key] = i
			}
			for i, a := range before {
				for _, b := range before[i+1:] {
					if a.Dense.Part >= b.Dense.Part && a.Score > b.Score+1e-9 && after[a.Key] > after[b.Key] {
						t.Fatalf("%s: %+v fell behind %+v", c.Method, a, b)
					}
				}
			}
		}
	}
}

// A leg of weight 0 is not run, so nobody knows its metric.
func TestALegOfWeightZeroNeedsNoMetric(t *testing.T) {
	t.Parallel()
	for _, c := range []fusion.Config{rrf(0, 1, 60), weight(0, 1)} {
		c.Metric = ""
		got := fuse(t, c, fusion.Union(nil, listOf("A", "B")))
		if len(got) != 2 || got[0].Key.DocID != "A" {
			t.Errorf("%s: got %+v, want the full-text list", c.Method, got)
		}
	}
}
