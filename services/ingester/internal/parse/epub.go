package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

func epubFormat() format {
	return format{
		name:       "epub",
		mediaTypes: []string{"application/epub+zip"},
		extensions: []string{".epub"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      func(data []byte) bool { return zipKind(data) == "epub" },
		parse:      parseEPUB,
	}
}

// parseEPUB reads the documents of the spine in order. The place of a block is the chapter: the entry of
// the table of contents, of its highest level, that stands last before it.
func parseEPUB(ctx context.Context, s source, b *builder) error {
	a, err := openArchive(s.data, s.limits)
	if err != nil {
		return err
	}
	book := &bookReader{ctx: ctx, archive: a, b: b, source: s}
	if err := book.open(); err != nil {
		return err
	}
	title := b.title
	if err := book.contents(); err != nil {
		return err
	}
	chapter := ""
	for _, entry := range book.spine {
		if chapter, err = book.page(entry, chapter); err != nil {
			return err
		}
	}
	b.move(Place{})
	b.title = title
	return nil
}

type bookReader struct {
	ctx      context.Context
	archive  *archive
	b        *builder
	source   source
	items    map[string]bookItem // of the manifest, by id
	spine    []string            // entries in reading order
	toc      string              // entry of the table of contents
	chapters map[string]string   // title by entry, or by entry#id
}

type bookItem struct{ entry, media, properties string }

// open reads container and package: what the book consists of, and its title.
func (r *bookReader) open() error {
	root := ""
	err := r.archive.walk(r.ctx, "META-INF/container.xml", func(e xml.StartElement) error {
		if e.Name.Local == "rootfile" && root == "" {
			root = local(e, "full-path")
		}
		return nil
	}, ignoreEnd, ignoreText)
	if err != nil {
		return bookError(err, "META-INF/container.xml")
	}
	if r.b.title, err = elementText(r.archive, r.archive.limits, root, "title"); err != nil {
		return err
	}
	r.items = map[string]bookItem{}
	dir, seen := path.Dir(root), map[string]bool{}
	return bookError(r.archive.walk(r.ctx, root, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "item":
			item := bookItem{resolveEntry(dir, local(e, "href")), local(e, "media-type"), local(e, "properties")}
			r.items[local(e, "id")] = item
			if strings.Contains(item.properties, "nav") || r.toc == "" && strings.HasSuffix(item.media, "ncx+xml") {
				r.toc = item.entry
			}
		case "itemref":
			if item, ok := r.items[local(e, "idref")]; ok && !seen[item.entry] {
				seen[item.entry] = true
				r.spine = append(r.spine, item.entry)
			}
		}
		return nil
	}, ignoreEnd, ignoreText), clip(root, 80))
}

func bookError(err error, entry string) error {
	if errors.Is(err, errNoEntry) {
		return damaged("the book holds no %s", entry)
	}
	return err
}

// resolveEntry turns a reference into an entry's name, without its fragment.
func resolveEntry(dir, href string) string {
	href, _, _ = strings.Cut(href, "#")
	if plain, err := url.PathUnescape(href); err == nil {
		href = plain
	}
	return path.Join(dir, href)
}

// page reads one document of the spine under the chapter that is open, and returns the one open behind it.
func (r *bookReader) page(entry, chapter string) (string, error) {
	data, err := r.archive.content(entry)
	if errors.Is(err, errNoEntry) {
		r.b.warn(fmt.Sprintf("part %s of the book is missing", clip(entry, 80)))
		return chapter, nil
	}
	if err != nil {
		return chapter, err
	}
	text, err := readable(data, xmlCharset(data))
	if err != nil {
		r.b.warn(fmt.Sprintf("part %s of the book is no text", clip(entry, 80)))
		return chapter, nil
	}
	if title, ok := r.chapters[entry]; ok {
		chapter = title
	}
	r.b.move(Place{Chapter: chapter})
	s := r.source
	s.text = text.text
	err = parsePage(r.ctx, s, r.b, func(id string) {
		if title, ok := r.chapters[entry+"#"+id]; ok {
			chapter = title
			r.b.move(Place{Chapter: chapter})
		}
	})
	return chapter, err
}
