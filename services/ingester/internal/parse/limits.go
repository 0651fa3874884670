package parse

import (
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Limits bound what one document may cost. A zero field takes its default.
type Limits struct {
	FileBytes    int           // any file; default 100 MiB
	TextFile     int           // plain text, CSV, JSON and JSONL files, bytes; default 20 MiB
	MarkupFile   int           // HTML and Markdown files, bytes; default 10 MiB
	TextBytes    int           // produced text; default 32 MiB
	Depth        int           // nesting of JSON, table cells and XML elements; default 64 for JSON, 1,000 for XML
	ZipEntries   int           // default 10,000
	ZipPart      int           // one inflated part, bytes; default 64 MiB
	ZipTotal     int           // all inflated parts, bytes; default 512 MiB
	ZipRatio     int           // inflated to packed, for parts over 10 MiB; default 200
	Wall         time.Duration // one document, by the clock; default 120 s. Wall, Stall and Memory are kept by package worker
	Stall        time.Duration // without a new page or part; default 15 s
	Memory       int64         // of the worker beyond its start and the file, bytes; default 1 GiB
	Pages        int           // of a PDF; default 5,000
	OCRPages     int           // pages and images sent to OCR; default 100
	RecordBytes  int           // one CSV record; default 1 MiB
	TableColumns int           // columns a spanning cell may cover; default 100
}

// WithDefaults fills the zero fields.
func (l Limits) WithDefaults() Limits { return l.withDefaults() }

func (l Limits) withDefaults() Limits {
	const mib = 1 << 20
	setInt(&l.FileBytes, 100*mib)
	setInt(&l.TextFile, 20*mib)
	setInt(&l.MarkupFile, 10*mib)
	setInt(&l.TextBytes, 32*mib)
	setInt(&l.ZipEntries, 10_000)
	setInt(&l.ZipPart, 64*mib)
	setInt(&l.ZipTotal, 512*mib)
	setInt(&l.ZipRatio, 200)
	setInt(&l.Pages, 5_000)
	setInt(&l.OCRPages, 100)
	setInt(&l.RecordBytes, mib)
	setInt(&l.TableColumns, 100)
	if l.Wall == 0 {
		l.Wall = 2 * time.Minute
	}
	if l.Stall == 0 {
		l.Stall = 15 * time.Second
	}
	if l.Memory == 0 {
		l.Memory = 1 << 30
	}
	return l
}

// depth is the configured nesting limit, else the format's own.
func (l Limits) depth(standard int) int {
	if l.Depth > 0 {
		return l.Depth
	}
	return standard
}

func setInt(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

func limitError(what string, limit int, unit string) error {
	return messages.Errorf(messages.CodeParseLimit, "%s is over the limit of %d %s", what, limit, unit)
}

func damaged(format string, args ...any) error {
	return messages.Errorf(messages.CodeDamagedDocument, "%s", fmt.Sprintf(format, args...))
}
