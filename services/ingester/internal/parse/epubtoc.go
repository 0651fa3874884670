package parse

import (
	"encoding/xml"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// tocEntry is one line of a table of contents.
type tocEntry struct {
	depth       int // from 1
	title, href string
}

// contents reads the table of contents; a book without one has no chapters.
func (r *bookReader) contents() error {
	r.chapters = map[string]string{}
	if r.toc == "" {
		return nil
	}
	data, err := r.archive.content(r.toc)
	if err != nil {
		return ignoreMissing(err)
	}
	text, err := readable(data, xmlCharset(data))
	if err != nil {
		r.b.warn("the table of contents is no text")
		return nil
	}
	var entries []tocEntry
	if strings.HasSuffix(r.toc, ".ncx") || strings.Contains(text.text[:min(len(text.text), 1024)], "<ncx") {
		if entries, err = r.ncx(); err != nil {
			return err
		}
	} else {
		entries = navEntries(text.text)
	}
	dir := path.Dir(r.toc)
	for _, e := range topEntries(entries) {
		key := resolveEntry(dir, e.href)
		if _, fragment, ok := strings.Cut(e.href, "#"); ok && fragment != "" {
			key += "#" + fragment
		}
		if _, known := r.chapters[key]; !known {
			r.chapters[key] = e.title
		}
	}
	return nil
}

// topEntries are the entries of the highest level that has more than one: a single entry above all others
// is the book.
func topEntries(entries []tocEntry) []tocEntry {
	for depth := 1; depth < 4; depth++ {
		var out []tocEntry
		for _, e := range entries {
			if e.depth == depth {
				out = append(out, e)
			}
		}
		if len(out) > 1 || len(out) == len(entries) {
			return out
		}
	}
	return entries
}

// ncx reads the table of contents of EPUB 2.
func (r *bookReader) ncx() ([]tocEntry, error) {
	var out []tocEntry
	var open []int // entries that are open
	label := false
	err := r.archive.walk(r.ctx, r.toc, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "navPoint":
			open = append(open, len(out))
			out = append(out, tocEntry{depth: len(open)})
		case "navLabel":
			label = true
		case "content":
			if n := len(open); n > 0 && out[open[n-1]].href == "" {
				out[open[n-1]].href = local(e, "src")
			}
		}
		return nil
	}, func(name string) error {
		switch name {
		case "navPoint":
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case "navLabel":
			label = false
		}
		return nil
	}, func(t []byte) {
		if n := len(open); label && n > 0 {
			e := &out[open[n-1]]
			e.title = clip(collapse(e.title+" "+string(t)), titleBytes)
		}
	})
	return out, err
}

// navEntries reads the table of contents of EPUB 3: nested lists of links in a nav element.
func navEntries(text string) []tocEntry {
	root, err := html.Parse(strings.NewReader(expandEmpty(text)))
	if err != nil {
		return nil
	}
	var out []tocEntry
	var links func(n *html.Node, depth int)
	links = func(n *html.Node, depth int) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.Type == html.ElementNode && c.Data == "a":
				out = append(out, tocEntry{depth: depth, title: clip(collapse(textOf(c)), titleBytes), href: attribute(c, "href")})
			case c.Type == html.ElementNode && c.Data == "ol":
				links(c, depth+1)
			default:
				links(c, depth)
			}
		}
	}
	if nav := tocNode(root); nav != nil {
		links(nav, 0)
	}
	return out
}

// tocNode is the nav of type toc, or the first one.
func tocNode(root *html.Node) *html.Node {
	var first, toc *html.Node
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil && toc == nil; c = c.NextSibling {
			if c.Type == html.ElementNode && c.Data == "nav" {
				if first == nil {
					first = c
				}
				if attribute(c, "epub:type") == "toc" || attribute(c, "role") == "doc-toc" {
					toc = c
				}
			}
			walk(c)
		}
	}
	walk(root)
	if toc != nil {
		return toc
	}
	return first
}
