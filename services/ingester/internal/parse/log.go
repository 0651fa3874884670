package parse

import "context"

func logFormat() format {
	return format{
		name:       "log",
		mediaTypes: []string{"text/x-log"},
		extensions: []string{".log"},
		firm:       true,
		maxBytes:   func(l Limits) int { return l.TextFile },
		parse:      parseLog,
	}
}

// parseLog keeps lines as they are: none is joined with the next, and chunks end at line ends. A line
// with indentation, such as that of a stack trace, stays with the one above.
func parseLog(_ context.Context, s source, b *builder) error {
	const most = 100 // lines of a block
	began := 0
	return addCode(b, splitLines(normalise(s.text)), "", func(lines []line, i int) bool {
		if lines[i].indent() > 0 || i-began < most && !lines[i-1].blank() {
			return false
		}
		began = i
		return true
	})
}
