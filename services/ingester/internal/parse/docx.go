package parse

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
)

func docxFormat() format {
	return format{
		name:       "docx",
		mediaTypes: []string{"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		extensions: []string{".docx"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff: func(data []byte) bool { // entry names stand uncompressed in the file
			return isZip(data) && bytes.Contains(data, []byte("word/document.xml"))
		},
		parse: parseDOCX,
	}
}

// parseDOCX reads the body, then the footnotes. Names are matched without their namespace: strict and
// transitional files differ only there.
func parseDOCX(ctx context.Context, s source, b *builder) error {
	archive, err := openArchive(s.data, s.limits)
	if err != nil {
		return err
	}
	styles, err := readStyles(archive, s.limits)
	if err != nil {
		return err
	}
	if b.title, err = coreTitle(archive, s.limits); err != nil {
		return err
	}
	for _, name := range []string{"word/document.xml", "word/footnotes.xml", "word/endnotes.xml"} {
		body, err := archive.open(name)
		if errors.Is(err, errNoEntry) {
			if name == "word/document.xml" {
				return damaged("the file holds no word/document.xml")
			}
			continue
		}
		if err != nil {
			return err
		}
		w := &wordReader{b: b, styles: styles, limits: s.limits}
		if err := walkXML(ctx, body, s.limits, w.start, w.end, w.text); err != nil {
			return err
		}
		if err := w.flushRun(); err != nil {
			return err
		}
	}
	return nil
}

const xmlDepth = 1000

// walkXML runs a token loop with a depth limit. Entities other than XML's own are an error, so nothing
// expands and nothing is fetched.
func walkXML(ctx context.Context, in io.Reader, l Limits, start func(xml.StartElement) error, end func(string) error, text func([]byte)) error {
	decoder := xml.NewDecoder(in)
	for depth, count := 0, 0; ; count++ {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			if depth > 0 {
				return damaged("the XML ends too early")
			}
			return nil
		}
		if err != nil {
			return xmlError(err)
		}
		if count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > l.depth(xmlDepth) {
				return limitError("nesting of XML", l.depth(xmlDepth), "levels")
			}
			err = start(t)
		case xml.EndElement:
			if depth--; depth < 0 {
				return damaged("the XML closes an element that is not open")
			}
			err = end(t.Name.Local)
		case xml.CharData:
			text(t)
		}
		if err != nil {
			return err
		}
	}
}

// xmlError keeps a limit hit while inflating and says damaged to the rest.
func xmlError(err error) error {
	var limit *partLimitError
	if errors.As(err, &limit) {
		return limit.err
	}
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return damaged("the XML is broken at line %d", syntax.Line)
	}
	return damaged("the archive or its XML is broken")
}

func local(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(text string, standard int) int {
	if v, err := strconv.Atoi(text); err == nil {
		return v
	}
	return standard
}

// coreTitle is the title of the document's properties, "" without one.
func coreTitle(archive *archive, l Limits) (string, error) {
	in, err := archive.open("docProps/core.xml")
	if errors.Is(err, errNoEntry) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	title, inside := strings.Builder{}, false
	err = walkXML(context.Background(), in, l,
		func(e xml.StartElement) error { inside = e.Name.Local == "title"; return nil },
		func(string) error { inside = false; return nil },
		func(t []byte) {
			if inside && title.Len() < 1000 {
				title.Write(t)
			}
		})
	return collapse(title.String()), err
}
