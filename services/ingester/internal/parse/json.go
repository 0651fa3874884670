package parse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

func jsonFormat() format {
	return format{
		name:       "json",
		mediaTypes: []string{"application/json", "text/json"},
		extensions: []string{".json"},
		maxBytes:   func(l Limits) int { return l.TextFile },
		sniff: func(data []byte) bool {
			head := bytes.TrimSpace(trimUTF8Mark(data))
			return len(head) > 0 && (head[0] == '{' || head[0] == '[') && json.Valid(head)
		},
		parse: parseJSON,
	}
}

// parseJSON writes one "path: value" line a leaf, and a block for each member of the top value.
func parseJSON(ctx context.Context, s source, b *builder) error {
	decoder := json.NewDecoder(strings.NewReader(s.text))
	decoder.UseNumber()
	f := &flattener{ctx: ctx, decoder: decoder, depth: s.limits.depth(jsonDepth), most: s.limits.TextBytes, emit: b.add, lines: lineCounter{text: s.text, line: 1}}
	if err := f.document(); err != nil {
		return jsonError(err, s.limits)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return damaged("the JSON goes on behind its end, at byte %d", decoder.InputOffset())
	}
	b.title = f.title
	return nil
}

const jsonDepth = 64

// Turned into limit errors with the configured figure.
var (
	errTooDeep = errors.New("nested too deeply")
	errTooLong = errors.New("too much text")
)

func jsonError(err error, l Limits) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, errTooDeep):
		return limitError("nesting of JSON", l.depth(jsonDepth), "levels")
	case errors.Is(err, errTooLong):
		return limitError("extracted text", l.TextBytes, "bytes")
	case errors.As(err, &syntax):
		return damaged("the JSON is broken at byte %d", syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return damaged("the JSON ends too early")
	}
	return err
}

// flattener walks a token stream, never holding more than the current block.
type flattener struct {
	ctx     context.Context
	decoder *json.Decoder
	depth   int
	most    int
	title   string
	out     strings.Builder
	total   int // bytes written
	work    int // bytes of paths built
	emit    func(part) error
	lines   lineCounter
	from    int // line of the current block
}

// lineCounter tells the line of offsets that grow.
type lineCounter struct {
	text string
	at   int
	line int // of at, from 1
}

func (c *lineCounter) lineOf(offset int64) int {
	if to := min(int(offset), len(c.text)); to > c.at {
		c.line += strings.Count(c.text[c.at:to], "\n")
		c.at = to
	}
	return c.line
}

// lineOfValue is the line of the value that comes next.
func (c *lineCounter) lineOfValue(offset int64) int {
	for int(offset) < len(c.text) && strings.IndexByte(" \t\r\n,:", c.text[offset]) >= 0 {
		offset++
	}
	return c.lineOf(offset)
}

// document reads one value; each member of it is emitted as a block of its own.
func (f *flattener) document() error {
	f.from = f.lines.lineOfValue(0)
	if err := f.value("", 0); err != nil {
		return err
	}
	return f.flush()
}

func (f *flattener) flush() error {
	text := f.out.String()
	f.out.Reset()
	if text == "" || f.emit == nil {
		return nil
	}
	to := f.lines.lineOf(f.decoder.InputOffset())
	return f.emit(part{kind: KindParagraph, text: text, line: min(f.from, to), end: to})
}

func (f *flattener) value(path string, depth int) error {
	if depth > f.depth {
		return errTooDeep
	}
	token, err := f.decoder.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return f.object(path, depth)
		}
		return f.array(path, depth)
	case string:
		if path == "title" {
			f.title = v
		}
		return f.leaf(path, v)
	case json.Number:
		return f.leaf(path, v.String())
	case bool:
		return f.leaf(path, strconv.FormatBool(v))
	}
	return nil // null says nothing
}

func (f *flattener) object(path string, depth int) error {
	for f.decoder.More() {
		token, err := f.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if path != "" {
			name = path + "." + name
		}
		if err := f.member(name, depth); err != nil {
			return err
		}
	}
	_, err := f.decoder.Token()
	return err
}

func (f *flattener) array(path string, depth int) error {
	for i := 0; f.decoder.More(); i++ {
		if err := f.member(path+"["+strconv.Itoa(i)+"]", depth); err != nil {
			return err
		}
	}
	_, err := f.decoder.Token()
	return err
}

func (f *flattener) member(path string, depth int) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if f.work += len(path); f.work > 8*f.most { // long names over many empty members
		return errTooLong
	}
	if depth == 0 && f.emit != nil {
		f.from = f.lines.lineOfValue(f.decoder.InputOffset())
	}
	if err := f.value(path, depth+1); err != nil {
		return err
	}
	if depth == 0 && f.emit != nil {
		return f.flush()
	}
	return nil
}

func (f *flattener) leaf(path, value string) error {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	f.total += len(path) + len(value) + 3
	if f.total > f.most {
		return errTooLong
	}
	if path != "" {
		f.out.WriteString(path)
		f.out.WriteString(": ")
	}
	f.out.WriteString(value)
	f.out.WriteByte('\n')
	return nil
}
