package postings_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

func TestScoresEqualBruteForceThroughInsertsDeletesAndMerges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			vocabulary := []int{5, 40, 300}[seed%3]
			s := newStore()
			var ranker postings.Ranker
			for range 40 {
				step(t, rng, s, vocabulary)
				q := randomQuery(rng, vocabulary)
				compareWithOracle(t, &ranker, rng, s, q)
			}
		})
	}
}

func step(t *testing.T, rng *rand.Rand, s *store, vocabulary int) {
	t.Helper()
	switch rng.IntN(4) {
	case 0, 1:
		s.insert(t, rng, rng.IntN(30), vocabulary)
	case 2:
		s.deleteSome(rng, rng.IntN(25))
	case 3:
		var ids []int64
		for _, seg := range s.segs {
			if rng.IntN(2) == 0 {
				ids = append(ids, seg.ID)
			}
		}
		if len(ids) > 0 {
			s.merge(t, ids)
		}
	}
}

func compareWithOracle(t *testing.T, ranker *postings.Ranker, rng *rand.Rand, s *store, q postings.Query) {
	t.Helper()
	ctx := context.Background()
	scorer, err := ranker.Prepare(ctx, s.snapshot(q.Terms), q)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	if got := scorer.Stats().Docs; got != len(s.docs) {
		t.Fatalf("live chunks: got %d, want %d", got, len(s.docs))
	}
	var allowed func(int64) bool
	if rng.IntN(2) == 0 {
		allowed = func(id int64) bool { return id%3 == 0 }
	}
	limit := 1 + rng.IntN(20)
	got, err := scorer.Top(ctx, limit, allowed)
	if err != nil {
		t.Fatalf("top: %v", err)
	}
	checkRanks(t, got, s.ranked(q, limit, allowed))
	checkTies(t, got, s.ranked(q, math.MaxInt32, allowed), limit)
	checkChunks(t, scorer, s, q, got)
}

func checkRanks(t *testing.T, got, want []postings.Hit) {
	t.Helper()
	if len(got) < len(want) {
		t.Fatalf("got %d hits, want %d", len(got), len(want))
	}
	for i := range want {
		if !near(got[i].Score, want[i].Score) {
			t.Fatalf("rank %d: got score %v, want %v", i, got[i].Score, want[i].Score)
		}
	}
}

// checkTies: everything at or above the limit-th score is there, nothing below it.
func checkTies(t *testing.T, got, all []postings.Hit, limit int) {
	t.Helper()
	if len(all) == 0 {
		if len(got) != 0 {
			t.Fatalf("got %d hits, want none", len(got))
		}
		return
	}
	floor := all[min(limit, len(all))-1].Score
	ids := map[int64]bool{}
	for i, h := range got {
		ids[h.ChunkID] = true
		if h.Score < floor-1e-9 {
			t.Fatalf("hit %d has score %v below the floor %v", i, h.Score, floor)
		}
		if i > 0 && (h.Score > got[i-1].Score || h.Score == got[i-1].Score && h.ChunkID <= got[i-1].ChunkID) {
			t.Fatalf("hits %d and %d out of order: %v", i-1, i, got)
		}
	}
	for _, h := range all {
		if h.Score > floor+1e-9 && !ids[h.ChunkID] {
			t.Fatalf("chunk %d with score %v is missing", h.ChunkID, h.Score)
		}
	}
}

func checkChunks(t *testing.T, scorer *postings.Scorer, s *store, q postings.Query, top []postings.Hit) {
	t.Helper()
	want := s.scores(q)
	ids := []int64{-1, s.nextChunk + 1}
	for id := int64(1); id <= s.nextChunk; id++ {
		ids = append(ids, id)
	}
	got, err := scorer.ScoreChunks(context.Background(), ids)
	if err != nil {
		t.Fatalf("score chunks: %v", err)
	}
	if len(got) != len(s.docs) {
		t.Fatalf("scored %d chunks, want %d", len(got), len(s.docs))
	}
	for id := range s.docs {
		if !near(got[id], want[id]) {
			t.Fatalf("chunk %d: got score %v, want %v", id, got[id], want[id])
		}
	}
	for _, h := range top {
		if got[h.ChunkID] != h.Score {
			t.Fatalf("chunk %d: ScoreChunks gives %v, Top gave %v", h.ChunkID, got[h.ChunkID], h.Score)
		}
	}
}

func TestScoresDoNotDependOnTheLayoutOfSegments(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	s := newStore()
	for range 12 {
		s.insert(t, rng, 50, 60)
	}
	s.deleteSome(rng, 100)
	var ranker postings.Ranker
	var queries []postings.Query
	var before [][]postings.Hit
	for range 30 {
		q := randomQuery(rng, 60)
		queries = append(queries, q)
		before = append(before, top(t, &ranker, s, q, 50))
	}
	var all []int64
	for _, seg := range s.segs {
		all = append(all, seg.ID)
	}
	s.merge(t, all)
	if len(s.tombstones) != 0 || s.segs[0].N != len(s.docs) {
		t.Fatalf("merge left %d tombstones and %d chunks", len(s.tombstones), s.segs[0].N)
	}
	for i, q := range queries {
		slices.Reverse(q.Terms)
		if after := top(t, &ranker, s, q, 50); !slices.Equal(before[i], after) {
			t.Fatalf("query %d: got %v after the merge, %v before", i, after, before[i])
		}
	}
}

func top(t *testing.T, ranker *postings.Ranker, s *store, q postings.Query, limit int) []postings.Hit {
	t.Helper()
	scorer, err := ranker.Prepare(context.Background(), s.snapshot(q.Terms), q)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	hits, err := scorer.Top(context.Background(), limit, nil)
	if err != nil {
		t.Fatalf("top: %v", err)
	}
	return hits
}

func TestAllChunksThatTieAtTheCutAreKept(t *testing.T) {
	t.Parallel()
	s := newStore()
	for range 4 {
		docs := make([]postings.Doc, 400)
		for i := range docs {
			s.nextChunk++
			docs[i] = postings.Doc{ChunkID: s.nextChunk, Len: 3, Terms: []postings.TermTF{{Term: 9, TF: 1}}}
			if i == 7 {
				docs[i].Terms[0].TF = 2
			}
		}
		seg, rows, err := postings.Build(docs)
		if err != nil {
			t.Fatal(err)
		}
		s.adopt(seg, rows)
	}
	q := postings.Query{Terms: []postings.Term{{Hash: 9, Weight: 1}}, K1: 1.2, B: 0.75}
	var ranker postings.Ranker
	if got := top(t, &ranker, s, q, 3); len(got) != 4 {
		t.Errorf("limit 3 of 4 equal bests: got %d hits, want 4", len(got))
	}
	if got := top(t, &ranker, s, q, 5); len(got) != 1600 {
		t.Errorf("limit 5 cuts among equals: got %d hits, want 1600", len(got))
	}
	if got := top(t, &ranker, s, q, 0); len(got) != 0 {
		t.Errorf("limit 0: got %d hits, want none", len(got))
	}
}

func TestEmptySnapshotsAndQueriesGiveNoHits(t *testing.T) {
	t.Parallel()
	var ranker postings.Ranker
	q := postings.Query{Terms: []postings.Term{{Hash: 1, Weight: 1}}, K1: 1.2, B: 0.75}
	if got := top(t, &ranker, newStore(), q, 10); len(got) != 0 {
		t.Errorf("no segments: got %v", got)
	}
	s := newStore()
	s.insert(t, rand.New(rand.NewPCG(1, 1)), 20, 3)
	if got := top(t, &ranker, s, postings.Query{K1: 1.2, B: 0.75}, 10); len(got) != 0 {
		t.Errorf("no terms: got %v", got)
	}
	s.deleteSome(rand.New(rand.NewPCG(1, 1)), 20)
	if got := top(t, &ranker, s, q, 10); len(got) != 0 {
		t.Errorf("all chunks dead: got %v", got)
	}
}

func TestPrepareRefusesWhatItCannotScore(t *testing.T) {
	t.Parallel()
	seg, rows, err := postings.Build([]postings.Doc{{ChunkID: 1, Len: 2, Terms: []postings.TermTF{{Term: 5, TF: 2}}}})
	if err != nil {
		t.Fatal(err)
	}
	seg.ID, rows[0].Seg = 3, 3
	good := postings.Query{Terms: []postings.Term{{Hash: 5, Weight: 1}}, K1: 1.2, B: 0.75}
	snap := postings.Snapshot{Segments: []*postings.Segment{seg}, Postings: rows}
	stray := rows[0]
	stray.Seg = 4
	torn := rows[0]
	torn.Data = torn.Data[:1]
	with := func(change func(*postings.Snapshot, *postings.Query)) (postings.Snapshot, postings.Query) {
		s, q := snap, good
		change(&s, &q)
		return s, q
	}
	for name, tc := range map[string]struct {
		change func(*postings.Snapshot, *postings.Query)
		want   error
	}{
		"k1 negative":     {func(_ *postings.Snapshot, q *postings.Query) { q.K1 = -1 }, postings.ErrInput},
		"k1 not a number": {func(_ *postings.Snapshot, q *postings.Query) { q.K1 = math.NaN() }, postings.ErrInput},
		"b above 1":       {func(_ *postings.Snapshot, q *postings.Query) { q.B = 1.1 }, postings.ErrInput},
		"weight 0":        {func(_ *postings.Snapshot, q *postings.Query) { q.Terms = []postings.Term{{Hash: 5}} }, postings.ErrInput},
		"row of no segment": {func(s *postings.Snapshot, _ *postings.Query) {
			s.Postings = []postings.Posting{stray}
		}, postings.ErrInput},
		"row twice": {func(s *postings.Snapshot, _ *postings.Query) {
			s.Postings = []postings.Posting{rows[0], rows[0]}
		}, postings.ErrInput},
		"segment twice": {func(s *postings.Snapshot, _ *postings.Query) {
			s.Segments = []*postings.Segment{seg, seg}
		}, postings.ErrInput},
		"torn row": {func(s *postings.Snapshot, _ *postings.Query) {
			s.Postings = []postings.Posting{torn}
		}, postings.ErrCorrupt},
		"torn segment": {func(s *postings.Snapshot, _ *postings.Query) {
			s.Segments = []*postings.Segment{{ID: 3, N: 1, ChunkIDs: []int64{1}, Lens: []byte{0}}}
		}, postings.ErrCorrupt},
	} {
		s, q := with(tc.change)
		if err := scoreAll(s, q); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	if err := scoreAll(snap, good); err != nil {
		t.Errorf("unchanged: got %v", err)
	}
}

func scoreAll(s postings.Snapshot, q postings.Query) error {
	var ranker postings.Ranker
	scorer, err := ranker.Prepare(context.Background(), s, q)
	if err != nil {
		return err
	}
	_, err = scorer.Top(context.Background(), 10, nil)
	return err
}

func TestScoringStopsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newStore()
	s.insert(t, rand.New(rand.NewPCG(2, 2)), 50, 3)
	q := postings.Query{Terms: []postings.Term{{Hash: 0, Weight: 1}}, K1: 1.2, B: 0.75}
	var ranker postings.Ranker
	scorer, err := ranker.Prepare(context.Background(), s.snapshot(q.Terms), q)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := scorer.Top(ctx, 10, nil); !errors.Is(err, cause) {
		t.Errorf("top: got %v, want the cause", err)
	}
	if _, err := scorer.ScoreChunks(ctx, []int64{1, 2, 3}); !errors.Is(err, cause) {
		t.Errorf("score chunks: got %v, want the cause", err)
	}
}

func TestOneRankerServesManyQueriesAtOnce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 8))
	s := newStore()
	for range 5 {
		s.insert(t, rng, 200, 30)
	}
	s.deleteSome(rng, 60)
	var ranker postings.Ranker
	var wg sync.WaitGroup
	for range 4 {
		q := randomQuery(rng, 30)
		snap, want := s.snapshot(q.Terms), s.ranked(q, 20, nil)
		wg.Go(func() {
			for range 50 {
				scorer, err := ranker.Prepare(context.Background(), snap, q)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := scorer.Top(context.Background(), 20, nil)
				if err != nil || len(got) < len(want) {
					t.Errorf("got %d hits, %v; want %d", len(got), err, len(want))
					return
				}
				for i := range want {
					if !near(got[i].Score, want[i].Score) {
						t.Errorf("rank %d: got %v, want %v", i, got[i].Score, want[i].Score)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
