package postings_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

func segment(id int64, n int) *postings.Segment {
	return &postings.Segment{ID: id, N: n, ChunkIDs: make([]int64, n), Lens: make([]byte, 2*n)}
}

func TestCacheTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := postings.NewCache(1 << 20)
	c.AddSegments(1, []*postings.Segment{segment(10, 3), segment(11, 3)})
	found, missing := c.Segments(1, []int64{10, 12, 11})
	if len(found) != 2 || found[0].ID != 10 || found[1].ID != 11 || !slices.Equal(missing, []int64{12}) {
		t.Errorf("segments: found %d, missing %v", len(found), missing)
	}
	if found, missing := c.Segments(2, []int64{10}); len(found) != 0 || len(missing) != 1 {
		t.Errorf("another generation: found %d, missing %v", len(found), missing)
	}

	asked := []postings.Key{{Term: 5, Seg: 10}, {Term: 6, Seg: 10}, {Term: 5, Seg: 11}}
	c.AddPostings(1, asked, []postings.Posting{{Term: 5, Seg: 10, N: 1, Data: []byte{0}}})
	rows, keys := c.Postings(1, []int64{5, 6}, []int64{10, 11})
	if len(rows) != 1 || rows[0].Term != 5 || rows[0].Seg != 10 {
		t.Errorf("rows: %v", rows)
	}
	if !slices.Equal(keys, []postings.Key{{Term: 6, Seg: 11}}) {
		t.Errorf("missing keys: got %v", keys)
	}
	if got := c.Covered(1, []int64{5, 6}); !slices.Equal(got, []int64{10}) {
		t.Errorf("covered for both terms: got %v, want [10]", got)
	}
	if got := c.Covered(1, []int64{5}); !slices.Equal(got, []int64{10, 11}) {
		t.Errorf("covered for one term: got %v, want [10 11]", got)
	}

	c.Retain(1, []int64{11})
	if got := c.Covered(1, []int64{5}); !slices.Equal(got, []int64{11}) {
		t.Errorf("after retain: got %v, want [11]", got)
	}
	c.Retain(1, nil)
	if st := c.Stats(); st.Entries != 0 || st.Bytes != 0 {
		t.Errorf("after the generation is gone: %+v", st)
	}
}

func TestCacheStaysWithinItsBytesAndForgetsTheOldest(t *testing.T) {
	t.Parallel()
	c := postings.NewCache(10_000)
	add := func(term int64) {
		c.AddPostings(1, nil, []postings.Posting{{Term: term, Seg: 1, N: 700, Data: make([]byte, 700)}})
	}
	for term := range int64(10) {
		add(term)
	}
	c.Postings(1, []int64{0}, []int64{1}) // used again, so term 1 goes first
	add(10)
	rows, missing := c.Postings(1, []int64{0, 1, 2}, []int64{1})
	if len(rows) != 2 || len(missing) != 1 || missing[0].Term != 1 {
		t.Errorf("got %d rows, missing %v; want term 1 missing", len(rows), missing)
	}
	c.AddSegments(1, []*postings.Segment{segment(5, 2000)})
	if found, _ := c.Segments(1, []int64{5}); len(found) != 0 {
		t.Error("a segment larger than the cache was kept")
	}
	for term := range int64(100) {
		add(term)
		if st := c.Stats(); st.Bytes > 10_000 {
			t.Fatalf("%d bytes held, limit 10000", st.Bytes)
		}
	}
	none := postings.NewCache(0)
	none.AddSegments(1, []*postings.Segment{segment(1, 1)})
	if st := none.Stats(); st.Entries != 0 {
		t.Errorf("a cache of no bytes holds %+v", st)
	}
}

func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c := postings.NewCache(20_000)
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	for worker := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 4))
			for range 2000 {
				gen, term, seg := rng.Int64N(3), rng.Int64N(20), rng.Int64N(5)
				switch rng.IntN(4) {
				case 0:
					c.AddPostings(gen, []postings.Key{{Term: term, Seg: seg}}, []postings.Posting{
						{Term: term, Seg: seg, N: int(gen + term + seg + 1), Data: []byte{byte(gen)}},
					})
				case 1:
					c.AddSegments(gen, []*postings.Segment{segment(seg, 10)})
				case 2:
					c.Retain(gen, []int64{0, 1, 2})
				case 3:
					rows, _ := c.Postings(gen, []int64{term}, []int64{seg})
					if len(rows) == 1 && rows[0].N != int(gen+term+seg+1) {
						errs <- fmt.Errorf("got row %+v for generation %d, term %d, segment %d", rows[0], gen, term, seg)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}
