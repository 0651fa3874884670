package lexical

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// evalDir returns the folder of the test collections, in BEIR's layout: WEIR_EVAL_DIR, or shared/eval beside
// the project. The data may not be shipped, so a tree without it skips.
func evalDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WEIR_EVAL_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "eval")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no test collections at %s (set WEIR_EVAL_DIR): %v", dir, err)
	}
	return dir
}

// TestRankingQuality ranks real collections with a plain BM25 in memory. It guards the analyzer alone: the
// ranking through SQL has a gate of its own.
func TestRankingQuality(t *testing.T) {
	t.Parallel()
	dir := evalDir(t)
	if testing.Short() {
		t.Skip("ranks real collections, left out with -short")
	}
	for _, tc := range []struct {
		name    string
		queries int // at most so many, evenly spread
		min     float64
	}{
		{"scifact", 0, 0.68},
		{"nfcorpus", 0, 0.31},
		{"cmrc2018-zh", 400, 0.97},
		{"drcd-zhtw", 400, 0.94},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := loadCollection(t, filepath.Join(dir, tc.name), tc.queries)
			got := c.ndcg(t, lex1(t))
			t.Logf("%s: nDCG@10 %.4f over %d queries", tc.name, got, len(c.queries))
			if got < tc.min {
				t.Errorf("%s: got nDCG@10 %.4f, want at least %.2f", tc.name, got, tc.min)
			}
		})
	}
}

// TestSimplifiedQueriesFindTraditionalText ranks traditional passages for queries whose characters were
// simplified beforehand: the figure must be that of the same script.
func TestSimplifiedQueriesFindTraditionalText(t *testing.T) {
	t.Parallel()
	dir := evalDir(t)
	if testing.Short() {
		t.Skip("ranks a real collection, left out with -short")
	}
	a := lex1(t)
	c := loadCollection(t, filepath.Join(dir, "drcd-zhtw"), 100)
	for i := range c.queries {
		c.queries[i].Text = strings.Map(a.han.fold, c.queries[i].Text)
	}
	if got := c.ndcg(t, a); got < 0.94 {
		t.Errorf("got nDCG@10 %.4f, want at least 0.94", got)
	}
}

type record struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

type collection struct {
	docs, queries []record
	relevant      map[string]map[string]float64
}

func loadCollection(t *testing.T, dir string, limit int) collection {
	t.Helper()
	c := collection{relevant: loadJudgments(t, filepath.Join(dir, "qrels.tsv"))}
	c.docs = loadRecords(t, filepath.Join(dir, "corpus.jsonl.gz"))
	for _, q := range loadRecords(t, filepath.Join(dir, "queries.jsonl")) {
		if len(c.relevant[q.ID]) > 0 {
			c.queries = append(c.queries, q)
		}
	}
	if limit > 0 && len(c.queries) > limit {
		some := make([]record, limit)
		for i := range some {
			some[i] = c.queries[i*len(c.queries)/limit]
		}
		c.queries = some
	}
	return c
}

func loadRecords(t *testing.T, path string) []record {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	if strings.HasSuffix(path, ".gz") {
		zr, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		dec = json.NewDecoder(zr)
	}
	var out []record
	for dec.More() {
		var r record
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func loadJudgments(t *testing.T, path string) map[string]map[string]float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]map[string]float64{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.Split(sc.Text(), "\t")
		grade, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || grade <= 0 {
			continue // the header line, or not relevant
		}
		if out[fields[0]] == nil {
			out[fields[0]] = map[string]float64{}
		}
		out[fields[0]][fields[1]] = grade
	}
	return out
}

// ndcg returns the mean nDCG@10 with linear gains; equal scores are ordered by id, downwards as trec_eval
// does.
func (c collection) ndcg(t *testing.T, a *Analyzer) float64 {
	t.Helper()
	index := newBM25(a, c.docs)
	sum := 0.0
	for _, q := range c.queries {
		query := a.Query(q.Text)
		hits := index.rank(query.Terms)
		if len(hits) < 10 {
			hits = index.rank(append(query.Terms, query.Second...))
		}
		sum += ndcgAt10(hits, c.docs, c.relevant[q.ID])
	}
	return sum / float64(len(c.queries))
}

func ndcgAt10(hits []hit, docs []record, grades map[string]float64) float64 {
	ideal := make([]float64, 0, len(grades))
	for _, g := range grades {
		ideal = append(ideal, g)
	}
	slices.Sort(ideal)
	slices.Reverse(ideal)
	got, best := 0.0, 0.0
	for i := range 10 {
		discount := math.Log2(float64(i + 2))
		if i < len(hits) {
			got += grades[docs[hits[i].doc].ID] / discount
		}
		if i < len(ideal) {
			best += ideal[i] / discount
		}
	}
	return got / best
}

type posting struct {
	doc int
	tf  float64
}

type hit struct {
	doc   int
	score float64
}

type bm25 struct {
	docs     []record
	postings map[string][]posting
	norm     []float64
	scores   []float64
}

func newBM25(a *Analyzer, docs []record) *bm25 {
	const k1, b = 1.2, 0.75
	x := &bm25{docs: docs, postings: map[string][]posting{}, scores: make([]float64, len(docs))}
	total := 0.0
	for i, d := range docs {
		doc := a.Document(d.Title, d.Text)
		x.norm = append(x.norm, float64(doc.Length))
		total += float64(doc.Length)
		for _, l := range doc.Lexemes {
			x.postings[l.Term] = append(x.postings[l.Term], posting{i, float64(l.TF())})
		}
	}
	for i, n := range x.norm {
		x.norm[i] = k1 * (1 - b + b*n*float64(len(docs))/total)
	}
	return x
}

// rank returns the best documents for the terms, ten at the most.
func (x *bm25) rank(terms []QueryTerm) []hit {
	clear(x.scores)
	for _, t := range terms {
		list := x.postings[t.Term]
		df := float64(len(list))
		idf := math.Log(1 + (float64(len(x.docs))-df+0.5)/(df+0.5))
		for _, p := range list {
			x.scores[p.doc] += float64(t.Weight) * idf * p.tf / (p.tf + x.norm[p.doc])
		}
	}
	var hits []hit
	for i, s := range x.scores {
		if s > 0 {
			hits = append(hits, hit{i, s})
		}
	}
	slices.SortFunc(hits, func(p, q hit) int {
		if c := cmp.Compare(q.score, p.score); c != 0 {
			return c
		}
		return cmp.Compare(x.docs[q.doc].ID, x.docs[p.doc].ID)
	})
	return hits[:min(10, len(hits))]
}
