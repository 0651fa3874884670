package postings_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

func TestMergeEqualsRebuildByteForByte(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		parts, live := randomParts(t, rng)
		seg, rows, err := postings.Merge(parts)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		wantSeg, wantRows, err := postings.Build(live)
		if err != nil {
			t.Fatal(err)
		}
		if seg.N != wantSeg.N || seg.SumLen != wantSeg.SumLen || !slices.Equal(seg.ChunkIDs, wantSeg.ChunkIDs) ||
			!slices.Equal(seg.Lens, wantSeg.Lens) {
			t.Fatalf("seed %d: segment of %d chunks differs from a rebuild of %d", seed, seg.N, wantSeg.N)
		}
		if len(rows) != len(wantRows) || len(rows) > 0 && !reflect.DeepEqual(rows, wantRows) {
			t.Fatalf("seed %d: rows differ from a rebuild", seed)
		}
	}
}

func randomParts(t *testing.T, rng *rand.Rand) (parts []postings.Part, live []postings.Doc) {
	t.Helper()
	var id int64
	for range 1 + rng.IntN(6) {
		docs := make([]postings.Doc, rng.IntN(400))
		for i := range docs {
			id++
			docs[i] = randomDoc(rng, id, 50)
		}
		seg, rows, err := postings.Build(docs)
		if err != nil {
			t.Fatal(err)
		}
		part := postings.Part{Segment: seg, Postings: rows}
		deadOneIn := []int{0, 1, 2, 10}[rng.IntN(4)]
		if deadOneIn > 0 {
			part.Dead = postings.NewBitmap(seg.N)
		}
		for i, d := range docs {
			if deadOneIn > 0 && rng.IntN(deadOneIn) == 0 {
				part.Dead.Set(i)
			} else {
				live = append(live, d)
			}
		}
		parts = append(parts, part)
	}
	return parts, live
}

func TestMergeRefusesBadParts(t *testing.T) {
	t.Parallel()
	seg, rows, err := postings.Build([]postings.Doc{
		{ChunkID: 1, Terms: []postings.TermTF{{Term: 1, TF: 1}, {Term: 2, TF: 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	half, _, err := postings.Build(make([]postings.Doc, postings.MaxSegmentDocs))
	if err != nil {
		t.Fatal(err)
	}
	part := postings.Part{Segment: seg, Postings: rows}
	for name, tc := range map[string]struct {
		parts []postings.Part
		want  error
	}{
		"the same twice": {[]postings.Part{part, part}, postings.ErrInput},
		"too large":      {[]postings.Part{part, {Segment: half}}, postings.ErrTooLarge},
		"out of order": {[]postings.Part{{
			Segment: seg, Postings: []postings.Posting{rows[1], rows[0]},
		}}, postings.ErrCorrupt},
		"ordinal too high": {[]postings.Part{{
			Segment: seg, Postings: []postings.Posting{{Term: 1, N: 1, Data: []byte{2}}},
		}}, postings.ErrCorrupt},
		"fine": {[]postings.Part{part}, nil},
		"none": {nil, nil},
	} {
		if _, _, err := postings.Merge(tc.parts); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	stop := errors.New("stop")
	if _, err := postings.MergeTo([]postings.Part{part}, func(postings.Posting) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of emit: got %v", err)
	}
}

func TestMergePolicyKeepsSegmentsFew(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 9))
		sim := &policySim{sizes: map[int64]*postings.SegmentSize{}}
		for sim.written < []int{30_000, 200_000, 2_000_000}[seed%3] {
			n := 1 + rng.IntN([]int{3, 40, 2000}[int(seed)%3])
			if seed == 5 {
				n = 1 + rng.IntN(40_000)
			}
			sim.add(n)
			if seed >= 3 && rng.IntN(4) == 0 {
				sim.kill(rng, n/2)
			}
			sim.settle(t)
		}
		if amplification := float64(sim.merged) / float64(sim.written); amplification > 5 {
			t.Errorf("seed %d: every chunk is rewritten %.1f times", seed, amplification)
		}
	}
}

type policySim struct {
	next            int64
	sizes           map[int64]*postings.SegmentSize
	written, merged int
}

func (p *policySim) add(n int) {
	p.next++
	p.sizes[p.next] = &postings.SegmentSize{ID: p.next, N: n}
	p.written += n
}

func (p *policySim) list() []postings.SegmentSize {
	out := make([]postings.SegmentSize, 0, len(p.sizes))
	for _, s := range p.sizes {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b postings.SegmentSize) int { return int(a.ID - b.ID) })
	return out
}

func (p *policySim) kill(rng *rand.Rand, n int) {
	list := p.list()
	s := p.sizes[list[rng.IntN(len(list))].ID]
	s.Dead = min(s.N, s.Dead+n)
}

func (p *policySim) settle(t *testing.T) {
	t.Helper()
	for round := 0; ; round++ {
		ids := postings.PickMerge(p.list())
		if len(ids) == 0 {
			break
		}
		live := 0
		for _, id := range ids {
			live += p.sizes[id].N - p.sizes[id].Dead
		}
		if len(ids) == 1 && p.sizes[ids[0]].Dead == 0 || live > postings.MaxSegmentDocs || len(ids) > postings.MergeFanIn || round > 1000 {
			t.Fatalf("round %d: useless or oversized pick %v of %d chunks", round, ids, live)
		}
		for _, id := range ids {
			delete(p.sizes, id)
		}
		if live > 0 {
			p.next++
			p.sizes[p.next] = &postings.SegmentSize{ID: p.next, N: live}
		}
		p.merged += live
	}
	small := 0
	for _, s := range p.sizes {
		if s.N-s.Dead < postings.MaxSegmentDocs/2 {
			small++
		}
		if s.Dead*10 >= s.N {
			t.Fatalf("segment %+v is left with a tenth dead", *s)
		}
	}
	if small >= postings.MaxSmallSegments {
		t.Fatalf("%d small segments are left", small)
	}
}
