package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"strings"
)

func odtFormat() format {
	return odfFormat("odt", "text", parseODF)
}

func odsFormat() format {
	return odfFormat("ods", "spreadsheet", parseODF)
}

func odpFormat() format {
	return odfFormat("odp", "presentation", parseODF)
}

func odfFormat(name, kind string, parse func(context.Context, source, *builder) error) format {
	media := "application/vnd.oasis.opendocument." + kind
	return format{
		name:       name,
		mediaTypes: []string{media, media + "-template"},
		extensions: []string{"." + name, "." + name[:1] + "t" + name[2:]},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      func(data []byte) bool { return zipKind(data) == name },
		parse:      parse,
	}
}

// parseODF reads a text, a spreadsheet or a presentation: what is in content.xml says which. Deletions
// under tracked changes and comments are left out; headers and footers of pages are read once, behind
// the text.
func parseODF(ctx context.Context, s source, b *builder) error {
	a, err := openArchive(s.data, s.limits)
	if err != nil {
		return err
	}
	if err := odfProtected(ctx, a); err != nil {
		return err
	}
	if b.title, err = elementText(a, s.limits, "meta.xml", "title"); err != nil {
		return err
	}
	r := &odfReader{b: b, limits: s.limits, styles: map[string]odfStyle{}, once: map[string]bool{}}
	if err := a.walk(ctx, "styles.xml", r.styleStart, r.styleEnd, ignoreText); ignoreMissing(err) != nil {
		return err
	}
	err = a.walk(ctx, "content.xml", r.start, r.end, r.text)
	if errors.Is(err, errNoEntry) {
		return damaged("the file holds no content.xml")
	}
	if err != nil {
		return err
	}
	if len(r.hidden) > 0 {
		b.warn("hidden sheets were left out: " + clip(strings.Join(r.hidden, ", "), 400))
	}
	b.pages = r.slides
	b.move(Place{})
	return odfFurniture(ctx, a, r)
}

// odfProtected refuses files whose parts are encrypted.
func odfProtected(ctx context.Context, a *archive) error {
	protected := false
	err := a.walk(ctx, "META-INF/manifest.xml", func(e xml.StartElement) error {
		protected = protected || e.Name.Local == "encryption-data"
		return nil
	}, ignoreEnd, ignoreText)
	if protected {
		return passwordError()
	}
	return ignoreMissing(err)
}

// odfFurniture reads headers and footers out of the master pages of a text.
func odfFurniture(ctx context.Context, a *archive, r *odfReader) error {
	if r.slides > 0 || r.sheets > 0 {
		return nil
	}
	w := &odfReader{b: r.b, limits: r.limits, styles: r.styles, once: map[string]bool{}}
	r.b.path = headingPath{}
	depth := 0
	err := a.walk(ctx, "styles.xml", func(e xml.StartElement) error {
		switch e.Name.Local {
		case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
			depth++
		}
		if depth == 0 {
			return nil
		}
		return w.start(e)
	}, func(name string) error {
		if depth == 0 {
			return nil
		}
		err := w.end(name)
		switch name {
		case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
			depth--
		}
		return err
	}, func(t []byte) {
		if depth > 0 {
			w.text(t)
		}
	})
	return ignoreMissing(err)
}

// odfStyle is what a style says about structure.
type odfStyle struct {
	parent string
	hidden bool // of a sheet
}

// styleStart reads a style; content.xml holds some of its own.
func (r *odfReader) styleStart(e xml.StartElement) error {
	const most = 100_000
	switch e.Name.Local {
	case "style":
		r.style = local(e, "name")
		if len(r.styles) < most {
			r.styles[r.style] = odfStyle{parent: local(e, "parent-style-name")}
		}
	case "table-properties":
		if s, ok := r.styles[r.style]; ok && local(e, "display") == "false" {
			s.hidden = true
			r.styles[r.style] = s
		}
	}
	return nil
}

func (r *odfReader) styleEnd(name string) error {
	if name == "style" {
		r.style = ""
	}
	return nil
}

// odfRole is what a paragraph style is for, looked up through its parents: "title", "code" or "".
func (r *odfReader) role(style string) string {
	for range 20 { // parents may loop
		switch strings.ToLower(strings.ReplaceAll(style, "_20_", " ")) {
		case "title":
			return "title"
		case "preformatted text", "source code", "code":
			return "code"
		}
		s, ok := r.styles[style]
		if !ok || s.parent == "" {
			return ""
		}
		style = s.parent
	}
	return ""
}
