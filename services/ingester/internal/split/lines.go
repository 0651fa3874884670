package split

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/weir-project/weir/services/ingester/internal/intake"
)

// lines reads lines that are not blank. A line over the limit is skipped without being kept.
type lines struct {
	in     *bufio.Reader
	limit  int
	number int
}

const readBuffer = 64 << 10

func newLines(in io.Reader, limit int) *lines {
	return &lines{in: bufio.NewReaderSize(in, readBuffer), limit: limit}
}

var utf8Mark = []byte("\xef\xbb\xbf")

// next returns the next line without its end, or that it is longer than the limit; io.EOF behind the last. The text is
// the caller's.
func (l *lines) next() (line intake.Line, tooLong bool, err error) {
	for {
		text, tooLong, err := l.read()
		if err != nil {
			return intake.Line{}, false, err
		}
		l.number++
		if l.number == 1 {
			text = bytes.TrimPrefix(text, utf8Mark)
		}
		text = bytes.TrimSpace(text)
		if len(text) > 0 || tooLong {
			return intake.Line{Number: l.number, Text: text}, tooLong, nil
		}
	}
}

// read returns a line as it is; io.EOF when there is none left.
func (l *lines) read() (text []byte, tooLong bool, err error) {
	for some := false; ; some = true {
		part, err := l.in.ReadSlice('\n')
		if len(text)+len(part) > l.limit+len("\r\n") {
			text, tooLong = nil, true
		}
		if !tooLong {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (some || len(part) > 0):
			return text, tooLong, nil
		case err != nil:
			return nil, false, err
		}
		return text, tooLong, nil
	}
}
