package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-project/weir/pkg/postings"
)

// ErrGenerationChanged says that the knowledge base is not what the caller resolved any more: it was
// changed, deleted, or lives in another generation. Resolve it again and start over.
var ErrGenerationChanged = errors.New("the knowledge base changed meanwhile")

// Searcher finds chunks. It keeps posting segments in memory, so there should be one a process. It is
// safe for concurrent use.
type Searcher struct {
	store  *Store
	cache  *postings.Cache
	ranker postings.Ranker
}

// NewSearcher returns a searcher that keeps at most cacheBytes of segments and postings.
func NewSearcher(store *Store, cacheBytes int64) *Searcher {
	return &Searcher{store: store, cache: postings.NewCache(cacheBytes)}
}

// CacheStats tells how the segment cache does.
func (s *Searcher) CacheStats() postings.CacheStats { return s.cache.Stats() }

// SearchPlan is a search with everything decided. At least one leg is set.
type SearchPlan struct {
	KB        KB        // as resolved; ErrGenerationChanged when it is not so any more
	Subspaces []string  // nil: all; empty: none
	Where     Predicate // nil: no restriction
	Dense     *DensePlan
	Text      *TextPlan
	// Keep chooses, of all candidates, the chunks whose content is wanted, best first. It is called
	// once for each run of the plan and must not keep the slice.
	Keep func(found Found) []int64
}

// DensePlan is the dense leg: the Limit nearest chunks of a vector of the knowledge base's space.
type DensePlan struct {
	Vector []float32
	Limit  int // 1 or more
}

// TextPlan is the full-text leg: the Limit best chunks by BM25.
type TextPlan struct {
	Terms []postings.Term
	More  []postings.Term // added when Terms find fewer chunks than Limit
	K1, B float64
	Limit int // 1 or more
}

// Match is a candidate: a chunk that at least one leg listed. With two legs it has the scores of both.
type Match struct {
	ChunkID         int64
	Subspace, DocID string
	Ordinal         int
	Similarity      float64 // cosine, inner product or minus the squared distance: larger is nearer
	HasSimilarity   bool    // false without a dense leg, and for a chunk without a vector or direction
	BM25            float64 // 0 when the chunk holds no term of the query
	DenseRank       int     // place in the dense list, from 1; 0: not listed
	TextRank        int     // place in the full-text list, from 1; 0: not listed
}

// Found is what the legs found, in order of subspace, document id and ordinal.
type Found struct {
	Matches     []Match
	Dense, Text LegStats
}

// LegStats tells how a leg went. Terms is the number of distinct query terms in use.
type LegStats struct {
	Candidates int
	Terms      int
	Took       time.Duration
}

// Content is what a result shows of a chunk and its document. Metadata may hold internal fields.
type Content struct {
	Match
	Content          string
	HeadingPath      []string
	PageFrom, PageTo int
	Title, OSSKey    string
	Metadata         []byte // a JSON object
}

// SearchResult is the outcome of a plan.
type SearchResult struct {
	Found
	Kept  []Content     // in the order of Keep
	SQL   time.Duration // spent waiting for the database
	Score time.Duration // spent scoring postings
}

// Search runs a plan in one read-only snapshot. Both legs apply visibility, subspaces and predicate
// before they cut their lists, and order ties by subspace, document id and ordinal.
func (s *Searcher) Search(ctx context.Context, plan SearchPlan) (SearchResult, error) {
	run := &searchRun{Searcher: s, plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	run.snap.generic = !run.restricted
	err := s.store.inSnapshot(ctx, &run.snap, func() error { return run.all(ctx) })
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == undefinedTable {
		err = ErrGenerationChanged // the partition is dropped
	}
	if err != nil {
		return SearchResult{}, fmt.Errorf("search %s: %w", plan.KB.Name, err)
	}
	run.res.SQL = run.snap.spent
	return run.res, nil
}

// searchRun is one search under way.
type searchRun struct {
	*Searcher
	plan       SearchPlan
	restricted bool
	snap       snapshot
	text       textLeg
	res        SearchResult
}

func (r *searchRun) all(ctx context.Context) error {
	b := r.snap.batch()
	r.check(b)
	var hits []postings.Hit
	if r.plan.Text != nil {
		var err error
		if hits, err = r.rankText(ctx, b); err != nil {
			return err
		}
		b = r.snap.batch()
	}
	if err := r.gather(ctx, b, hits); err != nil {
		return err
	}
	return r.contents(ctx, r.plan.Keep(r.res.Found))
}

// check queues the proof that the snapshot holds what the caller resolved.
func (r *searchRun) check(b *pgx.Batch) {
	kb := &r.plan.KB
	b.Queue(query("search_check"), kb.ID, kb.Revision, kb.Generation.ID).QueryRow(func(row pgx.Row) error {
		var current bool
		err := row.Scan(&current)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrGenerationChanged
		}
		return err
	})
}

// gather runs the hybrid statement and joins what it finds with the full-text hits. A dense list that
// ends inside a group of equal distances is asked for again, longer.
func (r *searchRun) gather(ctx context.Context, b *pgx.Batch, hits []postings.Hit) error {
	began := time.Now()
	extra := tieMargin
	for {
		near, listed, err := r.hybrid(ctx, b, hits, extra)
		if err != nil {
			return err
		}
		slices.SortFunc(near, func(a, b row) int { return orderBy(a.distance, b.distance, &a.Match, &b.Match) })
		if r.plan.Dense != nil && endsInTie(near, r.plan.Dense.Limit, r.plan.Dense.Limit+extra) {
			extra *= 16
			b = r.snap.batch()
			continue
		}
		r.res.Dense.Took = time.Since(began)
		return r.join(ctx, near, listed, hits)
	}
}

// endsInTie reports whether a list of asked rows may have been cut where the distance equals that of
// the last row of the limit.
func endsInTie(near []row, limit, asked int) bool {
	return len(near) == asked && near[asked-1].distance == near[limit-1].distance
}

// row is a chunk as the hybrid statement returns it.
type row struct {
	Match
	distance float64
}

// join cuts both lists, near being in its final order already, and gives every candidate both scores.
func (r *searchRun) join(ctx context.Context, near, listed []row, hits []postings.Hit) error {
	all := make(map[int64]*Match, len(near)+len(listed))
	if r.plan.Dense != nil {
		for i := range near[:min(len(near), r.plan.Dense.Limit)] {
			near[i].DenseRank = i + 1
			all[near[i].ChunkID] = &near[i].Match
		}
		r.res.Dense.Candidates = len(all)
	}
	if r.plan.Text != nil {
		r.joinText(all, listed, hits)
	}
	out := make([]Match, 0, len(all))
	for _, c := range all {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Match) int { return compareIdentity(&a, &b) })
	if r.plan.Text != nil {
		if err := r.scoreListed(ctx, out); err != nil {
			return err
		}
	}
	r.res.Found.Matches = out
	return nil
}

// contents reads what is shown of the chosen chunks and ends the snapshot.
func (r *searchRun) contents(ctx context.Context, ids []int64) error {
	b := r.snap.batch()
	byID := make(map[int64]Content, len(ids))
	if len(ids) > 0 {
		st := contentStatement(r.plan.KB.Generation.ID, ids)
		b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
			var c Content
			_, err := pgx.ForEachRow(rows, []any{
				&c.ChunkID, &c.Content, &c.HeadingPath, &c.PageFrom, &c.PageTo, &c.Title, &c.OSSKey, &c.Metadata,
			}, func() error {
				byID[c.ChunkID] = c
				c.HeadingPath, c.Metadata = nil, nil
				return nil
			})
			return err
		})
	}
	if err := r.snap.end(ctx, b); err != nil {
		return err
	}
	return r.fill(ids, byID)
}

// fill puts contents in the order of ids, beside what is known of their chunks.
func (r *searchRun) fill(ids []int64, byID map[int64]Content) error {
	found := make(map[int64]*Match, len(r.res.Found.Matches))
	for i := range r.res.Found.Matches {
		found[r.res.Found.Matches[i].ChunkID] = &r.res.Found.Matches[i]
	}
	r.res.Kept = make([]Content, len(ids))
	for i, id := range ids {
		c, ok := byID[id]
		if !ok || found[id] == nil {
			return fmt.Errorf("chunk %d was kept but is no candidate", id)
		}
		c.Match = *found[id]
		r.res.Kept[i] = c
	}
	return nil
}
