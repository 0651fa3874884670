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

// parseCSV gives table blocks: a line a record, cells joined by " | ", the header row marked.
func parseCSV(ctx context.Context, s source, b *builder) error {
	table := &rowBlocks{b: b}
	sound, err := csvRows(ctx, s, func(r numberedRow) error {
		if len(table.rows) == 0 && !table.started && headerRow(r.text) {
			table.heads = 1
		}
		return table.add(r)
	})
	if err != nil {
		return err
	}
	if !sound {
		b.warn("a quote is never closed or a record is too long: read line by line")
		if table, err = csvLines(s, b); err != nil {
			return err
		}
	}
	return table.flush()
}

// csvLines reads the file without minding quotes.
func csvLines(s source, b *builder) (*rowBlocks, error) {
	table := &rowBlocks{b: b}
	for i, l := range strings.Split(normalise(s.text), "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if len(table.rows) == 0 && !table.started && headerRow(l) {
			table.heads = 1
		}
		if err := table.add(numberedRow{text: l, line: i + 1, last: i + 1}); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// csvRows hands the records over. It reports false, before the first of them, when quotes make the
// records unusable.
func csvRows(ctx context.Context, s source, add func(numberedRow) error) (bool, error) {
	if strings.Count(s.text, `"`)%2 != 0 {
		return false, nil
	}
	var rows []numberedRow
	r := csv.NewReader(strings.NewReader(s.text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = delimiter(s.text), true, -1, true
	for before := int64(0); ; before = r.InputOffset() {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, damaged("the CSV cannot be read near line %d", len(rows)+1)
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if r.InputOffset()-before > int64(s.limits.RecordBytes) {
			return false, nil
		}
		row := numberedRow{text: renderRow(record)}
		row.line, _ = r.FieldPos(0)
		row.last = row.line
		for _, cell := range record {
			row.last += strings.Count(cell, "\n")
		}
		if row.text != "" {
			rows = append(rows, row)
		}
	}
	for _, row := range rows {
		if err := add(row); err != nil {
			return false, err
		}
	}
	return true, nil
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
