package parse

import (
	"context"
	"strings"
)

func textFormat() format {
	return format{
		name:       "txt",
		mediaTypes: []string{"text/plain"},
		extensions: []string{".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".srt", ".vtt"},
		maxBytes:   func(l Limits) int { return l.TextFile },
		parse:      parseText,
	}
}

// parseText keeps the text and cuts it into paragraphs at empty lines.
func parseText(_ context.Context, s source, b *builder) error {
	lines := splitLines(normalise(s.text))
	b.text.Grow(len(s.text) + 1)
	start := -1
	for i, line := range lines {
		switch {
		case !line.blank() && start < 0:
			start = i
		case line.blank() && start >= 0:
			if err := b.addLines(part{kind: KindParagraph}, lines, start, i, 0); err != nil {
				return err
			}
			start = -1
		}
	}
	if start < 0 {
		return nil
	}
	return b.addLines(part{kind: KindParagraph}, lines, start, len(lines), 0)
}

// line is one source line with its line end.
type line string

func (l line) blank() bool { return strings.TrimSpace(string(l)) == "" }

// indent counts leading columns; a tab goes to the next multiple of four.
func (l line) indent() int {
	columns := 0
	for i := 0; i < len(l); i++ {
		switch l[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns
		}
	}
	return columns
}

func splitLines(text string) []line {
	out := make([]line, 0, strings.Count(text, "\n")+1)
	for text != "" {
		end := strings.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		out = append(out, line(text[:end]))
		text = text[end:]
	}
	return out
}

// addLines appends lines[from:to] as one block, source kept as it is, and closes it with the blank
// lines that follow in the source. header counts the leading lines that are a table's header.
func (b *builder) addLines(p part, lines []line, from, to, header int) error {
	for to > from && lines[to-1].blank() {
		to--
	}
	if to == from {
		return nil
	}
	text := joinLines(lines[from:to])
	gap := text[len(strings.TrimRight(text, " \t\n")):]
	text = text[:len(text)-len(gap)]
	end := to
	for end < len(lines) && lines[end].blank() {
		end++
	}
	gap += joinLines(lines[to:end])
	if !strings.Contains(gap, "\n") {
		gap += "\n"
	}
	p.line = from + 1
	return b.place(p, text, joinLines(lines[from:from+header]), gap)
}

func joinLines(lines []line) string {
	if len(lines) == 1 {
		return string(lines[0])
	}
	size := 0
	for _, l := range lines {
		size += len(l)
	}
	var out strings.Builder
	out.Grow(size)
	for _, l := range lines {
		out.WriteString(string(l))
	}
	return out.String()
}

// addParagraphs appends text as paragraphs between empty lines, without lines of the source.
func (b *builder) addParagraphs(text string) error {
	lines, start := splitLines(normalise(text)), 0
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && !lines[i].blank() {
			continue
		}
		if err := b.add(part{kind: KindParagraph, text: joinLines(lines[start:i])}); err != nil {
			return err
		}
		start = i + 1
	}
	return nil
}
