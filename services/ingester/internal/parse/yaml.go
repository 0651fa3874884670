package parse

import (
	"context"
	"strings"
)

func yamlFormat() format {
	return format{
		name:       "yaml",
		mediaTypes: []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"},
		extensions: []string{".yaml", ".yml"},
		firm:       true,
		maxBytes:   func(l Limits) int { return l.TextFile },
		parse:      parseYAML,
	}
}

// parseYAML keeps the source, in a block for each key of the highest level. Nothing is resolved: anchors
// and tags are text.
func parseYAML(_ context.Context, s source, b *builder) error {
	lines := splitLines(normalise(s.text))
	for _, l := range lines {
		if value, ok := strings.CutPrefix(string(l), "title:"); ok && b.title == "" {
			b.title = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return addCode(b, lines, "yaml", func(lines []line, i int) bool {
		l := lines[i]
		key := l.indent() == 0 && !strings.HasPrefix(string(l), "-") && !closing(l) && strings.Contains(string(l), ":")
		comment := strings.HasPrefix(string(l), "#")
		above := strings.HasPrefix(string(lines[i-1]), "#") || strings.HasPrefix(string(lines[i-1]), "---")
		return comment && !above || key && !comment && !above || strings.HasPrefix(string(l), "---")
	})
}
