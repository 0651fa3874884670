package postings

import (
	"fmt"
	"math"
	"slices"
)

// Defaults of the two BM25 parameters.
const (
	DefaultK1 = 1.2
	DefaultB  = 0.75
)

// Snapshot is what a query reads, all of it from one database snapshot.
type Snapshot struct {
	Segments   []*Segment // every segment of the generation
	Postings   []Posting  // every row of the query's terms in these segments, any order; others are ignored
	Tombstones []int64    // chunk ids deleted since, any order (ascending is cheapest); unknown ones are ignored
}

// Query is what to score.
type Query struct {
	Terms []Term
	K1    float64 // 0..1000; use DefaultK1
	B     float64 // 0..1; use DefaultB
}

// Term is a query term. A term given several times counts with the sum of its weights.
type Term struct {
	Hash   int64   // TermHash
	Weight float64 // 1e-6..1e6
}

// Stats are the statistics behind the scores.
type Stats struct {
	Docs         int     // live chunks
	AvgLen       float64 // their mean length in tokens, 0 without chunks
	Terms        int     // distinct query terms
	PostingsRead int     // entries in the rows of the query's terms, dead chunks included
}

func (q Query) check() error {
	if !(q.K1 >= 0 && q.K1 <= 1000) {
		return fmt.Errorf("%w: k1 %v is not within 0..1000", ErrInput, q.K1)
	}
	if !(q.B >= 0 && q.B <= 1) {
		return fmt.Errorf("%w: b %v is not within 0..1", ErrInput, q.B)
	}
	for _, t := range q.Terms {
		if !(t.Weight >= 1e-6 && t.Weight <= 1e6) {
			return fmt.Errorf("%w: weight %v of term %d is not within 1e-6..1e6", ErrInput, t.Weight, t.Hash)
		}
	}
	return nil
}

// distinct returns the terms by ascending hash, each once: the order in which scores are summed.
func distinct(terms []Term) []Term {
	out := slices.Clone(terms)
	slices.SortFunc(out, func(a, b Term) int {
		switch {
		case a.Hash != b.Hash:
			return compare(a.Hash, b.Hash)
		case a.Weight < b.Weight:
			return -1
		case a.Weight > b.Weight:
			return 1
		}
		return 0
	})
	n := 0
	for i, t := range out {
		if i > 0 && t.Hash == out[n-1].Hash {
			out[n-1].Weight += t.Weight
			continue
		}
		out[n] = t
		n++
	}
	return out[:n]
}

// slice is one segment of a prepared query.
type slice struct {
	seg  *Segment
	dead Bitmap
	rows []row // by position of the term
}

type row struct {
	term int // position in the distinct terms
	Posting
}

// arrange groups the rows of a snapshot by segment, in the order of the terms.
func arrange(snap Snapshot, terms []Term) ([]slice, error) {
	slicesOf := make([]slice, len(snap.Segments))
	at := make(map[int64]int, len(snap.Segments))
	for i, seg := range snap.Segments {
		if err := seg.checkShape(); err != nil {
			return nil, err
		}
		if _, ok := at[seg.ID]; ok {
			return nil, fmt.Errorf("%w: segment %d given twice", ErrInput, seg.ID)
		}
		at[seg.ID] = i
		slicesOf[i].seg = seg
	}
	for _, p := range snap.Postings {
		term, ok := slices.BinarySearchFunc(terms, p.Term, func(t Term, hash int64) int { return compare(t.Hash, hash) })
		if !ok {
			continue
		}
		i, ok := at[p.Seg]
		if !ok {
			return nil, fmt.Errorf("%w: row of term %d in unknown segment %d", ErrInput, p.Term, p.Seg)
		}
		slicesOf[i].rows = append(slicesOf[i].rows, row{term: term, Posting: p})
	}
	for _, s := range slicesOf {
		slices.SortFunc(s.rows, func(a, b row) int { return a.term - b.term })
		for i := 1; i < len(s.rows); i++ {
			if s.rows[i].term == s.rows[i-1].term {
				return nil, fmt.Errorf("%w: term %d twice in segment %d", ErrInput, s.rows[i].Term, s.seg.ID)
			}
		}
	}
	return slicesOf, nil
}

// formula is BM25 with the numbers of one snapshot filled in. Products are converted before they are
// added: without that a compiler may fuse the two, and scores would differ between machines.
type formula struct {
	k1   float64
	base float64 // k1*(1-b)
	slop float64 // k1*b/avglen
	idfs []float64
	// Norms of short chunks, of which there are most: by length, k1*(1-b + b*len/avglen).
	k [tableLens]float64
}

const tableLens = 1024

func newFormula(q Query, avgLen float64) *formula {
	f := &formula{k1: q.K1, base: q.K1 * (1 - q.B)}
	if avgLen > 0 {
		f.slop = q.K1 * q.B / avgLen
	}
	for n := range f.k {
		f.k[n] = f.norm(n)
	}
	return f
}

func (f *formula) norm(length int) float64 {
	return f.base + float64(f.slop*float64(length))
}

func (f *formula) saturate(tf uint8, norm float64) float64 {
	return float64((f.k1+1)*float64(tf)) / (float64(tf) + norm)
}

// part is tf and length of one entry turned into the factor of its idf.
func (f *formula) part(tf uint8, length int) float64 {
	if length < tableLens {
		return f.saturate(tf, f.k[length])
	}
	return f.saturate(tf, f.norm(length))
}

func idf(docs, df int) float64 {
	return math.Log1p((float64(docs-df) + 0.5) / (float64(df) + 0.5))
}
