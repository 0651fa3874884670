package pdf

import (
	"bytes"
	"errors"
	"strings"

	"github.com/ledongthuc/pdf"
)

// errLight sends a file on to PDFium.
var errLight = errors.New("the light engine cannot read the file")

// Light reads a file with the pure Go engine and gives its pages when the gate has no doubt in any of
// them. ok is false when PDFium must read the file. It may overflow the stack or never end: see doc.
func Light(data []byte, most int) (pages []Page, title string, ok bool) {
	r, err := openLight(data)
	if err != nil {
		return nil, "", false
	}
	leaves, err := lightPages(r, most)
	if err != nil {
		return nil, "", false
	}
	g := newGate()
	for i, leaf := range leaves {
		text, err := lightText(leaf)
		if err != nil || g.doubts(leaf, text) {
			return nil, "", false
		}
		pages = append(pages, lightPage(i+1, text))
	}
	if g.silent() || r.NumPage() != len(pages) {
		return nil, "", false
	}
	return pages, lightTitle(r), true
}

func openLight(data []byte) (r *pdf.Reader, err error) {
	defer func() {
		if recover() != nil { // the library reports broken objects by panicking
			err = errLight
		}
	}()
	data = trimmed(data)
	return pdf.NewReader(bytes.NewReader(data), int64(len(data)))
}

// trimmed gives the library what it insists on: the header at byte 0 in a form it knows, and the end
// mark last. Real files have junk around both, and newer version numbers.
func trimmed(data []byte) []byte {
	const headWindow, tailWindow = 1024, 4096
	header := []byte("%PDF-1.7\n")
	at := bytes.Index(data[:min(len(data), headWindow)], []byte("%PDF-"))
	if at < 0 || len(data)-at < len(header) {
		return data
	}
	out := bytes.Clone(data[at:])
	copy(out, header)
	tail := max(0, len(out)-tailWindow)
	if end := bytes.LastIndex(out[tail:], []byte("%%EOF")); end >= 0 {
		return out[:tail+end+len("%%EOF")]
	}
	if bytes.Contains(out[tail:], []byte("startxref")) {
		return append(bytes.TrimRight(out, "\x00\r\n\t "), "\n%%EOF"...)
	}
	return out
}

func lightTitle(r *pdf.Reader) (title string) {
	defer func() {
		if recover() != nil {
			title = ""
		}
	}()
	const most = 500
	if title = r.Trailer().Key("Info").Key("Title").Text(); len(title) > most {
		return ""
	}
	return strings.ToValidUTF8(title, "")
}

// lightPages walks the page tree once. Counts in the file are not trusted: a tree that is too deep or
// too large, as one that contains itself is, is refused.
func lightPages(r *pdf.Reader, most int) (out []pdf.Page, err error) {
	defer func() {
		if recover() != nil {
			err = errLight
		}
	}()
	w := &treeWalk{most: most}
	if err := w.node(r.Trailer().Key("Root").Key("Pages"), 0); err != nil {
		return nil, err
	}
	return w.pages, nil
}

type treeWalk struct {
	most  int
	nodes int
	pages []pdf.Page
}

func (w *treeWalk) node(v pdf.Value, depth int) error {
	const deepest = 60
	if w.nodes++; depth > deepest || w.nodes > 4*w.most || len(w.pages) == w.most {
		return errLight
	}
	kids := v.Key("Kids")
	if kids.Kind() != pdf.Array {
		if v.Kind() == pdf.Dict {
			w.pages = append(w.pages, pdf.Page{V: v})
		}
		return nil
	}
	for i := range kids.Len() {
		if err := w.node(kids.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// lightText gives the text of a page. Fonts are looked up anew for each page: two pages may give one
// name to different fonts.
func lightText(p pdf.Page) (text string, err error) {
	defer func() {
		if recover() != nil {
			err = errLight
		}
	}()
	return p.GetPlainText(nil)
}

func lightPage(number int, text string) Page {
	p := Page{Number: number, Bytes: len(text)}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			p.Lines = append(p.Lines, Line{Text: line})
		}
	}
	return p
}
