package worker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// message is what parent and child send each other. fields lists its fields, in one order for both ways.
type message interface{ fields(w *wire) }

// wire is a message on its way: fields are appended to data, or taken from its front when reading. What is
// read comes from a process that a document may have taken over: nothing of it is trusted.
type wire struct {
	data    []byte
	reading bool
	room    int64 // bytes that what is read may still take in memory
	err     error // the first; fields read after it are empty
}

var (
	errBroken  = errors.New("a message of a parse worker is broken")
	errTooLong = errors.New("a parse worker sent more than it may")
	errNoRoom  = errors.New("what a parse worker sent takes more memory than it may")
)

// writeMessage appends a message, with its length in front. The caller flushes.
func writeMessage(out *bufio.Writer, m message) error {
	const head = 4
	w := wire{data: append(out.AvailableBuffer(), make([]byte, head)...)}
	if m.fields(&w); w.err != nil {
		return w.err
	}
	binary.BigEndian.PutUint32(w.data, uint32(len(w.data)-head)) //nolint:gosec // bounded by what callers put in
	if _, err := out.Write(w.data); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// readMessage takes what writeMessage wrote, of at most most bytes, into the zero m. Texts, lists and the
// message itself are taken off room; data is part of the buffer of in, and holds until the next read.
// io.EOF: nothing came.
func readMessage(in *bufio.Reader, m message, most int, room *int64) error {
	body, err := readBody(in, most)
	if err != nil {
		return err
	}
	w := wire{data: body, reading: true, room: *room}
	const each = 64 // what a receiver needs to keep it
	if w.take(1, each) {
		m.fields(&w)
	}
	*room = w.room
	if w.err == nil && len(w.data) > 0 {
		w.fail(errBroken)
	}
	return w.err
}

func readBody(in *bufio.Reader, most int) ([]byte, error) {
	head, err := in.Peek(4)
	if len(head) == 0 {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	size := int(binary.BigEndian.Uint32(head))
	in.Discard(len(head)) //nolint:errcheck // it is there
	if size > most {
		return nil, errTooLong
	}
	var body []byte
	if size <= in.Size() {
		body, err = in.Peek(size)
		in.Discard(len(body)) //nolint:errcheck // it is there
	} else {
		body = make([]byte, size)
		_, err = io.ReadFull(in, body)
	}
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return body, nil
}

func (w *wire) fail(err error) {
	if w.err == nil {
		w.err, w.data = err, nil
	}
}

func (w *wire) number(v *int64) {
	if !w.reading {
		w.data = binary.AppendVarint(w.data, *v)
		return
	}
	n, size := binary.Varint(w.data)
	if size <= 0 {
		w.fail(errBroken)
		n, size = 0, 0
	}
	*v, w.data = n, w.data[size:]
}

func (w *wire) int(v *int) {
	n := int64(*v)
	w.number(&n)
	*v = int(n)
}

func (w *wire) flag(v *bool) {
	n := 0
	if *v {
		n = 1
	}
	w.int(&n)
	*v = n != 0
}

// bytes are not copied when they are read.
func (w *wire) bytes(v *[]byte) {
	n := len(*v)
	w.int(&n)
	switch {
	case !w.reading:
		w.data = append(w.data, *v...)
	case n < 0 || n > len(w.data):
		w.fail(errBroken)
	default:
		*v, w.data = w.data[:n:n], w.data[n:]
	}
}

// text that was read is valid UTF-8 without U+0000: it goes into the database.
func (w *wire) text(v *string) {
	if !w.reading {
		n := len(*v)
		w.int(&n)
		w.data = append(w.data, *v...)
		return
	}
	var b []byte
	w.bytes(&b)
	if !w.take(len(b), 1) {
		return
	}
	*v = string(b)
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		*v = strings.ReplaceAll(strings.ToValidUTF8(*v, "\ufffd"), "\x00", "")
	}
}

// take takes the room of n things, of size bytes each, and reports that it was there.
func (w *wire) take(n int, size uintptr) bool {
	w.room -= int64(n) * int64(size) //nolint:gosec // both are small
	if w.room < 0 {
		w.fail(errNoRoom)
	}
	return w.room >= 0
}

// list has a field, of a byte at least, for each of v.
func list[T any](w *wire, v *[]T, field func(*wire, *T)) {
	n := len(*v)
	w.int(&n)
	if w.reading {
		if n < 0 || n > len(w.data) {
			w.fail(errBroken)
		}
		if w.err != nil || n == 0 || !w.take(n, reflect.TypeFor[T]().Size()) {
			return
		}
		*v = make([]T, n)
	}
	for i := 0; i < n && w.err == nil; i++ {
		field(w, &(*v)[i])
	}
}

// pipeBytes are buffered on both ends of a pipe: a small document, and what comes of it, are one write each.
const pipeBytes = 64 << 10
