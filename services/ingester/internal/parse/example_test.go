package parse_test

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

func ExampleParse() {
	doc, err := parse.Parse(context.Background(), parse.Input{
		Data:        []byte("# Pump\n\nE-4217 means no flow.\n"),
		ContentType: "text/markdown",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range doc.Blocks {
		fmt.Printf("%s %q under %q\n", b.Kind, doc.Text[b.Start:b.End], b.HeadingPath)
	}
	// Output:
	// heading "# Pump\n\n" under ["Pump"]
	// paragraph "E-4217 means no flow.\n" under ["Pump"]
}
