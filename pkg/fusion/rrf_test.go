package fusion_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/fusion"
)

type passage struct {
	text  string
	from  string
	score float64
}

func textOf(p *passage) string { return p.text }

func passages(from string, texts ...string) []*passage {
	out := make([]*passage, len(texts))
	for i, t := range texts {
		out[i] = &passage{text: t, from: from, score: 42}
	}
	return out
}

func TestFuseRRFOfTexts(t *testing.T) { // CT-81
	t.Parallel()
	for name, tc := range map[string]struct {
		lists   [][]*passage
		weights []float64
		want    []string
		scores  []float64
	}{
		"no lists":  {nil, nil, nil, nil},
		"one list":  {[][]*passage{passages("1", "x", "y")}, nil, []string{"x", "y"}, []float64{1.0 / 61, 1.0 / 62}},
		"empty one": {[][]*passage{nil, passages("2", "x")}, nil, []string{"x"}, []float64{1.0 / 61}},
		"repeats count once, at their best rank": {
			[][]*passage{passages("1", "x", "x", "y")},
			nil,
			[]string{"x", "y"},
			[]float64{1.0 / 61, 1.0 / 63},
		},
		"ties keep the order of first sight": {
			[][]*passage{passages("1", "b", "a"), passages("2", "a", "b"), passages("3", "d"), passages("4", "c")},
			nil,
			[]string{"b", "a", "d", "c"},
			[]float64{1.0/61 + 1.0/62, 1.0/61 + 1.0/62, 1.0 / 61, 1.0 / 61},
		},
		"weights": {
			[][]*passage{passages("1", "x", "y"), passages("2", "y"), passages("3", "z")},
			[]float64{1, 2, 0},
			[]string{"y", "x"},
			[]float64{1.0/62 + 2.0/61, 1.0 / 61},
		},
	} {
		got, err := fusion.FuseRRF(tc.lists, tc.weights, fusion.DefaultK, textOf)
		if err != nil || len(got) != len(tc.want) {
			t.Errorf("%s: got %d items, %v; want %d", name, len(got), err, len(tc.want))
			continue
		}
		for i, r := range got {
			if r.Item.text != tc.want[i] || math.Abs(r.Score-tc.scores[i]) > 1e-12 {
				t.Errorf("%s: rank %d: got %s %v, want %s %v", name, i+1, r.Item.text, r.Score, tc.want[i], tc.scores[i])
			}
			if r.Item.score != 42 {
				t.Errorf("%s: the caller's entry was modified", name)
			}
		}
	}
	got, err := fusion.FuseRRF([][]*passage{passages("1", "y", "x"), passages("2", "x")}, nil, 60, textOf)
	if err != nil || got[0].Item.text != "x" || got[0].Item.from != "1" {
		t.Errorf("item kept: got %+v, want x of list 1", got[0].Item)
	}
}

func TestFuseRRFRefusesBadNumbers(t *testing.T) {
	t.Parallel()
	lists := [][]*passage{passages("1", "x")}
	for name, try := range map[string]func() error{
		"k 0":         func() error { _, err := fusion.FuseRRF(lists, nil, 0, textOf); return err },
		"weight -1":   func() error { _, err := fusion.FuseRRF(lists, []float64{-1}, 60, textOf); return err },
		"weight NaN":  func() error { _, err := fusion.FuseRRF(lists, []float64{math.NaN()}, 60, textOf); return err },
		"two for one": func() error { _, err := fusion.FuseRRF(lists, []float64{1, 1}, 60, textOf); return err },
	} {
		if try() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFuseRRFScoresDoNotDependOnTheOrderOfLists(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 6))
	for range 200 {
		lists := make([][]string, 2+rng.IntN(5))
		for i := range lists {
			for _, v := range rng.Perm(12)[:rng.IntN(12)] {
				lists[i] = append(lists[i], fmt.Sprint(v))
			}
		}
		before := scoresOf(t, lists)
		rng.Shuffle(len(lists), func(i, j int) { lists[i], lists[j] = lists[j], lists[i] })
		after := scoresOf(t, lists)
		for id, score := range before {
			if after[id] != score {
				t.Fatalf("%s: got %v, then %v", id, score, after[id])
			}
		}
	}
}

func scoresOf(t *testing.T, lists [][]string) map[string]float64 {
	t.Helper()
	got, err := fusion.FuseRRF(lists, nil, 60, func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	falling := func(a, b fusion.Ranked[string]) int { return cmp.Compare(b.Score, a.Score) }
	if !slices.IsSortedFunc(got, falling) {
		t.Fatalf("not by falling score: %v", got)
	}
	out := map[string]float64{}
	for _, r := range got {
		out[r.Item] = r.Score
	}
	return out
}
