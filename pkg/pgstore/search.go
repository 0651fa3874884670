package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pgvector/pgvector-go"

	"github.com/weir-project/weir/pkg/messages"
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
	Beside    bool      // the generation is another than the live one: built or retained
	Subspaces []string  // nil: all; empty: none
	Where     Predicate // nil: no restriction
	Match     string    // a condition on the lexemes of every result, of either leg, made by Condition; empty: none
	Dense     *DensePlan
	Text      *TextPlan
	// Fallback is run in place of Text when there is no Text and the dense leg finds nothing at all.
	Fallback *TextPlan
	// Vectors adds the stored vector to what is read of the chunks kept.
	Vectors bool
	Reading Reading
	// Keep chooses, of all candidates, the chunks whose content is wanted, best first. It is called
	// once for each run of the plan and must not keep the slice.
	Keep func(found Found) []int64
}

// Reading bounds what is read of the chunks kept. The zero value: everything.
type Reading struct {
	// Bytes is how much content, metadata and, where asked for, vectors is read, in the order of Keep: chunks behind those that fill it come
	// Beyond it. The first one never does, nor do any of up to UnboundedChunks. 0: no bound.
	Bytes int
	// Prefix is how many characters of their content chunks have that are Beyond.
	Prefix int
	// Hashes adds the SHA-256 of the content.
	Hashes bool
	// NoContent leaves all content out; it does not count then.
	NoContent bool
}

// UnboundedChunks is how many chunks are read whole, whatever Reading.Bytes says.
const UnboundedChunks = 32

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
	// Prefixes are looked up among the stored lexemes; what they stand for is added to Terms.
	Prefixes []Prefix
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
	FellBack    bool // the dense leg found nothing: the full-text leg is the plan's Fallback
	PrefixesCut bool // a prefix stands for more lexemes than were looked for
}

// LegStats tells how a leg went. Terms is the number of distinct query terms in use.
type LegStats struct {
	Candidates int
	Terms      int
	Took       time.Duration
}

// Legs by the name that a LegError bears.
const (
	DenseLeg = "dense"
	TextLeg  = "full text"
)

// LegError is the failure of one leg of a search whose database is there: the other leg may do without.
type LegError struct {
	Leg string // DenseLeg or TextLeg
	Err error
}

// Error says which leg failed and why.
func (e *LegError) Error() string { return e.Leg + " leg: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LegError) Unwrap() error { return e.Err }

// ofLeg marks an error as a leg's own fault. A knowledge base that changed, a request that ended and a
// database that is away are nobody's.
func ofLeg(ctx context.Context, leg string, err error) error {
	if err == nil || ctx.Err() != nil || Retryable(err) || errors.Is(err, ErrGenerationChanged) || isUndefinedTable(err) {
		return err
	}
	return &LegError{Leg: leg, Err: err}
}

func isUndefinedTable(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == undefinedTable
}

// Content is what a result shows of a chunk and its document. Metadata may hold internal fields.
type Content struct {
	Match
	Content          string
	HeadingPath      []string
	PageFrom, PageTo int
	Origin           messages.Origin
	Title, OSSKey    string
	Metadata         []byte    // a JSON object
	Beyond           bool      // the bytes of the plan's Reading: no metadata, no vector, and of the content its Prefix alone
	Hash             []byte    // SHA-256 of the whole content, when the plan asks for it
	Vector           []float32 // when the plan asks for vectors; nil where there is none
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
	run := s.newRun(plan)
	if err := run.inSnapshot(ctx, func() error { return run.all(ctx) }); err != nil {
		return SearchResult{}, fmt.Errorf("search %s: %w", plan.KB.Name, err)
	}
	return run.res, nil
}

func (s *Searcher) newRun(plan SearchPlan) *searchRun {
	run := &searchRun{Searcher: s, plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	run.snap.generic = !run.restricted
	return run
}

func (r *searchRun) inSnapshot(ctx context.Context, fn func() error) error {
	err := r.store.inSnapshot(ctx, &r.snap, fn)
	r.res.SQL = r.snap.spent
	if isUndefinedTable(err) {
		return ErrGenerationChanged // the partition is dropped
	}
	return err
}

// searchRun is one search under way.
type searchRun struct {
	*Searcher
	plan       SearchPlan
	restricted bool
	snap       snapshot
	text       textLeg
	res        SearchResult
	// scanMatching asks every chunk of the dense leg for the plan's condition, not only those that are near.
	scanMatching bool
}

func (r *searchRun) all(ctx context.Context) error {
	b := r.snap.batch()
	r.check(b)
	if err := r.legs(ctx, b); err != nil {
		return err
	}
	if r.plan.Text == nil && r.plan.Fallback != nil && len(r.res.Matches) == 0 {
		r.plan.Text, r.plan.Dense, r.res.FellBack = r.plan.Fallback, nil, true
		if err := r.legs(ctx, r.snap.batch()); err != nil {
			return err
		}
	}
	return r.contents(ctx, r.plan.Keep(r.res.Found))
}

// legs runs the legs of the plan, after whatever the batch holds already.
func (r *searchRun) legs(ctx context.Context, b *pgx.Batch) error {
	var hits []postings.Hit
	if r.plan.Text != nil {
		var err error
		if hits, err = r.rankText(ctx, b); err != nil {
			return ofLeg(ctx, TextLeg, err)
		}
		b = r.snap.batch()
	}
	err := r.gather(ctx, b, hits)
	if r.plan.Dense == nil {
		return ofLeg(ctx, TextLeg, err)
	}
	return ofLeg(ctx, DenseLeg, err)
}

// check queues the proof that the snapshot holds what the caller resolved.
func (r *searchRun) check(b *pgx.Batch) {
	kb := &r.plan.KB
	found := func(row pgx.Row) error {
		var current bool
		err := row.Scan(&current)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrGenerationChanged
		}
		return err
	}
	if r.plan.Beside {
		b.Queue(query("search_check_beside"), kb.ID, kb.Generation.ID).QueryRow(found)
		return
	}
	b.Queue(query("search_check"), kb.ID, kb.Revision, kb.Generation.ID).QueryRow(found)
}

// gather runs the hybrid statement and joins what it finds with the full-text hits. A dense list that
// ends inside a group of equal distances is asked for again, longer; one of which too few match, from those
// alone that do.
func (r *searchRun) gather(ctx context.Context, b *pgx.Batch, hits []postings.Hit) error {
	began := time.Now()
	extra := tieMargin
	if r.plan.Match != "" && r.plan.Dense != nil {
		extra = firstLook(r.plan.Dense.Limit)
	}
	for {
		near, listed, err := r.hybrid(ctx, b, hits, extra)
		if err != nil {
			return err
		}
		slices.SortFunc(near, func(a, b row) int { return orderBy(a.distance, b.distance, &a.Match, &b.Match) })
		matching := slices.DeleteFunc(slices.Clone(near), func(c row) bool { return !c.matches })
		if r.plan.Dense == nil || !cutShort(near, matching, r.plan.Dense.Limit, r.plan.Dense.Limit+extra) {
			if r.plan.Dense != nil {
				r.res.Dense.Took = time.Since(began)
			}
			return r.join(ctx, matching, listed, hits)
		}
		b = r.snap.batch()
		if len(matching) < r.plan.Dense.Limit {
			r.scanMatching, extra = true, tieMargin
			continue
		}
		extra *= 16
	}
}

// cutShort reports whether a list of asked rows may have been cut where the distance equals that of the
// last row of the limit, or before the limit was full.
func cutShort(near, matching []row, limit, asked int) bool {
	if len(near) < asked {
		return false
	}
	return len(matching) < limit || near[asked-1].distance == matching[limit-1].distance
}

// row is a chunk as the hybrid statement returns it.
type row struct {
	Match
	distance float64
	matches  bool // the condition on lexemes holds
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
		st := contentStatement(r.plan.KB.Generation.ID, ids, r.plan.Vectors, r.plan.Reading)
		b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error { return r.readContents(rows, byID) })
	}
	if err := r.snap.end(ctx, b); err != nil {
		return err
	}
	return r.fill(ids, byID)
}

func (r *searchRun) readContents(rows pgx.Rows, into map[int64]Content) error {
	var c Content
	var vector *pgvector.HalfVector
	dest := []any{&c.ChunkID, &c.Content, &c.HeadingPath, &c.PageFrom, &c.PageTo, &c.Origin, &c.Title, &c.OSSKey, &c.Metadata, &c.Beyond, &c.Hash}
	if r.plan.Vectors {
		dest = append(dest, &vector)
	}
	_, err := pgx.ForEachRow(rows, dest, func() error {
		if vector != nil {
			c.Vector = vector.Slice()
		}
		into[c.ChunkID] = c
		c.HeadingPath, c.Origin, c.Metadata, c.Hash, c.Vector, vector = nil, messages.Origin{}, nil, nil, nil, nil
		return nil
	})
	return err
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
