package parse

import (
	"context"
	"strings"
	"unicode"
)

func markdownFormat() format {
	return format{
		name:       "md",
		mediaTypes: []string{"text/markdown", "text/x-markdown"},
		extensions: []string{".md", ".markdown", ".mdown", ".mkd"},
		firm:       true,
		maxBytes:   func(l Limits) int { return l.MarkupFile },
		parse:      parseMarkdown,
	}
}

// parseMarkdown finds blocks line by line and keeps the source text. Inline marks are not read, so no
// input costs more than linear time.
func parseMarkdown(ctx context.Context, s source, b *builder) error {
	m := markdown{ctx: ctx, source: s, b: b, lines: splitLines(normalise(s.text))}
	b.text.Grow(len(s.text) + 1)
	m.frontMatter()
	for m.at < len(m.lines) {
		if m.lines[m.at].blank() {
			m.at++
			continue
		}
		if err := m.block(); err != nil {
			return err
		}
	}
	return m.err
}

type markdown struct {
	ctx     context.Context
	source  source
	b       *builder
	lines   []line
	at      int // next line
	scanned int // lines looked at for the end of HTML
	err     error
}

// block emits the block that begins at m.at and moves behind it.
func (m *markdown) block() error {
	l := m.lines[m.at]
	switch {
	case fenceMark(l) != "":
		return m.fence()
	case atxLevel(l) > 0:
		return m.heading(atxLevel(l), m.at+1)
	case htmlTag(l) != "":
		return m.html()
	case m.tableAt(m.at):
		return m.table()
	case listMark(l):
		return m.list()
	case l.indent() >= 4:
		return m.indented()
	}
	return m.paragraph()
}

func (m *markdown) emit(p part, to, header int) error {
	from := m.at
	m.at = to
	return m.b.addLines(p, m.lines, from, to, header)
}

func (m *markdown) heading(level, to int) error {
	title := plainInline(headingText(string(m.lines[m.at])))
	if m.b.title == "" && level == 1 {
		m.b.title = title
	}
	return m.emit(part{kind: KindHeading, level: level, title: title}, to, 0)
}

func (m *markdown) fence() error {
	mark := fenceMark(m.lines[m.at])
	info := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(string(m.lines[m.at])), mark[:1]))
	lang, _, _ := strings.Cut(info, " ")
	to := m.at + 1
	for to < len(m.lines) && !closesFence(m.lines[to], mark) {
		to++
	}
	if to < len(m.lines) {
		to++
	}
	return m.emit(part{kind: KindCode, lang: clip(strings.Trim(lang, "{}."), 30)}, to, 0)
}

func (m *markdown) table() error {
	to := m.at + 2
	for to < len(m.lines) && !m.lines[to].blank() && strings.Contains(string(m.lines[to]), "|") {
		to++
	}
	return m.emit(part{kind: KindTable}, to, 2)
}

// list takes items, their indented lines, and lazy lines; an empty line ends it unless an item or an
// indented line follows.
func (m *markdown) list() error {
	to := m.at + 1
	for to < len(m.lines) {
		l := m.lines[to]
		if l.blank() {
			next := to
			for next < len(m.lines) && m.lines[next].blank() {
				next++
			}
			if next == len(m.lines) || !listMark(m.lines[next]) && m.lines[next].indent() < 2 {
				break
			}
			to = next
			continue
		}
		if l.indent() == 0 && (atxLevel(l) > 0 || m.tableAt(to)) || fenceMark(l) != "" || thematic(l) {
			break
		}
		to++
	}
	return m.emit(part{kind: KindList}, to, 0)
}

func (m *markdown) indented() error {
	to := m.at + 1
	for to < len(m.lines) && (m.lines[to].blank() || m.lines[to].indent() >= 4) {
		to++
	}
	return m.emit(part{kind: KindCode}, to, 0)
}

func (m *markdown) paragraph() error {
	to := m.at + 1
	for to < len(m.lines) {
		l := m.lines[to]
		if level := setextLevel(l); level > 0 && to == m.at+1 && !thematicStart(m.lines[m.at]) {
			return m.heading(level, to+1)
		}
		if l.blank() || fenceMark(l) != "" || atxLevel(l) > 0 || thematic(l) || listMark(l) || m.tableAt(to) || htmlBlock(htmlTag(l)) {
			break
		}
		to++
	}
	return m.emit(part{kind: KindParagraph}, to, 0)
}

// frontMatter takes a leading block between --- lines (YAML) or +++ lines (TOML) and its title. A block
// that says nothing but the title is no text of the document.
func (m *markdown) frontMatter() {
	if len(m.lines) == 0 {
		return
	}
	mark, lang, equals := strings.TrimRight(string(m.lines[0]), " \n"), "yaml", ":"
	switch mark {
	case "---":
	case "+++":
		lang, equals = "toml", "="
	default:
		return
	}
	const most = 200 // lines
	title, others := "", 0
	for i := 1; i < len(m.lines) && i < most; i++ {
		l := strings.TrimRight(string(m.lines[i]), " \n")
		if l == mark || l == "..." && lang == "yaml" {
			m.b.title = title
			if others == 0 {
				m.at = i + 1
				return
			}
			m.err = m.emit(part{kind: KindCode, lang: lang}, i+1, 0)
			return
		}
		if key, value, ok := strings.Cut(l, equals); ok && strings.TrimRight(key, " ") == "title" && title == "" {
			title = strings.Trim(strings.TrimSpace(value), `"'`)
		} else if l != "" {
			others++
		}
	}
}

// tableAt reports a header row followed by a delimiter row.
func (m *markdown) tableAt(i int) bool {
	return i+1 < len(m.lines) && strings.Contains(string(m.lines[i]), "|") && delimiterRow(m.lines[i+1])
}

func delimiterRow(l line) bool {
	if !strings.Contains(string(l), "|") || !strings.Contains(string(l), "-") {
		return false
	}
	return strings.Trim(string(l), "|:- \t\n") == ""
}

// fenceMark is the run of ` or ~ that opens a fence, or "".
func fenceMark(l line) string {
	t := strings.TrimLeft(string(l), " \t")
	for _, c := range []string{"`", "~"} {
		run := len(t) - len(strings.TrimLeft(t, c))
		if run < 3 || c == "`" && strings.Contains(t[run:], "`") {
			continue
		}
		return t[:run]
	}
	return ""
}

func closesFence(l line, mark string) bool {
	t := strings.TrimSpace(string(l))
	return len(t) >= len(mark) && strings.Trim(t, mark[:1]) == ""
}

func atxLevel(l line) int {
	if l.indent() > 3 {
		return 0
	}
	t := strings.TrimLeft(string(l), " ")
	level := len(t) - len(strings.TrimLeft(t, "#"))
	if level < 1 || level > 6 || level < len(t) && t[level] != ' ' && t[level] != '\t' && t[level] != '\n' {
		return 0
	}
	if strings.Trim(t, "# \t\n") == "" { // an empty heading is no heading
		return 0
	}
	return level
}

// setextLevel is 1 for an underline of =, 2 for one of -.
func setextLevel(l line) int {
	t := strings.TrimSpace(string(l))
	switch {
	case t == "" || l.indent() > 3:
		return 0
	case strings.Trim(t, "=") == "":
		return 1
	case strings.Trim(t, "-") == "":
		return 2
	}
	return 0
}

// thematic reports a rule such as *** or - - -.
func thematic(l line) bool {
	marks, mark := 0, ' '
	for _, r := range l {
		switch {
		case unicode.IsSpace(r):
		case marks > 0 && r != mark, r != '*' && r != '-' && r != '_':
			return false
		default:
			mark = r
			marks++
		}
	}
	return marks >= 3
}

// thematicStart reports a line that cannot be a heading's text: a rule, a quote or a comment.
func thematicStart(l line) bool {
	t := strings.TrimLeft(string(l), " ")
	return thematic(l) || strings.HasPrefix(t, ">") || strings.HasPrefix(t, "<!--")
}

// listMark reports a line that begins a list item.
func listMark(l line) bool {
	t := strings.TrimLeft(string(l), " \t")
	if thematic(l) {
		return false
	}
	if len(t) >= 2 && strings.IndexByte("-*+", t[0]) >= 0 {
		return t[1] == ' ' || t[1] == '\t'
	}
	digits := 0
	for digits < len(t) && digits < 9 && t[digits] >= '0' && t[digits] <= '9' {
		digits++
	}
	return digits > 0 && digits+1 < len(t) && (t[digits] == '.' || t[digits] == ')') && t[digits+1] == ' '
}
