package pgstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pgvector/pgvector-go"
	pgxvec "github.com/pgvector/pgvector-go/pgx"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// A chunk is staged as the fields that COPY will write, in the binary format of COPY (PostgreSQL manual,
// "COPY", "Binary Format"): for each a length of four bytes, big endian, and the value as the type's receive
// function takes it. The swap passes them on as they are.
//
// stagedLayout names the fields and their order. It is raised when they change: what an older or newer
// program staged is not readable then, counts as lost, and is parsed again.
const stagedLayout = 2

// stagedFields are the columns of chunks that are known when a chunk is staged.
const stagedFields = "ordinal, page_from, page_to, tokens, lex_len, heading_path, context, content, hash, lex, origin"

// Places of the fields that are read again.
const (
	fieldOrdinal = 0
	fieldLexLen  = 4
	fieldContext = 6
	fieldContent = 7
	fieldHash    = 8
	fieldLex     = 9
	stagedCount  = 11
)

// appendStaged appends the fields of a chunk.
func appendStaged(dst []byte, c *StagedChunk) []byte {
	for _, n := range []int{c.Ordinal, c.PageFrom, c.PageTo, c.Tokens, c.LexLen} {
		dst = appendInt4(dst, n)
	}
	dst = appendTexts(dst, c.HeadingPath)
	dst = appendField(dst, c.Context)
	dst = appendField(dst, c.Content)
	dst = appendField(dst, c.Hash[:])
	dst = appendField(dst, c.Lex)
	return appendJSONB(dst, c.Origin)
}

// appendJSONB appends a jsonb: its version and the text.
func appendJSONB(dst []byte, v messages.Origin) []byte {
	const version = 1
	body, err := json.Marshal(v)
	if err != nil {
		panic("origin of a chunk: " + err.Error()) // strings and numbers alone
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)+1)) //nolint:gosec // far below 1 GiB
	return append(append(dst, version), body...)
}

func appendInt4(dst []byte, n int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 4)
	return binary.BigEndian.AppendUint32(dst, uint32(n)) //nolint:gosec // an int4 by the schema
}

func appendInt8(dst []byte, n int64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 8)
	return binary.BigEndian.AppendUint64(dst, uint64(n)) //nolint:gosec // same bits
}

func appendField[T ~string | ~[]byte](dst []byte, value T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value))) //nolint:gosec // far below 1 GiB
	return append(dst, value...)
}

// appendNull appends a field that is null.
func appendNull(dst []byte) []byte { return binary.BigEndian.AppendUint32(dst, 0xffffffff) }

const textOID = 25

// appendTexts appends a text[].
func appendTexts(dst []byte, texts []string) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0) // the length, once it is known
	dimensions := min(len(texts), 1)
	for _, n := range []int{dimensions, 0, textOID} { // dimensions, no nulls, type of the elements
		dst = binary.BigEndian.AppendUint32(dst, uint32(n)) //nolint:gosec // small
	}
	if dimensions > 0 {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(texts))) //nolint:gosec // small
		dst = binary.BigEndian.AppendUint32(dst, 1)                  // lower bound
	}
	for _, t := range texts {
		dst = appendField(dst, t)
	}
	return sized(dst, at)
}

// appendHalf appends a halfvec.
func appendHalf(dst []byte, values []float32) ([]byte, error) {
	v := pgvector.NewHalfVector(values)
	at := len(dst)
	dst, err := pgxvec.HalfVectorCodec{}.PlanEncode(nil, 0, pgx.BinaryFormatCode, v).Encode(v, append(dst, 0, 0, 0, 0))
	if err != nil {
		return nil, fmt.Errorf("encode vector: %w", err)
	}
	return sized(dst, at), nil
}

// sized fills in the length of the field that begins at at.
func sized(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4)) //nolint:gosec // far below 1 GiB
	return dst
}

var errStaged = errors.New("malformed staged chunk")

// stagedTuple is a chunk's fields as they were staged: the bytes of all, and each value within them.
type stagedTuple struct {
	raw    []byte
	fields [stagedCount][]byte
}

// cutTuple takes the first chunk off data.
func cutTuple(data []byte) (t stagedTuple, rest []byte, err error) {
	rest = data
	for i := range t.fields {
		if len(rest) < 4 {
			return t, nil, errStaged
		}
		n := int(int32(binary.BigEndian.Uint32(rest))) //nolint:gosec // signed on the wire
		if n < 0 || n > len(rest)-4 {
			return t, nil, errStaged
		}
		t.fields[i], rest = rest[4:4+n], rest[4+n:]
	}
	if len(t.fields[fieldOrdinal]) != 4 || len(t.fields[fieldLexLen]) != 4 {
		return t, nil, errStaged
	}
	t.raw = data[:len(data)-len(rest)]
	return t, rest, nil
}

func (t stagedTuple) int(field int) int { return int(binary.BigEndian.Uint32(t.fields[field])) }

// copyStream is what COPY ... FROM STDIN BINARY reads. The zero value is an empty one.
type copyStream struct{ buf []byte }

var copyHeader = append([]byte("PGCOPY\n\xff\r\n\x00"), 0, 0, 0, 0, 0, 0, 0, 0)

// reset empties the stream and makes room for so many bytes of rows.
func (c *copyStream) reset(bytes int) {
	c.buf = slices.Grow(c.buf[:0], len(copyHeader)+bytes+len(copyTrailer))
}

var copyTrailer = []byte{0xff, 0xff}

// row begins a row of so many fields, which the caller appends to buf.
func (c *copyStream) row(fields int) {
	if len(c.buf) == 0 {
		c.buf = append(c.buf, copyHeader...)
	}
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(fields)) //nolint:gosec // a handful
}

// send writes the rows into a table, named with its columns.
func (c *copyStream) send(ctx context.Context, conn *pgx.Conn, table string) error {
	if len(c.buf) == 0 {
		return nil
	}
	stream := append(c.buf, copyTrailer...)
	_, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(stream), "COPY "+table+" FROM STDIN BINARY")
	return err
}
