package eval

import (
	"fmt"
	"io"
	"strings"
)

// SweepTable writes a sweep as a Markdown table, the best mean in bold, and what its columns mean.
func SweepTable(w io.Writer, r SweepReport) error {
	head := []string{"method", "N1/N2", "weights"}
	for _, s := range r.Sets {
		head = append(head, s.Set)
	}
	if len(r.Sets) > 1 {
		head = append(head, "mean")
	}
	head = append(head, "difference", fmt.Sprintf("%.0f %% interval", 100*r.Level), "better/worse")
	rows := [][]string{head, rule(len(head))}
	best := r.Best()
	for i := range r.Rows {
		rows = append(rows, r.cells(i, i == best))
	}
	if err := writeColumns(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nnDCG@10. Differences are from %s with N %s and weights %s, query by query, and intervals a bootstrap of %d samples (seed %d).\n"+
		"%s marks intervals that leave out 0; of %d lines about %d would do so by chance.\n",
		r.Rows[r.Baseline].Method, r.Rows[r.Baseline].variant.Lists(), r.Rows[r.Baseline].Weights, r.Samples, r.Seed,
		mark, len(r.Rows), (len(r.Rows)+10)/20)
	return err
}

// mark stands behind intervals that leave out 0.
const mark = "*"

// Best is the place of the row with the highest mean, the first of equal ones.
func (r SweepReport) Best() int {
	best := 0
	for i, row := range r.Rows {
		if row.Mean > r.Rows[best].Mean {
			best = i
		}
	}
	return best
}

func rule(columns int) []string {
	out := make([]string, columns)
	for i := range out {
		out[i] = "---"
	}
	return out
}

func (r SweepReport) cells(i int, best bool) []string {
	row := r.Rows[i]
	name := row.Method
	if best {
		name = "**" + name + "**"
	}
	out := []string{name, row.variant.Lists(), row.Weights}
	for _, x := range row.NDCG10 {
		out = append(out, four(x))
	}
	if len(r.Sets) > 1 {
		out = append(out, four(row.Mean))
	}
	if i == r.Baseline {
		return append(out, "baseline", "", "")
	}
	d, sign := row.Difference, ""
	if d.Clear() {
		sign = " " + mark
	}
	return append(out, signed(d.Mean), fmt.Sprintf("%s to %s%s", signed(d.Low), signed(d.High), sign), fmt.Sprintf("%d/%d", d.Better, d.Worse))
}

func signed(x float64) string {
	if out := fmt.Sprintf("%+.4f", x); out != "-0.0000" {
		return out
	}
	return "+0.0000"
}

// writeColumns writes rows as a Markdown table whose columns also line up as text.
func writeColumns(w io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "| %-*s ", widths[i], cell)
		}
		if _, err := fmt.Fprintln(w, line.String()+"|"); err != nil {
			return err
		}
	}
	return nil
}
