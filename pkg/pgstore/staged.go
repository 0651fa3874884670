package pgstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weir-project/weir/pkg/messages"
)

// packedBytes bounds a row of staged chunks, but for one chunk that is longer: it stays in its page.
const packedBytes = 7800

// packed is one row of staged_chunks: chunks of consecutive ordinals.
type packed struct {
	ordinal, chunks int
	data            []byte
}

// stagedColumns are those of staged_chunks in the order in which stagedStream writes them.
const stagedColumns = "staged_chunks (generation, document_key, version, layout, ordinal, chunks, rows)"

// stagedStream writes the chunks of versions as rows of staged_chunks. The zero value has none.
type stagedStream struct {
	copyStream
	one []byte // the chunk at hand
}

// add appends a version, whose chunks are in order, several a row.
func (s *stagedStream) add(st *Staging) {
	s.buf = slices.Grow(s.buf, st.size())
	var row packed
	at := 0 // where the row's counts begin
	for i := range st.Chunks {
		c := &st.Chunks[i]
		s.one = appendStaged(s.one[:0], c)
		if i == 0 || len(s.buf)-at+len(s.one) > packedBytes {
			s.row(7)
			for _, n := range []int64{st.Ref.Generation, st.Ref.DocKey, st.Ref.Version} {
				s.buf = appendInt8(s.buf, n)
			}
			s.buf = appendInt4(s.buf, stagedLayout)
			at, row = len(s.buf), packed{ordinal: c.Ordinal}
			s.buf = append(s.buf, make([]byte, packedHead)...)
		}
		s.buf = append(s.buf, s.one...)
		row.chunks++
		row.head(s.buf[at:])
	}
}

// packedHead is the length of what head writes.
const packedHead = 8 + 8 + 4

// head writes ordinal, chunks and the length of the data before the data.
func (p packed) head(row []byte) {
	appendInt4(appendInt4(row[:0], p.ordinal), p.chunks)
	sized(row, packedHead-4)
}

// size is about how many bytes the chunks take.
func (st *Staging) size() int {
	n := 0
	for i := range st.Chunks {
		c := &st.Chunks[i]
		n += 256 + len(c.Context) + len(c.Content) + len(c.Lex)
		for _, heading := range c.HeadingPath {
			n += 4 + len(heading)
		}
	}
	return n
}

// unpack calls each with the chunks of a row, which share its memory.
func unpack(chunks int, data []byte, each func(stagedTuple) error) error {
	for range chunks {
		t, rest, err := cutTuple(data)
		if err != nil {
			return err
		}
		if err := each(t); err != nil {
			return err
		}
		data = rest
	}
	if len(data) > 0 {
		return errStaged
	}
	return nil
}

// StagedText is a staged chunk as the model gets to see it.
type StagedText struct {
	Ordinal          int
	Hash             []byte
	Context, Content string
	LexLen           int
	Known            bool // its vector is staged too
}

// StagedTexts returns the staged chunks of a version, in order.
func (s *Store) StagedTexts(ctx context.Context, ref messages.Ref) ([]StagedText, error) {
	known, err := collectColumn[int](ctx, s.pool, "staged_ordinals", ref.DocKey, ref.Version, ref.Generation)
	if err != nil {
		return nil, fmt.Errorf("read staged vectors of %s: %w", ref.DocID, err)
	}
	have := make(map[int]bool, len(known))
	for _, ordinal := range known {
		have[ordinal] = true
	}
	rows, err := s.pool.Query(ctx, query("staged_rows"), ref.DocKey, ref.Version, ref.Generation, stagedLayout)
	if err != nil {
		return nil, fmt.Errorf("read staged chunks of %s: %w", ref.DocID, err)
	}
	var out []StagedText
	var chunks int
	var data pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&chunks, &data}, func() error {
		return unpack(chunks, data, func(t stagedTuple) error {
			ordinal := t.int(fieldOrdinal)
			out = append(out, StagedText{
				Ordinal: ordinal, Hash: append([]byte(nil), t.fields[fieldHash]...), LexLen: t.int(fieldLexLen), Known: have[ordinal],
				Context: string(t.fields[fieldContext]), Content: string(t.fields[fieldContent]),
			})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read staged chunks of %s: %w", ref.DocID, err)
	}
	return out, nil
}

func bigEndian64(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) } //nolint:gosec // a bigint on the wire

func bigEndian32(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) } //nolint:gosec // an int on the wire
