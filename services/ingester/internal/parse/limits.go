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
	PDFWall      time.Duration // one PDF; default 60 s
	PDFStall     time.Duration // without a new page; default 15 s
	PDFMemory    int64         // address space of the child beyond its start, bytes; default 1 GiB
	PDFPages     int           // default 5,000
	RecordBytes  int           // one CSV record; default 1 MiB
	TableColumns int           // columns a spanning cell may cover; default 100
}

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
	setInt(&l.PDFPages, 5_000)
	setInt(&l.RecordBytes, mib)
	setInt(&l.TableColumns, 100)
	if l.PDFWall == 0 {
		l.PDFWall = time.Minute
	}
	if l.PDFStall == 0 {
		l.PDFStall = 15 * time.Second
	}
	if l.PDFMemory == 0 {
		l.PDFMemory = 1 << 30
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
