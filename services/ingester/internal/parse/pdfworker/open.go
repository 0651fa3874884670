package pdfworker

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"

	"github.com/weir-project/weir/pkg/messages"
)

// document is an open file.
type document struct {
	reader *pdf.Reader
}

// open reads the cross-reference table. Errors are *messages.Error.
func open(data []byte) (*document, error) {
	data = trimmed(data)
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case err == nil:
		return &document{reader: r}, nil
	case errors.Is(err, pdf.ErrInvalidPassword):
		return nil, messages.Errorf(messages.CodePasswordRequired, "the PDF needs a password")
	case strings.Contains(err.Error(), "encryption") || strings.Contains(err.Error(), "unsupported PDF"):
		return nil, messages.Errorf(messages.CodePasswordRequired,
			"the PDF is encrypted in a way that is not supported; save it without protection")
	}
	return nil, messages.Errorf(messages.CodeDamagedDocument, "the PDF cannot be opened: its structure is damaged")
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

// title is the one of the document's properties; "" when there is none or it cannot be read.
func (d *document) title() (title string) {
	defer func() {
		if recover() != nil { // the library reports broken objects by panicking
			title = ""
		}
	}()
	title = d.reader.Trailer().Key("Info").Key("Title").Text()
	const most = 500
	if len(title) > most {
		return ""
	}
	return strings.ToValidUTF8(title, "")
}

// page is one leaf of the page tree with the resources it inherits.
type page struct {
	value     pdf.Value
	resources pdf.Value
}

// pages walks the page tree once. Counts in the file are not trusted: a tree that is too deep or too
// large, as one that contains itself is, is refused.
func (d *document) pages(most int) (out []page, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = messages.Errorf(messages.CodeDamagedDocument, "the page tree of the PDF is damaged")
		}
	}()
	w := &treeWalk{most: most}
	root := d.reader.Trailer().Key("Root").Key("Pages")
	if err := w.node(root, pdf.Value{}, 0); err != nil {
		return nil, err
	}
	if len(w.pages) == 0 {
		return nil, messages.Errorf(messages.CodeDamagedDocument, "the PDF has no pages")
	}
	return w.pages, nil
}

type treeWalk struct {
	most  int
	nodes int
	pages []page
}

func (w *treeWalk) node(v, resources pdf.Value, depth int) error {
	const deepest = 60
	if depth > deepest {
		return messages.Errorf(messages.CodeDamagedDocument, "the page tree of the PDF is over %d levels deep or contains itself", deepest)
	}
	if w.nodes++; w.nodes > 4*w.most {
		return messages.Errorf(messages.CodeParseLimit, "the page tree is over the limit of %d nodes", 4*w.most)
	}
	if own := v.Key("Resources"); own.Kind() == pdf.Dict {
		resources = own
	}
	kids := v.Key("Kids")
	if kids.Kind() != pdf.Array {
		if v.Kind() != pdf.Dict {
			return nil
		}
		if len(w.pages) == w.most {
			return messages.Errorf(messages.CodeParseLimit, "the PDF is over the limit of %d pages", w.most)
		}
		w.pages = append(w.pages, page{value: v, resources: resources})
		return nil
	}
	for i := range kids.Len() {
		if err := w.node(kids.Index(i), resources, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// fault words what the library panicked with, without any of the document's text.
func fault(x any) string {
	said := fmt.Sprint(x)
	for _, known := range []struct{ sign, plain string }{
		{"filter", "a stream uses a filter that is not supported"},
		{"pred", "a stream uses a predictor that is not supported"},
		{"zlib", "a compressed stream is damaged"},
		{"flate", "a compressed stream is damaged"},
	} {
		if strings.Contains(said, known.sign) {
			return known.plain
		}
	}
	return "its content is damaged or of a kind that is not supported"
}
