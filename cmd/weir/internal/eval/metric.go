package eval

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
)

// Hit is a document found for a query.
type Hit struct {
	Doc   string
	Score float64
}

// Run is the hits of each query, no document twice.
type Run map[string][]Hit

// Scores are the means over the judged queries.
type Scores struct {
	NDCG10    float64
	Recall100 float64
	MRR10     float64
	// Queries have a relevant document; Unanswered of them have no hit and count 0.
	Queries, Unanswered int
}

// ErrNoJudgment is returned when no query has a relevant document.
var ErrNoJudgment = errors.New("no query with a relevant document in the judgments")

// Score computes the measures as trec_eval does: hits in order of score as a 32-bit float, equal ones in
// descending byte order of the document; linear gains; the mean over every query that has a relevant
// document, answered or not.
func Score(qrels Qrels, run Run) (Scores, error) {
	var s Scores
	for _, query := range slices.Sorted(maps.Keys(qrels)) { // sums in one order are one number
		judged := qrels[query]
		if !relevant(judged) {
			continue
		}
		s.Queries++
		if len(run[query]) == 0 {
			s.Unanswered++
			continue
		}
		docs := ranking(run[query])
		s.NDCG10 += ndcg(docs, judged, 10)
		s.Recall100 += recall(docs, judged, 100)
		s.MRR10 += reciprocalRank(docs, judged, 10)
	}
	if s.Queries == 0 {
		return s, ErrNoJudgment
	}
	n := float64(s.Queries)
	s.NDCG10, s.Recall100, s.MRR10 = s.NDCG10/n, s.Recall100/n, s.MRR10/n
	return s, nil
}

// PerQuery is nDCG@10 of every query that has a relevant document, in byte order of their ids; 0 where there is
// no hit.
func PerQuery(qrels Qrels, run Run) []float64 {
	var out []float64
	for _, query := range slices.Sorted(maps.Keys(qrels)) {
		judged := qrels[query]
		if !relevant(judged) {
			continue
		}
		score := 0.0
		if len(run[query]) > 0 {
			score = ndcg(ranking(run[query]), judged, 10)
		}
		out = append(out, score)
	}
	return out
}

func relevant(judged map[string]int) bool {
	for _, grade := range judged {
		if grade >= 1 {
			return true
		}
	}
	return false
}

// ranking is the documents in trec_eval's order.
func ranking(hits []Hit) []string {
	sorted := slices.Clone(hits)
	slices.SortFunc(sorted, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(float32(b.Score), float32(a.Score)), strings.Compare(b.Doc, a.Doc))
	})
	docs := make([]string, len(sorted))
	for i, h := range sorted {
		docs[i] = h.Doc
	}
	return docs
}

func ndcg(docs []string, judged map[string]int, k int) float64 {
	var gains, ideal []int
	for _, d := range docs[:min(len(docs), k)] {
		gains = append(gains, judged[d])
	}
	for _, grade := range judged {
		ideal = append(ideal, grade)
	}
	slices.SortFunc(ideal, func(a, b int) int { return cmp.Compare(b, a) })
	return dcg(gains) / dcg(ideal[:min(len(ideal), k)])
}

func dcg(gains []int) float64 {
	sum := 0.0
	for i, g := range gains {
		if g > 0 {
			sum += float64(g) / math.Log2(float64(i)+2)
		}
	}
	return sum
}

func recall(docs []string, judged map[string]int, k int) float64 {
	found, all := 0, 0
	for _, d := range docs[:min(len(docs), k)] {
		if judged[d] >= 1 {
			found++
		}
	}
	for _, grade := range judged {
		if grade >= 1 {
			all++
		}
	}
	return float64(found) / float64(all)
}

func reciprocalRank(docs []string, judged map[string]int, k int) float64 {
	for i, d := range docs[:min(len(docs), k)] {
		if judged[d] >= 1 {
			return 1 / float64(i+1)
		}
	}
	return 0
}
