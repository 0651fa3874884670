package parse

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"path"
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
		if name := path.Clean(f.Name); a.files[name] == nil {
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
		return nil, damaged("the archive is encrypted")
	}
	in, err := f.Open()
	if err != nil {
		return nil, damaged("entry %s cannot be opened", name)
	}
	return &partReader{archive: a, in: in, name: name, packed: int(f.CompressedSize64)}, nil
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
