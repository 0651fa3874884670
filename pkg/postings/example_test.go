package postings_test

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/pkg/postings"
)

func Example() {
	cat, dog := postings.TermHash("cat"), postings.TermHash("dog")
	seg, rows, err := postings.Build([]postings.Doc{
		{ChunkID: 101, Len: 4, Terms: []postings.TermTF{{Term: cat, TF: 2}, {Term: dog, TF: 1}}},
		{ChunkID: 102, Len: 2, Terms: []postings.TermTF{{Term: dog, TF: 1}}},
		{ChunkID: 103, Len: 3, Terms: []postings.TermTF{{Term: cat, TF: 1}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ranker postings.Ranker
	scorer, err := ranker.Prepare(context.Background(), postings.Snapshot{
		Segments:   []*postings.Segment{seg},
		Postings:   rows,
		Tombstones: []int64{103},
	}, postings.Query{
		Terms: []postings.Term{{Hash: cat, Weight: 1}, {Hash: dog, Weight: 0.5}},
		K1:    postings.DefaultK1,
		B:     postings.DefaultB,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	hits, err := scorer.Top(context.Background(), 10, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range hits {
		fmt.Printf("%d %.4f\n", h.ChunkID, h.Score)
	}
	// Output:
	// 101 0.9516
	// 102 0.1056
}
