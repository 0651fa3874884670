package pgstore

import (
	"context"
	"encoding/binary"
	"fmt"

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

// pack divides the chunks of a version, which are in order, into rows.
func pack(chunks []StagedChunk) []packed {
	var rows []packed
	for i := range chunks {
		one := appendStaged(make([]byte, 0, 512+len(chunks[i].Content)+len(chunks[i].Context)+len(chunks[i].Lex)), &chunks[i])
		if last := len(rows) - 1; last >= 0 && len(rows[last].data)+len(one) <= packedBytes {
			rows[last].chunks++
			rows[last].data = append(rows[last].data, one...)
			continue
		}
		rows = append(rows, packed{ordinal: chunks[i].Ordinal, chunks: 1, data: one})
	}
	return rows
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
