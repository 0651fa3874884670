package parse

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"
)

func csvFormat() format {
	return format{
		name:       "csv",
		mediaTypes: []string{"text/csv", "application/csv", "text/tab-separated-values"},
		extensions: []string{".csv", ".tsv", ".tab"},
		maxBytes:   func(l Limits) int { return l.TextFile },
		parse:      parseCSV,
	}
}

// parseCSV gives one table block: a line a record, cells joined by " | ", the header row marked.
func parseCSV(ctx context.Context, s source, b *builder) error {
	rows, err := csvRows(ctx, s)
	if err != nil {
		return err
	}
	if rows == nil {
		b.warn("a quote is never closed or a record is too long: read line by line")
		rows = strings.Split(s.text, "\n")
	}
	table := part{kind: KindTable, text: strings.Join(rows, "\n"), line: 1}
	if len(rows) > 1 && headerRow(rows[0]) {
		table.header = rows[0] + "\n"
	}
	return b.add(table)
}

// csvRows renders the records. It returns nil when quotes make the records unusable.
func csvRows(ctx context.Context, s source) ([]string, error) {
	if strings.Count(s.text, `"`)%2 != 0 {
		return nil, nil
	}
	r := csv.NewReader(strings.NewReader(s.text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = delimiter(s.text), true, -1, true
	rows, before := []string{}, int64(0)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, damaged("the CSV cannot be read near line %d", len(rows)+1)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.InputOffset()-before > int64(s.limits.RecordBytes) {
			return nil, nil
		}
		before = r.InputOffset()
		if row := renderRow(record); row != "" {
			rows = append(rows, row)
		}
	}
}

func renderRow(record []string) string {
	cells := make([]string, len(record))
	for i, cell := range record {
		cells[i] = collapse(cell)
	}
	if strings.Join(cells, "") == "" {
		return ""
	}
	return strings.Join(cells, " | ")
}

// delimiter picks the separator whose count is steadiest and highest over the first lines.
func delimiter(text string) rune {
	const sample = 5
	lines := bytes.SplitN([]byte(text), []byte("\n"), sample+1)
	if len(lines) > sample {
		lines = lines[:sample]
	}
	best, bestScore := ',', 0
	for _, c := range ",;\t|" {
		least, most := -1, 0
		for _, l := range lines {
			if len(bytes.TrimSpace(l)) == 0 {
				continue
			}
			n := bytes.Count(l, []byte(string(c)))
			if least < 0 || n < least {
				least = n
			}
			most = max(most, n)
		}
		if score := 2*max(least, 0) - (most - max(least, 0)); score > bestScore {
			best, bestScore = c, score
		}
	}
	return best
}

// headerRow reports names rather than data: every cell filled, none a number.
func headerRow(row string) bool {
	for _, cell := range strings.Split(row, " | ") {
		if cell == "" {
			return false
		}
		if _, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64); err == nil {
			return false
		}
	}
	return true
}
