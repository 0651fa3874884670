package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// textLeg is the full-text leg of a search under way: what the snapshot holds of its terms.
type textLeg struct {
	live       []int64                     // segments of the snapshot, ascending
	segments   map[int64]*postings.Segment // of live
	rows       []postings.Posting          // of every term asked so far
	tombstones []int64                     // ascending
	hidden     map[int64]struct{}          // inactive chunks; of an unrestricted search only
	scorer     *postings.Scorer
}

// tieBudget is how many hits beyond the limit the hybrid statement may carry for their identity.
const tieBudget = 256

// rankText sends the first batch and returns the full-text list, with all that tie at its end unless
// they are too many: then they are cut by identity here.
func (r *searchRun) rankText(ctx context.Context, b *pgx.Batch) ([]postings.Hit, error) {
	began := time.Now()
	if len(r.plan.Text.Prefixes) > 0 {
		if err := r.expand(ctx, b); err != nil {
			return nil, err
		}
		b = r.snap.batch()
	}
	p := r.plan.Text
	if err := r.loadText(ctx, b); err != nil {
		return nil, err
	}
	hits, err := r.score(ctx, p.Terms)
	if err != nil {
		return nil, err
	}
	if len(hits) < p.Limit && len(p.More) > 0 {
		if hits, err = r.widen(ctx); err != nil {
			return nil, err
		}
	}
	if len(hits) > p.Limit+tieBudget {
		hits, err = r.cutTies(ctx, hits)
	}
	r.res.Text.Terms = r.text.scorer.Stats().Terms
	r.res.Text.Took = time.Since(began)
	return hits, err
}

// loadText queues and runs everything the full-text leg reads: what the cache lacks of the segments and
// of the postings of the terms, tombstones, and which chunks count.
func (r *searchRun) loadText(ctx context.Context, b *pgx.Batch) error {
	gen := r.plan.KB.Generation.ID
	t := &r.text
	terms := hashes(r.plan.Text.Terms)
	held, _ := r.cache.Segments(gen, r.cache.Covered(gen, nil))
	known := make([]int64, len(held))
	for i, seg := range held {
		known[i] = seg.ID
	}
	rows, missing := r.cache.Postings(gen, terms, known)
	var fresh []*postings.Segment
	b.Queue(query("tombstones"), gen).Query(func(rows pgx.Rows) (err error) {
		t.tombstones, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	b.Queue(query("search_segments"), gen, known).Query(func(rows pgx.Rows) (err error) {
		t.live, fresh, err = scanSegments(rows, held)
		return err
	})
	var loaded []postings.Posting
	b.Queue(query("search_postings_new"), gen, terms, known).Query(collectPostings(&loaded))
	queueMissing(b, gen, missing, &loaded)
	r.queueHidden(b)
	if err := r.snap.run(ctx, b); err != nil {
		return err
	}
	r.cache.AddSegments(gen, fresh)
	r.cache.AddPostings(gen, append(missing, pairs(terms, fresh)...), loaded)
	t.keep(append(held, fresh...), append(rows, loaded...))
	if len(known)+len(fresh) > len(t.live) {
		r.cache.Retain(gen, t.live)
	}
	return nil
}

// keep takes segments and rows as far as they are of the snapshot.
func (t *textLeg) keep(segments []*postings.Segment, rows []postings.Posting) {
	t.segments = make(map[int64]*postings.Segment, len(t.live))
	for _, seg := range segments {
		if _, ok := slices.BinarySearch(t.live, seg.ID); ok {
			t.segments[seg.ID] = seg
		}
	}
	for _, p := range rows {
		if t.segments[p.Seg] != nil {
			t.rows = append(t.rows, p)
		}
	}
}

// scanSegments reads the segments of the snapshot: the ids of all, and those that came with their data.
func scanSegments(rows pgx.Rows, held []*postings.Segment) (live []int64, fresh []*postings.Segment, err error) {
	have := make(map[int64]struct{}, len(held))
	for _, seg := range held {
		have[seg.ID] = struct{}{}
	}
	for rows.Next() {
		seg := new(postings.Segment)
		var ids []byte
		if err := rows.Scan(&seg.ID, &seg.N, &seg.SumLen, &ids, &seg.Lens); err != nil {
			return nil, nil, err
		}
		live = append(live, seg.ID)
		if _, ok := have[seg.ID]; ok {
			continue
		}
		seg.ChunkIDs = decodeIDs(ids)
		if err := seg.Check(); err != nil {
			return nil, nil, err
		}
		fresh = append(fresh, seg)
	}
	return live, fresh, rows.Err()
}

func collectPostings(into *[]postings.Posting) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var p postings.Posting
			if err := rows.Scan(&p.Term, &p.Seg, &p.N, &p.Data); err != nil {
				return err
			}
			*into = append(*into, p)
		}
		return rows.Err()
	}
}

func queueMissing(b *pgx.Batch, generation int64, missing []postings.Key, into *[]postings.Posting) {
	if len(missing) == 0 {
		return
	}
	terms, segs := make([]int64, len(missing)), make([]int64, len(missing))
	for i, k := range missing {
		terms[i], segs[i] = k.Term, k.Seg
	}
	b.Queue(query("search_postings_missing"), generation, terms, segs).Query(collectPostings(into))
}

// queueHidden reads which chunks are inactive. A restricted search checks its candidates instead.
func (r *searchRun) queueHidden(b *pgx.Batch) {
	if r.restricted {
		return
	}
	st := hiddenStatement(r.plan.KB.Generation.ID)
	b.Queue(st.text.String(), st.args...).Query(collectIDs(&r.text.hidden))
}

// collectIDs reads a column of chunk ids.
func collectIDs(into *map[int64]struct{}) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		out := map[int64]struct{}{}
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			out[id] = struct{}{}
			return nil
		})
		*into = out
		return err
	}
}

// visibleByID is the scorer's filter; nil when everything may be found, or is checked afterwards.
func (r *searchRun) visibleByID() func(int64) bool {
	hidden := r.text.hidden
	if len(hidden) == 0 {
		return nil
	}
	return func(id int64) bool { _, ok := hidden[id]; return !ok }
}

// score ranks the chunks of the snapshot by terms whose rows are loaded.
func (r *searchRun) score(ctx context.Context, terms []postings.Term) ([]postings.Hit, error) {
	began := time.Now()
	p := r.plan.Text
	snap := postings.Snapshot{Postings: r.text.rows, Tombstones: r.text.tombstones}
	for _, id := range r.text.live {
		snap.Segments = append(snap.Segments, r.text.segments[id])
	}
	scorer, err := r.ranker.Prepare(ctx, snap, postings.Query{Terms: terms, K1: p.K1, B: p.B})
	if err != nil {
		return nil, err
	}
	r.text.scorer = scorer
	r.res.Score += time.Since(began)
	if r.restricted || r.plan.Match != "" {
		return r.topChecked(ctx, scorer)
	}
	return r.top(ctx, scorer, p.Limit, r.visibleByID())
}

// widen adds the terms of the second pass, in the same snapshot.
func (r *searchRun) widen(ctx context.Context) ([]postings.Hit, error) {
	gen := r.plan.KB.Generation.ID
	p := r.plan.Text
	first := hashes(p.Terms)
	more := slices.DeleteFunc(hashes(p.More), func(t int64) bool { return slices.Contains(first, t) })
	rows, missing := r.cache.Postings(gen, more, r.text.live)
	if len(missing) > 0 {
		b := r.snap.batch()
		var loaded []postings.Posting
		queueMissing(b, gen, missing, &loaded)
		if err := r.snap.run(ctx, b); err != nil {
			return nil, err
		}
		r.cache.AddPostings(gen, missing, loaded)
		rows = append(rows, loaded...)
	}
	r.text.rows = append(r.text.rows, rows...)
	return r.score(ctx, slices.Concat(p.Terms, p.More))
}

// cutTies reduces the hits that share the last place to those that stay, by identity.
func (r *searchRun) cutTies(ctx context.Context, hits []postings.Hit) ([]postings.Hit, error) {
	limit := r.plan.Text.Limit
	last := hits[limit-1].Score
	better := slices.IndexFunc(hits, func(h postings.Hit) bool { return h.Score == last })
	tied := make([]int64, 0, len(hits)-better)
	for _, h := range hits[better:] {
		tied = append(tied, h.ChunkID)
	}
	st := cutStatement(r.plan.KB.Generation.ID, tied, limit-better)
	out := slices.Clone(hits[:better])
	b := r.snap.batch()
	b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		for _, id := range ids {
			out = append(out, postings.Hit{ChunkID: id, Score: last})
		}
		return err
	})
	return out, r.snap.run(ctx, b)
}

// joinText orders the full-text list, ties by identity, cuts it and adds it to the candidates.
func (r *searchRun) joinText(all map[int64]*Match, listed []row, hits []postings.Hit) {
	scores := make(map[int64]float64, len(hits))
	for _, h := range hits {
		scores[h.ChunkID] = h.Score
	}
	for i := range listed {
		listed[i].BM25 = scores[listed[i].ChunkID]
	}
	slices.SortFunc(listed, func(a, b row) int { return orderBy(-a.BM25, -b.BM25, &a.Match, &b.Match) })
	listed = listed[:min(len(listed), r.plan.Text.Limit)]
	for i := range listed {
		c := &listed[i].Match
		c.TextRank = i + 1
		if both := all[c.ChunkID]; both != nil {
			both.TextRank, both.BM25 = c.TextRank, c.BM25
			continue
		}
		all[c.ChunkID] = c
	}
	r.res.Text.Candidates = len(listed)
}

// scoreListed gives the candidates of the dense leg alone their BM25 score.
func (r *searchRun) scoreListed(ctx context.Context, out []Match) error {
	began := time.Now()
	defer func() { r.res.Score += time.Since(began) }()
	var ids []int64
	for i := range out {
		if out[i].TextRank == 0 {
			ids = append(ids, out[i].ChunkID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	scores, err := r.text.scorer.ScoreChunks(ctx, ids)
	if err != nil {
		return err
	}
	for i := range out {
		if out[i].TextRank == 0 {
			out[i].BM25 = scores[out[i].ChunkID]
		}
	}
	return nil
}

func hashes(terms []postings.Term) []int64 {
	out := make([]int64, len(terms))
	for i, t := range terms {
		out[i] = t.Hash
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func pairs(terms []int64, segments []*postings.Segment) []postings.Key {
	out := make([]postings.Key, 0, len(terms)*len(segments))
	for _, seg := range segments {
		for _, t := range terms {
			out = append(out, postings.Key{Term: t, Seg: seg.ID})
		}
	}
	return out
}
