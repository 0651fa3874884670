package messages

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Messages of the embed and index stages are a line of JSON, then the texts or vectors as they are, one after
// the other: written as JSON strings they would take most of the time that both stages have.
var (
	_ encoding.BinaryMarshaler   = EmbedWork{}
	_ encoding.BinaryUnmarshaler = (*EmbedWork)(nil)
	_ encoding.BinaryMarshaler   = IndexWork{}
	_ encoding.BinaryUnmarshaler = (*IndexWork)(nil)
)

// embedHead is the first line of an EmbedWork.
type embedHead struct {
	Ref
	Space  Space      `json:"space"`
	Part   int        `json:"part"`
	Parts  int        `json:"parts"`
	Chunks []textHead `json:"chunks"`
}

type textHead struct {
	Ordinal int    `json:"ordinal"`
	Hash    []byte `json:"hash"`
	Bytes   int    `json:"bytes"` // of the text
}

// indexHead is the first line of an IndexWork.
type indexHead struct {
	Ref
	Part    int          `json:"part"`
	Parts   int          `json:"parts"`
	Tokens  int          `json:"tokens,omitempty"`
	Vectors []vectorHead `json:"vectors,omitempty"`
}

type vectorHead struct {
	Ordinal int `json:"ordinal"`
	Bytes   int `json:"bytes"` // of the vector
}

// MarshalBinary returns the wire form.
func (w EmbedWork) MarshalBinary() ([]byte, error) {
	head := embedHead{Ref: w.Ref, Space: w.Space, Part: w.Part, Parts: w.Parts, Chunks: make([]textHead, len(w.Chunks))}
	size := 0
	for i, c := range w.Chunks {
		head.Chunks[i] = textHead{c.Ordinal, c.Hash, len(c.Text)}
		size += len(c.Text)
	}
	out, err := appendHead(head, size)
	for _, c := range w.Chunks {
		out = append(out, c.Text...)
	}
	return out, err
}

// UnmarshalBinary reads the wire form. Vectors and texts share no memory with data.
func (w *EmbedWork) UnmarshalBinary(data []byte) error {
	var head embedHead
	rest, err := cutHead(data, &head)
	if err != nil {
		return err
	}
	texts := string(rest)
	*w = EmbedWork{Ref: head.Ref, Space: head.Space, Part: head.Part, Parts: head.Parts, Chunks: make([]EmbedChunk, len(head.Chunks))}
	for i, c := range head.Chunks {
		if c.Bytes < 0 || c.Bytes > len(texts) {
			return fmt.Errorf("chunk %d: %w", i, errCut)
		}
		w.Chunks[i] = EmbedChunk{Ordinal: c.Ordinal, Hash: c.Hash, Text: texts[:c.Bytes]}
		texts = texts[c.Bytes:]
	}
	return nothingLeft(len(texts))
}

// MarshalBinary returns the wire form.
func (w IndexWork) MarshalBinary() ([]byte, error) {
	head := indexHead{Ref: w.Ref, Part: w.Part, Parts: w.Parts, Tokens: w.Tokens, Vectors: make([]vectorHead, len(w.Vectors))}
	size := 0
	for i, v := range w.Vectors {
		head.Vectors[i] = vectorHead{v.Ordinal, len(v.Vector)}
		size += len(v.Vector)
	}
	out, err := appendHead(head, size)
	for _, v := range w.Vectors {
		out = append(out, v.Vector...)
	}
	return out, err
}

// UnmarshalBinary reads the wire form. The vectors are parts of data.
func (w *IndexWork) UnmarshalBinary(data []byte) error {
	var head indexHead
	rest, err := cutHead(data, &head)
	if err != nil {
		return err
	}
	*w = IndexWork{Ref: head.Ref, Part: head.Part, Parts: head.Parts, Tokens: head.Tokens}
	for i, v := range head.Vectors {
		if v.Bytes < 0 || v.Bytes > len(rest) {
			return fmt.Errorf("vector %d: %w", i, errCut)
		}
		w.Vectors = append(w.Vectors, IndexVector{Ordinal: v.Ordinal, Vector: rest[:v.Bytes:v.Bytes]})
		rest = rest[v.Bytes:]
	}
	return nothingLeft(len(rest))
}

// RefOf reads which version a work message of any stage is for; ok is false when it says none, or not all of it.
func RefOf(body []byte) (ref Ref, ok bool) {
	line, _, _ := bytes.Cut(body, []byte("\n"))
	return ref, json.Unmarshal(line, &ref) == nil && ref.Validate() == nil
}

// appendHead writes the line of JSON and makes room for so many bytes behind it.
func appendHead(head any, size int) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(head); err != nil { // ends the line
		return nil, fmt.Errorf("encode %T: %w", head, err)
	}
	return append(make([]byte, 0, line.Len()+size), line.Bytes()...), nil
}

func cutHead(data []byte, head any) (rest []byte, err error) {
	line, rest, _ := bytes.Cut(data, []byte("\n")) // without one nothing may be missing behind it
	if utf8.Valid(line) && readStrict(line, head) {
		return rest, nil
	}
	if err := json.Unmarshal(line, head); err != nil { // keys of a later version are ignored
		return nil, fmt.Errorf("first line: %w", err)
	}
	return rest, nil
}

func nothingLeft(n int) error {
	if n > 0 {
		return fmt.Errorf("%d bytes too many", n)
	}
	return nil
}

var errCut = Invalid("body", "is cut short")
