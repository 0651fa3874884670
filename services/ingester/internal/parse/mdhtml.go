package parse

import "strings"

// htmlTag is the name of the HTML element that a line of Markdown begins with, "!--" for a comment, "" for
// none that makes a block.
func htmlTag(l line) string {
	t := strings.TrimLeft(string(l), " ")
	if len(t) < 3 || t[0] != '<' || l.indent() > 3 {
		return ""
	}
	if strings.HasPrefix(t, "<!--") {
		return "!--"
	}
	t = strings.TrimPrefix(t[1:], "/")
	end := 0
	for end < len(t) && (t[end]|0x20 >= 'a' && t[end]|0x20 <= 'z' || t[end] >= '1' && t[end] <= '6') {
		end++
	}
	if end == len(t) || !strings.ContainsRune(" \t\n/>", rune(t[end])) {
		return ""
	}
	name := strings.ToLower(t[:end])
	if htmlBlock(name) || name == "a" || name == "img" || name == "picture" || name == "br" || dropped(name) {
		return name
	}
	return ""
}

// htmlBlock reports an element, or a comment, that ends a paragraph above it.
func htmlBlock(name string) bool {
	return name == "!--" || name != "" && name != "html" && name != "head" && blockElement(name) || name == "script" || name == "style"
}

// html reads a block of HTML. It ends at an empty line, and those elements that hold empty lines end with
// their own tag.
func (m *markdown) html() error {
	from := m.at
	to := m.htmlEnd(htmlTag(m.lines[from]))
	m.at = to
	began, title := len(m.b.blocks), m.b.title
	s := m.source
	s.text = joinLines(m.lines[from:to])
	err := parsePage(m.ctx, s, m.b, nil)
	m.b.title = title
	for i := began; i < len(m.b.blocks); i++ {
		m.b.blocks[i].Line, m.b.blocks[i].LineEnd = from+1, to
	}
	return err
}

func (m *markdown) htmlEnd(tag string) int {
	open, end := "<"+tag, ""
	switch tag {
	case "!--":
		end = "-->"
	case "table", "ul", "ol", "pre", "script", "style", "svg", "dl":
		end = "</" + tag
	}
	if end != "" {
		const most = 5000 // lines
		depth := 0
		for i := m.at; i < len(m.lines) && i < m.at+most && m.scanned < 4*len(m.lines)+most; i++ {
			m.scanned++ // ends that never come are not looked for again and again
			l := strings.ToLower(string(m.lines[i]))
			depth += strings.Count(l, open) - strings.Count(l, end)
			if depth <= 0 && (i > m.at || strings.Contains(l, end)) {
				return i + 1
			}
		}
	}
	to := m.at + 1
	for to < len(m.lines) && !m.lines[to].blank() {
		to++
	}
	return to
}

// plainInline is a heading without the marks of emphasis, code, links and tags, as it is shown.
func plainInline(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch c := text[i]; {
		case c == '\\' && len(rest) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!|<>~", rest[1]) >= 0:
			out.WriteByte(rest[1])
			i += 2
		case c == '*' || c == '`' || strings.HasPrefix(rest, "~~") || c == '_' && (boundary(text, i-1) || boundary(text, i+1)):
			i++
			if c == '~' {
				i++
			}
		case c == '!' && strings.HasPrefix(rest, "!["):
			i++
		case c == '[':
			if label, size := linkLabel(rest); size > 0 {
				out.WriteString(plainInline(label))
				i += size
				continue
			}
			out.WriteByte(c)
			i++
		case c == '<':
			end := strings.IndexByte(rest, '>')
			if end > 0 && end < 200 && !strings.ContainsAny(rest[1:2], " 0123456789=") {
				i += end + 1
				continue
			}
			out.WriteByte(c)
			i++
		default:
			out.WriteByte(c)
			i++
		}
	}
	if plain := collapse(out.String()); plain != "" {
		return plain
	}
	return text
}

// boundary reports that no letter or digit of a word stands at a byte.
func boundary(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return true
	}
	c := text[i]
	return c < 0x80 && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9')
}

// linkLabel reads [label](target) or [label][reference]; size 0: it is none.
func linkLabel(text string) (label string, size int) {
	const most = 300 // bytes of either part; headings are short
	end := strings.IndexByte(text[:min(len(text), most)], ']')
	if end < 0 || end+1 >= len(text) {
		return "", 0
	}
	closing := byte(0)
	switch text[end+1] {
	case '(':
		closing = ')'
	case '[':
		closing = ']'
	default:
		return "", 0
	}
	stop := strings.IndexByte(text[end+2:min(len(text), end+2+most)], closing)
	if stop < 0 {
		return "", 0
	}
	return text[1:end], end + 2 + stop + 1
}
