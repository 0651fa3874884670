package parse

import (
	"bytes"
	"context"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

func htmlFormat() format {
	return format{
		name:       "html",
		mediaTypes: []string{"text/html", "application/xhtml+xml"},
		extensions: []string{".html", ".htm", ".xhtml"},
		strong:     true,
		maxBytes:   func(l Limits) int { return l.MarkupFile },
		sniff:      sniffHTML,
		charset:    pageCharset,
		parse:      parseHTML,
	}
}

// sniffHTML wants the document type or the root element, behind an XML declaration also further down.
func sniffHTML(data []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(data[:min(len(data), 1024)]))
	if bytes.HasPrefix(head, []byte("<?xml")) || bytes.HasPrefix(head, []byte("<!--")) {
		return bytes.Contains(head, []byte("<!doctype html")) || bytes.Contains(head, []byte("<html"))
	}
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

// pageCharset is what the page declares, in its head or, as XHTML, in its XML declaration.
func pageCharset(data []byte) string {
	if declared := metaCharset(data); declared != "" {
		return declared
	}
	return xmlCharset(data)
}

// metaCharset finds the charset that the head declares in its first kilobyte.
func metaCharset(data []byte) string {
	pattern := regexp.MustCompile(`(?i)<meta[^>]{1,200}charset\s*=\s*["']?\s*([a-z0-9_:.-]{1,40})`)
	if found := pattern.FindSubmatch(data[:min(len(data), 1024)]); found != nil {
		return string(found[1])
	}
	return ""
}

// parseHTML walks the tree. The parser refuses more than 512 open elements; such a page is read from
// its tokens, without lists and tables.
func parseHTML(ctx context.Context, s source, b *builder) error {
	return parsePage(ctx, s, b, nil)
}

// parsePage is parseHTML for a page of a book: anchor, which may be nil, is told each id before what
// carries it is read.
func parsePage(ctx context.Context, s source, b *builder, anchor func(id string)) error {
	s.text = expandEmpty(s.text)
	root, err := html.Parse(strings.NewReader(s.text))
	if err != nil {
		b.warn("elements are nested too deeply: read without structure of lists and tables")
		return flatHTML(ctx, s, b)
	}
	w := &htmlWalker{ctx: ctx, b: b, anchor: anchor}
	w.children(root)
	w.flush()
	if b.title == "" {
		b.title = w.firstHeading
	}
	return w.err
}

// expandEmpty gives empty elements of XHTML an end tag: HTML takes what follows <title/> or <a/> as
// their content.
func expandEmpty(text string) string {
	head := text[:min(len(text), 1024)]
	if !strings.HasPrefix(strings.TrimSpace(head), "<?xml") && !strings.Contains(head, "http://www.w3.org/1999/xhtml") {
		return text
	}
	empty := regexp.MustCompile(`<(title|script|style|textarea|iframe|noscript|a|p|div|span|td|th|li|i|b|em|strong|h[1-6])(\s[^<>]{0,1000})?/>`)
	return empty.ReplaceAllString(text, "<$1$2></$1>")
}

// htmlWalker turns a tree into parts. Inline text gathers until a block element begins or ends.
type htmlWalker struct {
	ctx          context.Context
	b            *builder
	inline       strings.Builder
	firstHeading string
	anchor       func(id string) // see parsePage
	err          error
}

func (w *htmlWalker) children(n *html.Node) {
	for c := n.FirstChild; c != nil && w.err == nil; c = c.NextSibling {
		w.node(c)
	}
}

func (w *htmlWalker) node(n *html.Node) {
	if n.Type == html.TextNode {
		inlineText(&w.inline, n.Data)
		return
	}
	if n.Type != html.ElementNode {
		w.children(n)
		return
	}
	if w.anchor != nil {
		if id := attribute(n, "id"); id != "" {
			w.flush()
			w.anchor(id)
		}
	}
	switch name := n.Data; {
	case gone(n):
	case name == "title":
		if w.b.title == "" {
			w.b.title = collapse(textOf(n))
		}
	case headingLevel(name) > 0:
		w.heading(n)
	case name == "ul" || name == "ol":
		w.part(part{kind: KindList, text: listText(n)})
	case name == "table" && !layoutTable(n):
		w.table(n)
	case name == "pre":
		w.part(part{kind: KindCode, text: rawText(n), lang: codeLanguage(n)})
	case name == "br":
		w.inline.WriteByte('\n')
	case name == "img":
		inlineText(&w.inline, " "+attribute(n, "alt")+" ")
	case blockElement(name):
		w.flush()
		w.children(n)
		w.flush()
	default:
		w.children(n)
	}
}

func (w *htmlWalker) heading(n *html.Node) {
	text := collapse(textOf(n))
	if w.firstHeading == "" {
		w.firstHeading = text
	}
	w.part(part{kind: KindHeading, level: headingLevel(n.Data), text: text})
}

func (w *htmlWalker) table(n *html.Node) {
	w.part(part{kind: KindParagraph, text: captionOf(n)})
	text, header, err := tableText(n, w.b.limits)
	if w.err == nil {
		w.err = err
	}
	w.part(part{kind: KindTable, text: text, header: header})
}

func (w *htmlWalker) part(p part) {
	w.flush()
	if w.err == nil {
		w.err = w.b.add(p)
	}
}

func (w *htmlWalker) flush() {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	text := inlineLines(w.inline.String())
	w.inline.Reset()
	if text != "" && w.err == nil {
		w.err = w.b.add(part{kind: KindParagraph, text: text})
	}
}

// inlineText appends text with its line ends as spaces: only <br> breaks a line.
func inlineText(out *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c == '\n' || c == '\r' || c == '\t' {
			out.WriteByte(' ')
		} else {
			out.WriteByte(c)
		}
	}
}

func inlineLines(text string) string {
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, l := range lines {
		if l = collapse(l); l != "" {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// textOf is the inline text of a subtree; block elements and breaks become spaces.
func textOf(n *html.Node) string {
	var out strings.Builder
	gatherText(&out, n, func(*html.Node) bool { return false })
	return out.String()
}

func gatherText(out *strings.Builder, n *html.Node, skip func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			inlineText(out, c.Data)
		case c.Type != html.ElementNode, gone(c), skip(c):
		default:
			apart := blockElement(c.Data) || c.Data == "br" || c.Data == "td" || c.Data == "th"
			if apart {
				out.WriteByte(' ')
			}
			if c.Data == "img" {
				inlineText(out, attribute(c, "alt"))
			}
			gatherText(out, c, skip)
			if apart {
				out.WriteByte(' ')
			}
		}
	}
}

// rawText keeps line ends and spaces, for preformatted text.
func rawText(n *html.Node) string {
	var out strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode:
				out.WriteString(c.Data)
			case c.Type == html.ElementNode && c.Data == "br":
				out.WriteByte('\n')
			case c.Type == html.ElementNode && !gone(c):
				walk(c)
			}
		}
	}
	walk(n)
	return out.String()
}

// listText gives a line an item, nested items indented by two spaces a level.
func listText(n *html.Node) string {
	var out strings.Builder
	listItems(&out, n, 0)
	return out.String()
}

func listItems(out *strings.Builder, list *html.Node, depth int) {
	nested := func(n *html.Node) bool { return n.Data == "ul" || n.Data == "ol" }
	number := 0
	for c := list.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type != html.ElementNode || gone(c):
			continue
		case nested(c):
			listItems(out, c, depth+1)
			continue
		}
		number++
		var text strings.Builder
		gatherText(&text, c, nested)
		if line := collapse(text.String()); line != "" {
			out.WriteString(strings.Repeat("  ", min(depth, 10)))
			out.WriteString(marker(list.Data == "ol", number))
			out.WriteString(line)
			out.WriteByte('\n')
		}
		nestedLists(out, c, depth+1)
	}
}

// nestedLists finds the lists inside an item, however deep they stand in other elements.
func nestedLists(out *strings.Builder, n *html.Node, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type != html.ElementNode || gone(c):
		case c.Data == "ul" || c.Data == "ol":
			listItems(out, c, depth)
		default:
			nestedLists(out, c, depth)
		}
	}
}
