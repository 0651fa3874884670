package publish

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// maxLineBytes holds the largest document in base64, and what is around it.
const maxLineBytes = MaxDocumentBytes/3*4 + 1<<20

// lines sends the documents of a JSONL file, which may be compressed by gzip.
func (f *finder) lines(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("find documents: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if !strings.HasSuffix(strings.ToLower(path), ".gz") {
		return f.read(path, file)
	}
	z, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return f.read(path, z)
}

func (f *finder) read(name string, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in, f.o.MaxLineBytes)
		at := fmt.Sprintf("%s:%d", name, n)
		switch {
		case errors.Is(err, errLongLine):
			if err := f.send(Item{Name: at, Err: longLine(f.o.MaxLineBytes)}); err != nil {
				return err
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("read %s: %w", at, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := f.send(f.line(at, line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

func (f *finder) line(name string, line []byte) Item {
	s, err := messages.DecodeSubmit(func(string) string { return "" }, line)
	if err != nil {
		return Item{Name: name, Err: err, Submit: named(s)}
	}
	return f.finish(Item{Name: name, Submit: *s})
}

// named keeps what identifies a submit that is not valid.
func named(s *messages.Submit) messages.Submit {
	if s == nil {
		return messages.Submit{}
	}
	return messages.Submit{DocID: s.DocID, Subspace: s.Subspace}
}

func longLine(limit int) error {
	return &messages.Error{Code: messages.CodeDocumentTooLarge, Field: "body", Message: fmt.Sprintf("the line has more than %d bytes", limit)}
}

var errLongLine = errors.New("the line is too long")

// readLine returns the next line without its end. A longer one than allowed is skipped whole and is
// errLongLine. The last line comes with io.EOF.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		default:
			return line, err
		}
	}
}
