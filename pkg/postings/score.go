package postings

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
)

// Ranker scores queries. It only recycles scratch memory (under 1 MB for each query that runs at the
// same moment): the zero value is ready, one per process is enough, it is safe for concurrent use and
// must not be copied.
type Ranker struct {
	pool sync.Pool
}

// Scorer is one query over one snapshot. It is safe for concurrent use and holds no resources.
type Scorer struct {
	ranker *Ranker
	parts  []slice
	f      *formula
	stats  Stats
}

// Hit is a scored chunk.
type Hit struct {
	ChunkID int64
	Score   float64 // BM25, above 0; larger is better
}

// Prepare computes the statistics of a query. Errors wrap ErrInput (a parameter out of range, a row of a
// segment that is not in the snapshot, the same row twice), ErrCorrupt, or the cause of ctx.
func (r *Ranker) Prepare(ctx context.Context, snap Snapshot, q Query) (*Scorer, error) {
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("prepare query: %w", err)
	}
	terms := distinct(q.Terms)
	parts, err := arrange(snap, terms)
	if err != nil {
		return nil, fmt.Errorf("prepare query: %w", err)
	}
	s := &Scorer{ranker: r, parts: parts, stats: Stats{Terms: len(terms)}}
	df, err := s.count(ctx, ascending(snap.Tombstones), len(terms))
	if err != nil {
		return nil, fmt.Errorf("prepare query: %w", err)
	}
	s.f = newFormula(q, s.stats.AvgLen)
	s.f.idfs = make([]float64, len(terms))
	for i, t := range terms {
		s.f.idfs[i] = t.Weight * idf(s.stats.Docs, df[i])
	}
	return s, nil
}

// Stats returns the statistics behind the scores.
func (s *Scorer) Stats() Stats { return s.stats }

// count marks the dead chunks and fills the statistics; it returns the live df of each term.
func (s *Scorer) count(ctx context.Context, tombstones []int64, terms int) ([]int, error) {
	df := make([]int, terms)
	var sumLen int64
	for i := range s.parts {
		p := &s.parts[i]
		s.stats.Docs += p.seg.N
		sumLen += p.seg.SumLen
		for _, row := range p.rows {
			df[row.term] += row.N
			s.stats.PostingsRead += row.N
		}
		var found []int64
		if p.dead, found = p.seg.markDead(tombstones); len(found) == 0 {
			continue
		}
		s.stats.Docs -= len(found)
		sumLen -= p.deadLen()
		if err := s.uncount(ctx, p, df); err != nil {
			return nil, err
		}
	}
	if s.stats.Docs > 0 {
		s.stats.AvgLen = float64(sumLen) / float64(s.stats.Docs)
	}
	return df, nil
}

func (p *slice) deadLen() int64 {
	var sum int64
	for at, word := range p.dead {
		for ; word != 0; word &= word - 1 {
			sum += int64(p.seg.Len(at<<6 + bits.TrailingZeros64(word)))
		}
	}
	return sum
}

// uncount takes the dead entries of a segment off df.
func (s *Scorer) uncount(ctx context.Context, p *slice, df []int) error {
	acc := s.ranker.take(0)
	defer s.ranker.give(acc)
	for _, row := range p.rows {
		entries, err := acc.decode(ctx, row, p.seg.N)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if p.dead.Has(int(e.Ord)) {
				df[row.term]--
			}
		}
	}
	return nil
}

// Top returns the best limit live chunks that allowed lets through (nil lets all), by falling score,
// ties by ascending chunk id. Every chunk whose score equals the last one's is kept as well, so there
// may be more than limit: the caller orders ties its own way and cuts. None match, or limit below 1: no
// hits. allowed must answer the same for the same id; it is asked only about chunks that could still get in.
// Errors wrap ErrCorrupt or the cause of ctx.
func (s *Scorer) Top(ctx context.Context, limit int, allowed func(chunkID int64) bool) ([]Hit, error) {
	if limit < 1 {
		return nil, nil
	}
	best := newCollector(limit)
	for i := range s.parts {
		if err := s.rank(ctx, &s.parts[i], best, allowed); err != nil {
			return nil, fmt.Errorf("score: %w", err)
		}
	}
	return best.result(), nil
}

func (s *Scorer) rank(ctx context.Context, p *slice, best *collector, allowed func(int64) bool) error {
	if len(p.rows) == 0 {
		return nil
	}
	acc := s.ranker.take(p.seg.N)
	defer s.ranker.give(acc)
	for _, row := range p.rows {
		entries, err := acc.decode(ctx, row, p.seg.N)
		if err != nil {
			return err
		}
		acc.add(entries, s.f, s.f.idfs[row.term], p.seg.Lens)
	}
	for _, ord := range acc.touched {
		score := acc.scores[ord]
		if score < best.floor || p.dead.Has(int(ord)) {
			continue
		}
		if id := p.seg.ChunkIDs[ord]; allowed == nil || allowed(id) {
			best.offer(Hit{ChunkID: id, Score: score})
		}
	}
	return nil
}

// ScoreChunks returns the score of each of the given chunks (any order), the very value Top gives: 0 when
// a chunk holds no query term. Chunks that are not live in the snapshot are not in the map. Errors as Top.
func (s *Scorer) ScoreChunks(ctx context.Context, ids []int64) (map[int64]float64, error) {
	out := make(map[int64]float64, len(ids))
	ids = ascending(ids)
	for i := range s.parts {
		p := &s.parts[i]
		wanted := map[uint16]int64{}
		p.seg.match(ids, func(id int64, ord int) {
			if !p.dead.Has(ord) {
				wanted[uint16(ord)] = id //nolint:gosec // an ordinal
				out[id] = 0
			}
		})
		if len(wanted) == 0 {
			continue
		}
		if err := s.scoreWanted(ctx, p, wanted, out); err != nil {
			return nil, fmt.Errorf("score chunks: %w", err)
		}
	}
	return out, nil
}

func (s *Scorer) scoreWanted(ctx context.Context, p *slice, wanted map[uint16]int64, out map[int64]float64) error {
	acc := s.ranker.take(p.seg.N)
	defer s.ranker.give(acc)
	marks := NewBitmap(p.seg.N)
	for ord := range wanted {
		marks.Set(int(ord))
	}
	for _, row := range p.rows {
		entries, err := acc.decode(ctx, row, p.seg.N)
		if err != nil {
			return err
		}
		kept := entries[:0]
		for _, e := range entries {
			if marks.Has(int(e.Ord)) {
				kept = append(kept, e)
			}
		}
		acc.add(kept, s.f, s.f.idfs[row.term], p.seg.Lens)
	}
	for _, ord := range acc.touched {
		out[wanted[ord]] = acc.scores[ord]
	}
	return nil
}

// accumulator is the scratch memory of one segment of one query.
type accumulator struct {
	scores  []float64 // by ordinal, 0 outside touched
	touched []uint16  // ordinals with a score, in the order they were first seen
	entries []Entry
}

// take returns an accumulator for ordinals below n.
func (r *Ranker) take(n int) *accumulator {
	acc, _ := r.pool.Get().(*accumulator)
	if acc == nil {
		acc = &accumulator{}
	}
	if n > len(acc.scores) {
		acc.scores = make([]float64, min(max(2*n, 1024), MaxSegmentDocs))
	}
	return acc
}

func (r *Ranker) give(acc *accumulator) {
	for _, ord := range acc.touched {
		acc.scores[ord] = 0
	}
	acc.touched = acc.touched[:0]
	r.pool.Put(acc)
}

// decode returns the entries of a row, valid until the next call.
func (acc *accumulator) decode(ctx context.Context, r row, docs int) ([]Entry, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	entries, err := AppendEntries(acc.entries[:0], r.Posting, docs)
	if err != nil {
		return nil, err
	}
	acc.entries = entries
	return entries, nil
}

func (acc *accumulator) add(entries []Entry, f *formula, idf float64, lens []byte) {
	for _, e := range entries {
		old := acc.scores[e.Ord]
		if old == 0 {
			acc.touched = append(acc.touched, e.Ord)
		}
		acc.scores[e.Ord] = old + float64(idf*f.part(e.TF, lenAt(lens, int(e.Ord))))
	}
}
