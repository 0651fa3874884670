package parse

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// layoutTable reports a table that arranges a page rather than data.
func layoutTable(table *html.Node) bool {
	found := false
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil && !found; c = c.NextSibling {
			if c.Type == html.ElementNode {
				found = c.Data == "table" || c.Data == "pre" || headingLevel(c.Data) > 0
				walk(c)
			}
		}
	}
	walk(table)
	return found
}

func captionOf(table *html.Node) string {
	for c := table.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && c.Data == "caption" {
			return collapse(textOf(c))
		}
	}
	return ""
}

// tableText renders rows as "a | b", cells that span repeated. The header is the rows of thead, or a
// first row of th cells.
func tableText(table *html.Node, l Limits) (text, header string, err error) {
	grid := spanGrid{columns: l.TableColumns, open: map[int]spanCell{}}
	var rows []string
	headerRows, size := 0, 0
	for _, tr := range tableRows(table) {
		cells, allHeads := grid.row(tr)
		row := renderRow(cells)
		if row == "" {
			continue
		}
		if size += len(row); size > l.TextBytes {
			return "", "", limitError("a table's text", l.TextBytes, "bytes")
		}
		if len(rows) == headerRows && (tr.Parent.Data == "thead" || allHeads && len(rows) == 0) {
			headerRows++
		}
		rows = append(rows, row)
	}
	if headerRows > 0 && headerRows < len(rows) {
		header = strings.Join(rows[:headerRows], "\n") + "\n"
	}
	return strings.Join(rows, "\n"), header, nil
}

// repeated is what a cell shows where it reaches into further rows or columns: enough to read the row.
func repeated(text string) string { return clip(text, 200) }

func tableRows(n *html.Node) []*html.Node {
	var out []*html.Node
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || gone(c) {
			continue
		}
		if c.Data == "tr" {
			out = append(out, c)
		} else if c.Data == "thead" || c.Data == "tbody" || c.Data == "tfoot" {
			out = append(out, tableRows(c)...)
		}
	}
	return out
}

type spanCell struct {
	text string
	rows int // still to fill
}

// spanGrid lays out cells with rowspan and colspan, at most columns wide.
type spanGrid struct {
	columns int
	open    map[int]spanCell
}

func (g *spanGrid) row(tr *html.Node) (cells []string, allHeads bool) {
	allHeads = true
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || c.Data != "td" && c.Data != "th" || gone(c) {
			continue
		}
		allHeads = allHeads && c.Data == "th"
		cells = g.carried(cells)
		cell := spanCell{text: collapse(textOf(c)), rows: span(c, "rowspan", 1000) - 1}
		for i := range min(span(c, "colspan", g.columns), max(1, g.columns-len(cells))) {
			if i == 1 {
				cell.text = repeated(cell.text)
			}
			if cell.rows > 0 && len(cells) < g.columns {
				g.open[len(cells)] = cell
			}
			cells = append(cells, cell.text)
		}
	}
	return g.carried(cells), allHeads && len(cells) > 0
}

// carried appends the cells that reach down from rows above.
func (g *spanGrid) carried(cells []string) []string {
	for {
		cell, ok := g.open[len(cells)]
		if !ok {
			return cells
		}
		if cell.rows--; cell.rows == 0 {
			delete(g.open, len(cells))
		} else {
			g.open[len(cells)] = cell
		}
		cells = append(cells, repeated(cell.text))
	}
}

func span(n *html.Node, name string, most int) int {
	v, err := strconv.Atoi(strings.TrimSpace(attribute(n, name)))
	if err != nil || v < 1 {
		return 1
	}
	return min(v, most)
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func marker(ordered bool, number int) string {
	if ordered {
		return strconv.Itoa(number) + ". "
	}
	return "- "
}

func codeLanguage(pre *html.Node) string {
	nodes := []*html.Node{pre}
	if c := pre.FirstChild; c != nil && c.Type == html.ElementNode && c.Data == "code" {
		nodes = append(nodes, c)
	}
	for _, n := range nodes {
		for _, class := range strings.Fields(attribute(n, "class")) {
			for _, prefix := range []string{"language-", "lang-"} {
				if lang, ok := strings.CutPrefix(class, prefix); ok {
					return clip(lang, 30)
				}
			}
		}
	}
	return ""
}

func headingLevel(name string) int {
	if len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6' {
		return int(name[1] - '0')
	}
	return 0
}

// dropped are elements whose content is no text of the page.
func dropped(name string) bool {
	switch name {
	case "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select", "audio", "video":
		return true
	}
	return false
}

// gone reports an element that the page does not show.
func gone(n *html.Node) bool {
	if dropped(n.Data) {
		return true
	}
	for _, a := range n.Attr {
		style := ""
		if a.Key == "style" {
			style = strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
		}
		switch {
		case a.Key == "hidden" && a.Val != "until-found", a.Key == "aria-hidden" && strings.EqualFold(a.Val, "true"),
			strings.Contains(style, "display:none"), strings.Contains(style, "visibility:hidden"):
			return true
		}
	}
	return false
}

func blockElement(name string) bool {
	switch name {
	case "html", "head", "body", "div", "p", "section", "article", "header", "footer", "main", "aside", "nav",
		"address", "blockquote", "figure", "figcaption", "dl", "dt", "dd", "form", "fieldset", "details", "summary",
		"hr", "center", "table", "tbody", "thead", "tfoot", "tr", "td", "th", "li", "ul", "ol", "pre", "caption":
		return true
	}
	return headingLevel(name) > 0
}
