package parse

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

var errNoEntry = errors.New("no such entry")

// archive opens zip entries under caps. It counts inflated bytes itself: declared sizes may lie.
type archive struct {
	files  map[string]*zip.File
	limits Limits
	left   int // bytes of the total cap
}

func openArchive(data []byte, l Limits) (*archive, error) {
	// Entries are counted before the directory is built: each costs far more memory than its bytes.
	if n := bytes.Count(data, []byte("PK\x01\x02")); n > l.ZipEntries {
		return nil, limitError("entries of the archive", l.ZipEntries, "files")
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // nothing is written to disk
		return nil, damaged("the archive is broken or cut short")
	}
	a := &archive{files: make(map[string]*zip.File, len(r.File)), limits: l, left: l.ZipTotal}
	for _, f := range r.File {
		if name := path.Clean(strings.ReplaceAll(f.Name, `\`, "/")); a.files[name] == nil {
			a.files[name] = f
		}
	}
	return a, nil
}

// open gives an entry's content, or errNoEntry.
func (a *archive) open(name string) (io.Reader, error) {
	f := a.files[name]
	if f == nil {
		return nil, errNoEntry
	}
	if f.Flags&1 != 0 {
		return nil, passwordError()
	}
	in, err := f.Open()
	if err != nil {
		return nil, damaged("entry %s cannot be opened", name)
	}
	return &partReader{archive: a, in: in, name: name, packed: int(f.CompressedSize64)}, nil
}

// content reads a whole entry, or gives errNoEntry.
func (a *archive) content(name string) ([]byte, error) {
	in, err := a.open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, xmlError(err)
	}
	return data, nil
}

// walk runs a token loop over an entry, or gives errNoEntry.
func (a *archive) walk(ctx context.Context, name string, start func(xml.StartElement) error, end func(string) error, text func([]byte)) error {
	in, err := a.open(name)
	if err != nil {
		return err
	}
	return walkXML(ctx, in, a.limits, start, end, text)
}

func passwordError() error {
	return messages.Errorf(messages.CodePasswordRequired, "the file is protected by a password; save it without one")
}

// partLimitError carries a limit through readers that wrap errors.
type partLimitError struct{ err error }

func (e *partLimitError) Error() string { return e.err.Error() }

type partReader struct {
	archive *archive
	in      io.ReadCloser
	name    string
	packed  int
	read    int
}

func (p *partReader) Read(buf []byte) (int, error) {
	n, err := p.in.Read(buf)
	p.read += n
	p.archive.left -= n
	l := p.archive.limits
	const ratioFrom = 10 << 20
	switch {
	case p.read > l.ZipPart:
		err = &partLimitError{limitError("inflated size of "+p.name, l.ZipPart, "bytes")}
	case p.archive.left < 0:
		err = &partLimitError{limitError("inflated size of the archive", l.ZipTotal, "bytes")}
	case p.read > ratioFrom && p.read/max(p.packed, 1) > l.ZipRatio:
		err = &partLimitError{limitError("compression ratio of "+p.name, l.ZipRatio, "to one")}
	}
	return n, err
}

func isZip(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06"))
}

// zipKind names what a zip holds by its entries: a format of ours, another known kind, or "". A zip
// whose directory is cut off is judged by the names that stand in it.
func zipKind(data []byte) string {
	if !isZip(data) {
		return ""
	}
	has, mime := rawNames(data), ""
	const most = 100_000 // entries are not worth more; the reader says so
	if bytes.Count(data, []byte("PK\x01\x02")) <= most {
		if r, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil || errors.Is(err, zip.ErrInsecurePath) {
			has, mime = entryNames(r)
		}
	}
	if kind := openDocumentKind(mime); kind != "" {
		return kind
	}
	for _, k := range []struct{ entry, kind string }{
		{"word/document.xml", "docx"},
		{"ppt/presentation.xml", "pptx"},
		{"xl/workbook.xml", "xlsx"},
		{"META-INF/container.xml", "epub"},
		{"xl/workbook.bin", "an Excel binary workbook; save it as .xlsx"},
		{"Index/Document.iwa", "an Apple iWork document; export it as .docx, .xlsx or .pptx"},
		{"AndroidManifest.xml", "an Android package"},
		{"META-INF/MANIFEST.MF", "a Java archive"},
	} {
		if has(k.entry) {
			return k.kind
		}
	}
	return ""
}

func rawNames(data []byte) func(string) bool {
	return func(name string) bool { return bytes.Contains(data, []byte(name)) }
}

// entryNames gives a test for names, and the media type that OpenDocument and EPUB files store first.
func entryNames(r *zip.Reader) (has func(string) bool, mime string) {
	names := make(map[string]bool, len(r.File))
	for _, f := range r.File {
		names[path.Clean(strings.ReplaceAll(f.Name, `\`, "/"))] = true
		if f.Name == "mimetype" && f.UncompressedSize64 < 200 {
			if in, err := f.Open(); err == nil {
				text, _ := io.ReadAll(io.LimitReader(in, 200))
				mime = strings.TrimSpace(string(text))
			}
		}
	}
	return func(name string) bool { return names[name] }, mime
}

func openDocumentKind(mime string) string {
	kind, ok := strings.CutPrefix(mime, "application/vnd.oasis.opendocument.")
	kind = strings.TrimSuffix(kind, "-template")
	switch {
	case mime == "application/epub+zip":
		return "epub"
	case !ok:
		return ""
	case kind == "text" || kind == "text-master":
		return "odt"
	case kind == "spreadsheet":
		return "ods"
	case kind == "presentation":
		return "odp"
	}
	return "an OpenDocument " + clip(kind, 20) + "; export it as PDF"
}

func ignoreMissing(err error) error {
	if errors.Is(err, errNoEntry) {
		return nil
	}
	return err
}
