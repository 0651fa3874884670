package parse

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
)

func xmlFormat() format {
	return format{
		name:       "xml",
		mediaTypes: []string{"application/xml", "text/xml", "image/svg+xml", "application/rss+xml", "application/atom+xml"},
		extensions: []string{".xml", ".rss", ".atom", ".svg", ".xsd", ".xsl", ".xslt", ".wsdl", ".opml", ".kml", ".gpx", ".plist", ".resx", ".xlf", ".xliff", ".tmx", ".dita"},
		strong:     true,
		maxBytes:   func(l Limits) int { return l.MarkupFile },
		sniff: func(data []byte) bool {
			return bytes.HasPrefix(bytes.TrimSpace(data[:min(len(data), 512)]), []byte("<?xml"))
		},
		charset: xmlCharset,
		parse:   parseXML,
	}
}

// xmlCharset is the encoding of an XML declaration, "" without one.
func xmlCharset(data []byte) string {
	pattern := regexp.MustCompile(`^\s*<\?xml[^>]{1,200}encoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})`)
	if found := pattern.FindSubmatch(trimUTF8Mark(data[:min(len(data), 512)])); found != nil {
		return string(found[1])
	}
	return ""
}

// parseXML gives an element that holds text and no elements one line, "path: text", and an attribute
// "path@name: value". Text between elements is running text, its inline elements included. Each child
// of the root is a block, with the lines of the file that it takes.
func parseXML(ctx context.Context, s source, b *builder) error {
	r := &xmlReader{b: b, limits: s.limits, line: 1}
	decoder := xml.NewDecoder(strings.NewReader(s.text))
	decoder.Strict, decoder.Entity = false, xml.HTMLEntity
	decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // decoded already
	at := int64(0)
	for count := 0; ; count++ {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return xmlError(err)
		}
		if count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next := decoder.InputOffset()
		r.next = r.line + strings.Count(s.text[at:min(next, int64(len(s.text)))], "\n")
		at = next
		if err := r.token(token); err != nil {
			return err
		}
		r.line = r.next
	}
	if len(r.stack) > 0 {
		return damaged("the XML ends inside element %s", clip(r.stack[len(r.stack)-1].name, 40))
	}
	if r.elements == 0 {
		return damaged("the XML holds no element")
	}
	return r.flush()
}

type xmlElement struct {
	name string
	said bool // holds words of its own
	text strings.Builder
	kids int
}

type xmlReader struct {
	b          *builder
	limits     Limits
	stack      []*xmlElement
	lines      []string // of the block
	bytes      int
	from       int // line where the block begins
	line, next int // where the token begins and ends
	elements   int
}

func (r *xmlReader) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return r.start(t)
	case xml.EndElement:
		return r.end(t)
	case xml.CharData:
		if n := len(r.stack); n > 0 {
			e := r.stack[n-1]
			e.text.Write(t)
			e.said = e.said || hasWord(string(t))
		}
	}
	return nil
}

func (r *xmlReader) start(t xml.StartElement) error {
	if len(r.stack) >= r.limits.depth(xmlDepth) {
		return limitError("nesting of XML", r.limits.depth(xmlDepth), "levels")
	}
	r.elements++
	if n := len(r.stack); n > 0 {
		r.stack[n-1].kids++
		if n == 1 {
			r.from = r.line
		}
	}
	r.stack = append(r.stack, &xmlElement{name: t.Name.Local})
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || a.Name.Space == "xsi" || !hasWord(a.Value) {
			continue
		}
		if err := r.say(r.path()+"@"+a.Name.Local, a.Value); err != nil {
			return err
		}
	}
	return nil
}

// path names the element from below the root.
func (r *xmlReader) path() string {
	names := make([]string, 0, len(r.stack))
	for _, e := range r.stack[min(1, len(r.stack)-1):] {
		names = append(names, e.name)
	}
	const most = 12 // levels are enough to tell what it is
	return strings.Join(names[max(0, len(names)-most):], ".")
}

func (r *xmlReader) say(path, value string) error {
	line := path + ": " + collapse(value)
	if path == "" {
		line = collapse(value)
	}
	if r.bytes += len(line) + 1; r.bytes > r.limits.TextBytes {
		return limitError("extracted text", r.limits.TextBytes, "bytes")
	}
	r.lines = append(r.lines, line)
	return nil
}

func (r *xmlReader) end(t xml.EndElement) error {
	n := len(r.stack)
	if n == 0 {
		return damaged("the XML closes element %s, which is not open", clip(t.Name.Local, 40))
	}
	e := r.stack[n-1]
	if e.name != t.Name.Local {
		return damaged("the XML closes element %s inside element %s", clip(t.Name.Local, 40), clip(e.name, 40))
	}
	text := e.text.String()
	if n > 1 && r.stack[n-2].said { // an inline element belongs to the text around it
		r.stack[n-2].text.WriteString(text)
	} else if hasWord(text) {
		if r.b.title == "" && n <= 3 && e.name == "title" {
			r.b.title = collapse(text)
		}
		path := r.path()
		if e.kids > 0 {
			path = ""
		}
		if err := r.say(path, text); err != nil {
			return err
		}
	}
	r.stack = r.stack[:n-1]
	if n <= 2 {
		return r.flush()
	}
	return nil
}

func (r *xmlReader) flush() error {
	lines := r.lines
	r.lines = nil
	from := r.from
	if from == 0 {
		from = r.line
	}
	return r.b.add(part{kind: KindParagraph, text: strings.Join(lines, "\n"), line: from, end: max(from, r.next)})
}
