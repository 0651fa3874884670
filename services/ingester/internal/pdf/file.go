package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"

	"github.com/klippa-app/go-pdfium"
	pdfium_errors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/weir-project/weir/pkg/messages"
)

// File is an open PDF.
type File struct {
	runtime  *Runtime
	engine   pdfium.Pdfium
	ref      references.FPDF_DOCUMENT
	pages    int
	content  *counted
	size     int64
	password string
}

// counted counts the bytes that PDFium has read.
type counted struct {
	io.ReadSeeker
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	c.n += int64(n)
	return n, err
}

// Open opens a PDF of size bytes; password may be empty. Errors of the file are *messages.Error.
func (r *Runtime) Open(data io.ReadSeeker, size int64, password string) (*File, error) {
	f := &File{runtime: r, engine: r.instance, content: &counted{ReadSeeker: data}, size: size, password: password}
	if err := f.open(); err != nil {
		return nil, err
	}
	count, err := r.instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: f.ref})
	if err != nil {
		return nil, r.fault(err, "open the PDF")
	}
	f.pages = count.PageCount
	return f, nil
}

func (f *File) open() error {
	request := &requests.FPDF_LoadCustomDocument{Reader: f.content, Size: f.size}
	if f.password != "" {
		request.Password = &f.password
	}
	opened, err := f.engine.FPDF_LoadCustomDocument(request)
	if err != nil {
		return f.runtime.openError(err, f.password)
	}
	f.ref, f.content.n = opened.Document, 0
	return nil
}

// refresh opens the file anew when much of it was read: PDFium keeps what it has read, pictures too, until
// the file is closed.
func (f *File) refresh() error {
	const much = MemoryBytes / 4
	if f.content.n < much {
		return nil
	}
	f.Close()
	return f.open()
}

func (r *Runtime) openError(err error, password string) error {
	switch {
	case errors.Is(err, pdfium_errors.ErrPassword) && password != "":
		return messages.Errorf(messages.CodePasswordRequired, "the password does not open the PDF")
	case errors.Is(err, pdfium_errors.ErrPassword):
		return messages.Errorf(messages.CodePasswordRequired,
			"the PDF needs a password; submit it by request with the header %s, or save it without one", messages.HeaderPassword)
	case errors.Is(err, pdfium_errors.ErrSecurity):
		return messages.Errorf(messages.CodePasswordRequired,
			"the PDF is protected in a way that is not supported; save it without protection")
	case errors.Is(err, pdfium_errors.ErrFormat), errors.Is(err, pdfium_errors.ErrFile), errors.Is(err, pdfium_errors.ErrUnknown):
		return messages.Errorf(messages.CodeDamagedDocument, "the PDF cannot be opened: its structure is damaged")
	}
	return r.fault(err, "open the PDF")
}

// ErrBroken is inside errors after which the engine cannot go on: it trapped.
var ErrBroken = errors.New("the PDF engine stopped")

// brokenError is a document error that also is ErrBroken.
type brokenError struct{ document *messages.Error }

func (e brokenError) Error() string   { return e.document.Error() }
func (e brokenError) Unwrap() []error { return []error{e.document, ErrBroken} }

// fault makes a document error of what the engine says: a trap is the end of it.
func (r *Runtime) fault(err error, what string) error {
	said := err.Error()
	switch {
	case r.memory.refused:
		return brokenError{messages.Errorf(messages.CodeParseLimit, "to %s takes more than the limit of %d MiB of engine memory", what, MemoryBytes>>20)}
	case strings.Contains(said, "stack overflow"):
		return brokenError{messages.Errorf(messages.CodeParseLimit, "to %s takes deeper nesting than the limit of the engine's stack", what)}
	case strings.Contains(said, "wasm error"):
		return brokenError{messages.Errorf(messages.CodeDamagedDocument, "the PDF is damaged: it stopped its reader (%s)", what)}
	}
	return messages.Errorf(messages.CodeDamagedDocument, "the PDF is damaged: it was not possible to %s", what)
}

// Count is the number of pages as the file has them.
func (f *File) Count() int { return f.pages }

// Close frees the file; a broken engine is past that.
func (f *File) Close() {
	_, _ = f.engine.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: f.ref}) // the process ends soon
}

// Title is the one of the document's properties; "" when there is none.
func (f *File) Title() string {
	meta, err := f.engine.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: f.ref, Tag: "Title"})
	const most = 500
	if err != nil || len(meta.Value) > most {
		return "" // a broken title is no reason to refuse the text
	}
	return strings.ToValidUTF8(meta.Value, "")
}

func (f *File) page(number int) requests.Page {
	return requests.Page{ByIndex: &requests.PageByIndex{Document: f.ref, Index: number - 1}}
}

// Image renders a page, from 1, as PNG with dpi dots an inch, at most 4,000 on a side.
func (f *File) Image(number, dpi int) ([]byte, error) {
	size, err := f.engine.GetPageSize(&requests.GetPageSize{Page: f.page(number)})
	if err != nil {
		return nil, f.runtime.fault(err, fmt.Sprintf("measure page %d", number))
	}
	const points, most = 72, 4000
	scale := min(float64(dpi)/points, most/max(size.Width, size.Height, 1))
	rendered, err := f.engine.RenderPageInPixels(&requests.RenderPageInPixels{
		Page: f.page(number), Width: int(size.Width*scale) + 1, Height: int(size.Height*scale) + 1,
		ImageFormat: requests.RenderImageFormatGrayscale,
	})
	if err != nil {
		return nil, f.runtime.fault(err, fmt.Sprintf("draw page %d", number))
	}
	defer rendered.Cleanup()
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, rendered.Result.RenderedImage); err != nil {
		return nil, fmt.Errorf("encode page image: %w", err)
	}
	return out.Bytes(), nil
}

// Unlocked writes the file without its protection.
func (f *File) Unlocked(w io.Writer) error {
	_, err := f.engine.FPDF_SaveAsCopy(&requests.FPDF_SaveAsCopy{
		Document: f.ref, Flags: requests.SaveFlagRemoveSecurity, FileWriter: w,
	})
	if err != nil {
		return f.runtime.fault(err, "save the PDF without its protection")
	}
	return nil
}
