package eval

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WriteRun writes a run as TREC has it: "query Q0 document rank score tag", queries in byte order. Document
// ids with white space, which the format cannot hold, are an error.
func WriteRun(w io.Writer, run Run, tag string) error {
	out := bufio.NewWriter(w)
	for _, query := range slices.Sorted(maps.Keys(run)) {
		for i, h := range run[query] {
			if strings.ContainsAny(h.Doc, " \t\r\n") {
				return fmt.Errorf("write run: document id %q holds white space", h.Doc)
			}
			fmt.Fprintf(out, "%s Q0 %s %d %s %s\n", query, h.Doc, i+1, strconv.FormatFloat(h.Score, 'g', -1, 64), tag)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}
