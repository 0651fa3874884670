package fusion_test

import (
	"fmt"

	"github.com/weir-project/weir/pkg/fusion"
)

func ExampleFuse() {
	pump, valve := fusion.Key{DocID: "pump"}, fusion.Key{DocID: "valve"}
	cands := fusion.Union(
		[]fusion.Listed{{Key: pump, Raw: 0.91}, {Key: valve, Raw: 0.84}},
		[]fusion.Listed{{Key: valve, Raw: 7.5}},
	)
	// The dense leg found pump alone: its exact full-text score is looked up.
	cands[0].Text = fusion.Standing{Raw: 1.5, Known: true}
	results, err := fusion.Fuse(fusion.Config{
		Method: fusion.Weight, DenseWeight: 0.7, TextWeight: 0.3, Metric: fusion.Cosine,
		Legs: fusion.Legs{Dense: true, Text: true}, Limit: 10,
	}, cands)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Printf("%s %.2f = %.1f*%.2f + %.1f*%.2f\n", r.Key.DocID, r.Score, r.Dense.Weight, r.Dense.Part, r.Text.Weight, r.Text.Part)
	}
	// Output:
	// pump 0.76 = 0.7*1.00 + 0.3*0.20
	// valve 0.30 = 0.7*0.00 + 0.3*1.00
}
