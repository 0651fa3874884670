package postings_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

func TestTermHashNeverChanges(t *testing.T) {
	t.Parallel()
	for term, want := range map[string]int64{
		"":       -1205034819632174695,
		"weir":   2723438343022078094,
		"知識":     -1311931711456968325,
		"gpt-4o": -4708595901912928264,
	} {
		if got := postings.TermHash(term); got != want {
			t.Errorf("hash of %q: got %d, want %d", term, got, want)
		}
	}
}

func TestBuildWritesTheDocumentedBytes(t *testing.T) {
	t.Parallel()
	docs := make([]postings.Doc, 301)
	for i := range docs {
		docs[i] = postings.Doc{ChunkID: int64(1000 + i), Len: i}
	}
	docs[0].Terms = []postings.TermTF{{Term: 7, TF: 1}, {Term: -3, TF: 2}}
	docs[1].Terms = []postings.TermTF{{Term: 7, TF: 3}}
	docs[300].Terms = []postings.TermTF{{Term: 7, TF: 999}, {Term: -3, TF: 200}, {Term: -3, TF: 200}}
	docs[300].Len = 70_000
	seg, rows, err := postings.Build(docs)
	if err != nil {
		t.Fatal(err)
	}
	// Gaps: 0; 0; 298. 298<<1|1 = 597 = 0xD5 0x04. For term -3: 0; 299<<1|1 = 599 = 0xD7 0x04.
	want := []postings.Posting{
		{Term: -3, N: 2, Data: []byte{1, 2, 0xd7, 4, 255}},
		{Term: 7, N: 3, Data: []byte{0, 1, 3, 0xd5, 4, 255}},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows: got %v, want %v", rows, want)
	}
	if seg.N != 301 || seg.Len(300) != 65535 || seg.Len(299) != 299 || seg.SumLen != 299*300/2+65535 || seg.ChunkIDs[2] != 1002 {
		t.Errorf("segment: N %d, lengths %d %d, sum %d", seg.N, seg.Len(299), seg.Len(300), seg.SumLen)
	}
	if err := seg.Check(); err != nil {
		t.Errorf("check: %v", err)
	}
	seg.SumLen++
	if err := seg.Check(); !errors.Is(err, postings.ErrCorrupt) {
		t.Errorf("check of a wrong sum: got %v", err)
	}
}

func TestBuildRefusesBadInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		docs []postings.Doc
		want error
	}{
		"negative length":  {[]postings.Doc{{Len: -1}}, postings.ErrInput},
		"frequency 0":      {[]postings.Doc{{Terms: []postings.TermTF{{Term: 1}}}}, postings.ErrInput},
		"too many":         {make([]postings.Doc, postings.MaxSegmentDocs+1), postings.ErrTooLarge},
		"as many as fit":   {make([]postings.Doc, postings.MaxSegmentDocs), nil},
		"nothing":          {nil, nil},
		"nothing to index": {[]postings.Doc{{ChunkID: 1}}, nil},
	} {
		if _, _, err := postings.Build(tc.docs); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}

func TestBuildDecodesToItsInput(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	docs := make([]postings.Doc, 3000)
	want := map[int64][]postings.Entry{}
	for i := range docs {
		docs[i].ChunkID = int64(i)
		for term := range int64(12) {
			if rng.IntN(1<<term) == 0 {
				tf := 1 + rng.IntN(4)
				docs[i].Terms = append(docs[i].Terms, postings.TermTF{Term: term, TF: tf})
				want[term] = append(want[term], postings.Entry{Ord: uint16(i), TF: uint8(tf)})
			}
		}
	}
	seg, rows, err := postings.Build(docs)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(want) {
		t.Fatalf("got %d rows, want %d", len(rows), len(want))
	}
	for _, p := range rows {
		got, err := postings.AppendEntries(nil, p, seg.N)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[p.Term]) {
			t.Errorf("term %d: got %d entries, want %d", p.Term, len(got), len(want[p.Term]))
		}
	}
}

// TestBuildOrdersTermsHoweverTheyLie takes terms that are close to each other, spread, and repeated, few and many.
func TestBuildOrdersTermsHoweverTheyLie(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 120 {
		spread := []int64{1, 1 << 9, 1 << 30, 0x1E3779B97F4A7C15}[round%4]
		distinct := 1 + rng.Int64N(1<<(round%10))
		docs := make([]postings.Doc, rng.IntN(400))
		want := map[int64][]postings.Entry{}
		for ord := range docs {
			for range rng.IntN(12) {
				term, tf := rng.Int64N(distinct)*spread-7, 1+rng.IntN(200)
				docs[ord].Terms = append(docs[ord].Terms, postings.TermTF{Term: term, TF: tf})
				list := want[term]
				if n := len(list); n > 0 && int(list[n-1].Ord) == ord {
					list[n-1].TF = uint8(min(int(list[n-1].TF)+tf, postings.MaxTF))
					continue
				}
				want[term] = append(list, postings.Entry{Ord: uint16(ord), TF: uint8(tf)})
			}
		}
		_, rows, err := postings.Build(docs)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(want) || !slices.IsSortedFunc(rows, func(a, b postings.Posting) int { return cmp.Compare(a.Term, b.Term) }) {
			t.Fatalf("round %d: got %d rows, want %d by ascending term", round, len(rows), len(want))
		}
		for _, r := range rows {
			got, err := postings.AppendEntries(nil, r, len(docs))
			if err != nil || !slices.Equal(got, want[r.Term]) {
				t.Fatalf("round %d: term %d: got %v, %v, want %v", round, r.Term, got, err, want[r.Term])
			}
		}
	}
}

func TestLengthsRoundTrip(t *testing.T) {
	t.Parallel()
	got, err := postings.DecodeLens(postings.EncodeLens([]int{0, 1, 258, 65535, 65536, -4}))
	if err != nil || !slices.Equal(got, []int{0, 1, 258, 65535, 65535, 0}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := postings.DecodeLens([]byte{1}); !errors.Is(err, postings.ErrCorrupt) {
		t.Errorf("odd bytes: got %v", err)
	}
}

func TestMarkDeadFindsTombstonesInAnyOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := rng.IntN(200)
		docs := make([]postings.Doc, n)
		held := map[int64]int{}
		for i, v := range rng.Perm(300)[:n] {
			docs[i].ChunkID = int64(v)
			held[int64(v)] = i
		}
		seg, _, err := postings.Build(docs)
		if err != nil {
			t.Fatal(err)
		}
		var tombstones []int64
		want := map[int64]bool{}
		for range rng.IntN(100) {
			id := int64(rng.IntN(320) - 10)
			tombstones = append(tombstones, id)
			if _, ok := held[id]; ok {
				want[id] = true
			}
		}
		dead, found := seg.MarkDead(tombstones)
		if len(found) != len(want) || dead.Count() != len(want) || !slices.IsSorted(found) {
			t.Fatalf("got %v and %d bits, want %d", found, dead.Count(), len(want))
		}
		for id := range want {
			if !dead.Has(held[id]) {
				t.Fatalf("chunk %d at ordinal %d is not dead", id, held[id])
			}
		}
	}
}
