package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// BenchmarkMarkdown reads a document of ten sections, each a line of 180 words.
func BenchmarkMarkdown(b *testing.B) {
	var text strings.Builder
	for section := range 10 {
		fmt.Fprintf(&text, "# Section %d\n\n%s\n\n", section, strings.Repeat("words as come ", 60))
	}
	in := parse.Input{Data: []byte(text.String()), ContentType: "text/markdown", Name: "d1"}
	b.ReportAllocs()
	b.SetBytes(int64(len(in.Data)))
	for b.Loop() {
		if _, err := parse.Parse(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
