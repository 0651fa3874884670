package postings_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

// oracle scores by definition, from plain documents, and shares no code with the package.
type oracle struct {
	docs map[int64]postings.Doc
}

func (o *oracle) scores(q postings.Query) map[int64]float64 {
	var total float64
	for _, d := range o.docs {
		total += math.Min(float64(d.Len), 65535)
	}
	n := float64(len(o.docs))
	out := map[int64]float64{}
	for _, t := range q.Terms {
		tfs := map[int64]float64{}
		for id, d := range o.docs {
			for _, dt := range d.Terms {
				if dt.Term == t.Hash {
					tfs[id] = math.Min(tfs[id]+float64(dt.TF), 255)
				}
			}
		}
		df := float64(len(tfs))
		for id, tf := range tfs {
			length := math.Min(float64(o.docs[id].Len), 65535)
			norm := q.K1 * (1 - q.B + q.B*length/(total/n))
			out[id] += t.Weight * math.Log(1+(n-df+.5)/(df+.5)) * tf * (q.K1 + 1) / (tf + norm)
		}
	}
	return out
}

// ranked returns hits by falling score, ties by id, the limit best only.
func (o *oracle) ranked(q postings.Query, limit int, allowed func(int64) bool) []postings.Hit {
	var hits []postings.Hit
	for id, score := range o.scores(q) {
		if allowed == nil || allowed(id) {
			hits = append(hits, postings.Hit{ChunkID: id, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b postings.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ChunkID, b.ChunkID))
	})
	return hits[:min(limit, len(hits))]
}

// store is the tables of one generation, in memory.
type store struct {
	oracle
	nextSeg, nextChunk int64
	segs               []*postings.Segment
	rows               map[int64][]postings.Posting
	tombstones         []int64
}

func newStore() *store {
	return &store{oracle: oracle{docs: map[int64]postings.Doc{}}, rows: map[int64][]postings.Posting{}}
}

func (s *store) adopt(seg *postings.Segment, rows []postings.Posting) {
	s.nextSeg++
	seg.ID = s.nextSeg
	for i := range rows {
		rows[i].Seg = seg.ID
	}
	s.segs = append(s.segs, seg)
	s.rows[seg.ID] = rows
}

func (s *store) insert(t testing.TB, rng *rand.Rand, n, vocabulary int) {
	t.Helper()
	docs := make([]postings.Doc, n)
	for i := range docs {
		s.nextChunk++
		docs[i] = randomDoc(rng, s.nextChunk, vocabulary)
		s.docs[docs[i].ChunkID] = docs[i]
	}
	rng.Shuffle(n, func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	seg, rows, err := postings.Build(docs)
	if err != nil {
		t.Fatalf("build %d documents: %v", n, err)
	}
	s.adopt(seg, rows)
}

func randomDoc(rng *rand.Rand, id int64, vocabulary int) postings.Doc {
	d := postings.Doc{ChunkID: id, Len: rng.IntN(40)}
	if rng.IntN(20) == 0 {
		d.Len = rng.IntN(100_000)
	}
	for range rng.IntN(20) {
		tf := 1
		if rng.IntN(3) == 0 {
			tf = 1 + rng.IntN(300)
		}
		// Squaring makes low terms common and high ones rare.
		u := rng.Float64()
		d.Terms = append(d.Terms, postings.TermTF{Term: int64(u * u * float64(vocabulary)), TF: tf})
	}
	return d
}

func (s *store) deleteSome(rng *rand.Rand, n int) {
	ids := make([]int64, 0, len(s.docs))
	for id := range s.docs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids[:min(n, len(ids))] {
		delete(s.docs, id)
		s.tombstones = append(s.tombstones, id)
	}
}

func (s *store) merge(t testing.TB, ids []int64) {
	t.Helper()
	var (
		parts   []postings.Part
		applied []int64
		rest    []*postings.Segment
	)
	for _, seg := range s.segs {
		if !slices.Contains(ids, seg.ID) {
			rest = append(rest, seg)
			continue
		}
		dead, found := seg.MarkDead(s.tombstones)
		if dead.Count() != len(found) {
			t.Fatalf("dead bitmap of %d for %d tombstones", dead.Count(), len(found))
		}
		parts = append(parts, postings.Part{Segment: seg, Postings: s.rows[seg.ID], Dead: dead})
		applied = append(applied, found...)
		delete(s.rows, seg.ID)
	}
	seg, rows, err := postings.Merge(parts)
	if err != nil {
		t.Fatalf("merge %v: %v", ids, err)
	}
	s.segs = rest
	s.adopt(seg, rows)
	s.tombstones = slices.DeleteFunc(s.tombstones, func(id int64) bool { return slices.Contains(applied, id) })
}

func (s *store) snapshot(terms []postings.Term) postings.Snapshot {
	snap := postings.Snapshot{Segments: s.segs, Tombstones: s.tombstones}
	for _, rows := range s.rows {
		for _, p := range rows {
			if slices.ContainsFunc(terms, func(t postings.Term) bool { return t.Hash == p.Term }) {
				snap.Postings = append(snap.Postings, p)
			}
		}
	}
	return snap
}

func randomQuery(rng *rand.Rand, vocabulary int) postings.Query {
	q := postings.Query{K1: postings.DefaultK1, B: postings.DefaultB}
	if rng.IntN(3) == 0 {
		q.K1, q.B = rng.Float64()*3, rng.Float64()
	}
	for range 1 + rng.IntN(8) {
		u := rng.Float64()
		q.Terms = append(q.Terms, postings.Term{
			Hash:   int64(u * u * float64(vocabulary)),
			Weight: []float64{1, 1, 1, 0.3, 2.5}[rng.IntN(5)],
		})
	}
	return q
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*math.Max(1, math.Max(math.Abs(a), math.Abs(b)))
}
