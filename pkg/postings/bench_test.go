package postings_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

// proseDocs have about 68 distinct terms each, with a long tail, and 110 tokens: measured on real prose.
func proseDocs(rng *rand.Rand, n int, firstID int64) []postings.Doc {
	zipf := rand.NewZipf(rng, 1.07, 8, 2_000_000)
	docs := make([]postings.Doc, n)
	for i := range docs {
		tfs := map[int64]int{}
		for range 110 {
			tfs[int64(zipf.Uint64())*0x1E3779B97F4A7C15]++ //nolint:gosec // spreads the terms over 64 bits
		}
		docs[i] = postings.Doc{ChunkID: firstID + int64(i), Len: 110}
		for term, tf := range tfs {
			docs[i].Terms = append(docs[i].Terms, postings.TermTF{Term: term, TF: tf})
		}
	}
	return docs
}

// reportCPU adds the processor time of an operation: wall time says little on a shared machine.
func reportCPU(b *testing.B) (done func()) {
	b.Helper()
	start := processCPU(b)
	return func() {
		b.Helper()
		b.ReportMetric(float64(processCPU(b)-start)/float64(b.N), "cpu-ns/op")
	}
}

func processCPU(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkBuild(b *testing.B) {
	docs := proseDocs(rand.New(rand.NewPCG(1, 1)), 2000, 1)
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		if _, _, err := postings.Build(docs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*2000/b.Elapsed().Seconds(), "chunks/s")
}

func BenchmarkMerge(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var parts []postings.Part
	for i := range 16 {
		seg, rows, err := postings.Build(proseDocs(rng, 500, int64(i*500)))
		if err != nil {
			b.Fatal(err)
		}
		parts = append(parts, postings.Part{Segment: seg, Postings: rows})
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		if _, _, err := postings.Merge(parts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*8000/b.Elapsed().Seconds(), "chunks/s")
}

// million is one snapshot of a million chunks in 16 segments, with 8 terms of 333,000 postings in all.
var million = sync.OnceValues(func() (postings.Snapshot, postings.Query) { //nolint:gochecknoglobals // made once for two benchmarks
	rng := rand.New(rand.NewPCG(1, 1))
	shares := []float64{0.2, 0.08, 0.03, 0.015, 0.005, 0.002, 0.0008, 0.0002}
	var snap postings.Snapshot
	q := postings.Query{K1: postings.DefaultK1, B: postings.DefaultB}
	for term := range shares {
		q.Terms = append(q.Terms, postings.Term{Hash: int64(term), Weight: 1})
	}
	for id := range int64(16) {
		docs := make([]postings.Doc, 62_500)
		for i := range docs {
			docs[i] = postings.Doc{ChunkID: id*62_500 + int64(i), Len: 60 + rng.IntN(100)}
			for term, share := range shares {
				if rng.Float64() < share {
					docs[i].Terms = append(docs[i].Terms, postings.TermTF{Term: int64(term), TF: 1 + rng.IntN(5)/3})
				}
			}
		}
		seg, rows, err := postings.Build(docs)
		if err != nil {
			panic(err)
		}
		seg.ID = id
		for i := range rows {
			rows[i].Seg = id
		}
		snap.Segments = append(snap.Segments, seg)
		snap.Postings = append(snap.Postings, rows...)
	}
	return snap, q
})

func BenchmarkScore(b *testing.B) {
	snap, q := million()
	for name, dead := range map[string]int{"no tombstones": 0, "10,000 tombstones": 10_000} {
		b.Run(name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			snap := snap
			for range dead {
				snap.Tombstones = append(snap.Tombstones, rng.Int64N(1_000_000))
			}
			slices.Sort(snap.Tombstones)
			var ranker postings.Ranker
			b.ReportAllocs()
			defer reportCPU(b)()
			for b.Loop() {
				scorer, err := ranker.Prepare(context.Background(), snap, q)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := scorer.Top(context.Background(), 100, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScoreChunks(b *testing.B) {
	snap, q := million()
	rng := rand.New(rand.NewPCG(1, 1))
	var ids []int64
	for range 100 {
		ids = append(ids, rng.Int64N(1_000_000))
	}
	var ranker postings.Ranker
	scorer, err := ranker.Prepare(context.Background(), snap, q)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		if _, err := scorer.ScoreChunks(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
}
