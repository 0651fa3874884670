package messages

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
)

// MaxPartChunks bounds the chunks of one embed message: small enough for progress to be seen and for
// several workers to share a document.
const MaxPartChunks = 64

// Room that the rest of a message takes, and each chunk beside its text or vector.
const (
	partOverhead  = 4 << 10
	chunkOverhead = 160
)

// Encode returns the wire form of a message: that of its MarshalBinary, else JSON without the escaping meant for
// HTML, which would make some texts six times as long.
func Encode(v any) ([]byte, error) {
	if m, ok := v.(encoding.BinaryMarshaler); ok {
		return m.MarshalBinary()
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// PackEmbed divides the chunks of a version into embed messages that stay, as do their answers, under
// MaxWorkBytes. The division depends on all chunks, so that a part keeps its number when the vectors of
// some have arrived: those that have reports are left out, and so are parts with nothing left.
func PackEmbed(ref Ref, space Space, chunks []EmbedChunk, have func(ordinal int) bool) []EmbedWork {
	answer := 4*space.Dims + chunkOverhead
	var groups [][]EmbedChunk
	from, size, answers := 0, partOverhead, partOverhead
	for i := range chunks {
		text := len(chunks[i].Text) + chunkOverhead
		full := size+text > MaxWorkBytes || answers+answer > MaxWorkBytes || i-from >= MaxPartChunks
		if full && i > from {
			groups = append(groups, chunks[from:i])
			from, size, answers = i, partOverhead, partOverhead
		}
		size += text
		answers += answer
	}
	if from < len(chunks) {
		groups = append(groups, chunks[from:])
	}
	var out []EmbedWork
	for part, group := range groups {
		w := EmbedWork{Ref: ref, Space: space, Part: part, Parts: len(groups)}
		for _, c := range group {
			if !have(c.Ordinal) {
				w.Chunks = append(w.Chunks, c)
			}
		}
		if len(w.Chunks) > 0 {
			out = append(out, w)
		}
	}
	return out
}
