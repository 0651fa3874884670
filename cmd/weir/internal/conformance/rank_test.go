package conformance_test

import (
	"math"
	"testing"

	"github.com/weir-project/weir/pkg/fusion"
)

// packageTolerance is how near numbers of the fusion package must be.
const packageTolerance = 1e-7

// fuseStep fuses two lists by the package. Entries are [id, raw score]; Exact holds scores that a leg did
// not list but that are known.
type fuseStep struct {
	Method      string             `json:"method"`
	DenseWeight float64            `json:"denseWeight"`
	TextWeight  float64            `json:"textWeight"`
	K           int                `json:"k"`
	Limit       int                `json:"limit"`
	Metric      string             `json:"metric"` // default cosine
	Dense       []entry            `json:"dense"`
	Text        []entry            `json:"text"`
	ExactDense  map[string]float64 `json:"exactDense"`
	ExactText   map[string]float64 `json:"exactText"` // those not named hold no query term: 0
	Want        []entry            `json:"want"`
	DenseParts  map[string]float64 `json:"denseParts"`
}

type entry struct {
	ID    string  `json:"id"`
	Score float64 `json:"score"`
}

func (r *run) fuse(t testing.TB, s *fuseStep) {
	t.Helper()
	cands := fusion.Union(listed(s.Dense), listed(s.Text))
	for i := range cands {
		id := cands[i].Key.DocID
		if raw, ok := s.ExactDense[id]; ok {
			cands[i].Dense.Raw, cands[i].Dense.Known = raw, true
		}
		if cands[i].Text.Rank == 0 {
			cands[i].Text.Raw, cands[i].Text.Known = s.ExactText[id], true
		}
	}
	if s.Metric == "" {
		s.Metric = string(fusion.Cosine)
	}
	if s.Limit == 0 {
		s.Limit = 20
	}
	got, err := fusion.Fuse(fusion.Config{
		Method: fusion.Method(s.Method), DenseWeight: s.DenseWeight, TextWeight: s.TextWeight, K: s.K, Limit: s.Limit,
		Metric: fusion.Metric(s.Metric), Legs: fusion.Legs{Dense: true, Text: true},
	}, cands)
	r.must(t, err)
	if len(got) != len(s.Want) {
		r.errorf(t, "got %d results %+v, want %d", len(got), got, len(s.Want))
		return
	}
	for i, w := range s.Want {
		if got[i].Key.DocID != w.ID || math.Abs(got[i].Score-w.Score) > packageTolerance {
			r.errorf(t, "place %d: got %s %.8f, want %s %.8f", i+1, got[i].Key.DocID, got[i].Score, w.ID, w.Score)
		}
		if part, ok := s.DenseParts[w.ID]; ok && math.Abs(got[i].Dense.Part-part) > packageTolerance {
			r.errorf(t, "%s: got the dense part %.8f, want %.8f", w.ID, got[i].Dense.Part, part)
		}
	}
}

func listed(entries []entry) []fusion.Listed {
	out := make([]fusion.Listed, len(entries))
	for i, e := range entries {
		out[i] = fusion.Listed{Key: fusion.Key{DocID: e.ID}, Raw: e.Score}
	}
	return out
}

// fuseTextsStep fuses lists of texts by reciprocal ranks. From tells the list of whose entry is kept.
type fuseTextsStep struct {
	Lists [][]string `json:"lists"`
	K     int        `json:"k"`
	Want  []struct {
		Text  string  `json:"text"`
		Score float64 `json:"score"`
		From  *int    `json:"from"` // list, from 0
	} `json:"want"`
}

func (r *run) fuseTexts(t testing.TB, s *fuseTextsStep) {
	t.Helper()
	type passage struct {
		text  string
		from  int
		score float64
	}
	lists := make([][]*passage, len(s.Lists))
	for l, texts := range s.Lists {
		for _, text := range texts {
			lists[l] = append(lists[l], &passage{text, l, 42})
		}
	}
	got, err := fusion.FuseRRF(lists, nil, s.K, func(p *passage) string { return p.text })
	r.must(t, err)
	if len(got) != len(s.Want) {
		r.errorf(t, "got %d items, want %d", len(got), len(s.Want))
		return
	}
	for i, w := range s.Want {
		g := got[i]
		if g.Item.text != w.Text || math.Abs(g.Score-w.Score) > packageTolerance || w.From != nil && g.Item.from != *w.From {
			r.errorf(t, "place %d: got %s %.8f of list %d, want %+v", i+1, g.Item.text, g.Score, g.Item.from, w)
		}
	}
	for _, list := range lists {
		for _, p := range list {
			if p.score != 42 {
				r.errorf(t, "the caller's entry %s was changed", p.text)
			}
		}
	}
}

// scaleStep brings a raw score, or what Postgres' operator of the metric gives, to 0..1.
type scaleStep struct {
	Metric   string   `json:"metric"`
	Raw      *float64 `json:"raw"`
	Operator *float64 `json:"operator"`
	Want     float64  `json:"want"`
}

func (r *run) scale(t testing.TB, steps []scaleStep) {
	t.Helper()
	for _, s := range steps {
		m := fusion.Metric(s.Metric)
		var raw float64
		switch {
		case (s.Raw == nil) == (s.Operator == nil):
			t.Fatalf("%s: want either raw or operator", r.at)
		case s.Raw != nil:
			raw = *s.Raw
		default:
			raw = m.Raw(*s.Operator)
		}
		if got := m.Scale(raw); math.Abs(got-s.Want) > packageTolerance {
			r.errorf(t, "%s of %v: got %v, want %v", s.Metric, raw, got, s.Want)
		}
	}
}
