package pgstore

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/postings"
)

// TSVector is a tsvector in Postgres' binary form: a count, then for each lexeme its bytes, a zero, the
// number of positions and two bytes a position, the weight in the upper two bits.
type TSVector []byte

// NewTSVector turns an analysed chunk into the value stored with it. The analyzer has merged, sorted, capped
// and cleaned the lexemes; Postgres would store some malformed values without complaint, so nothing else
// may build one.
func NewTSVector(doc lexical.Document) TSVector {
	size := 4
	for _, l := range doc.Lexemes {
		size += len(l.Term) + 3 + 2*len(l.Positions)
	}
	v := make(TSVector, size)
	binary.BigEndian.PutUint32(v, uint32(len(doc.Lexemes))) //nolint:gosec // capped by the analyzer
	at := 4
	for _, l := range doc.Lexemes {
		at += copy(v[at:], l.Term) + 1
		binary.BigEndian.PutUint16(v[at:], uint16(len(l.Positions))) //nolint:gosec // at most 255
		at += 2
		for _, p := range l.Positions {
			binary.BigEndian.PutUint16(v[at:], p.Pos|uint16(lexical.WeightD-p.Weight)<<14)
			at += 2
		}
	}
	return v
}

var errTSVector = errors.New("malformed tsvector")

// termReader reads terms out of tsvectors, into memory that many share. The zero value is ready.
type termReader struct{ free []postings.TermTF }

const termBlock = 4096 // terms, 64 KB

// read returns the terms of a tsvector and their frequencies.
func (r *termReader) read(data TSVector) ([]postings.TermTF, error) {
	if len(data) < 4 {
		return nil, errTSVector
	}
	n := int(binary.BigEndian.Uint32(data))
	data = data[4:]
	if n < 0 || n > len(data)/3 {
		return nil, errTSVector
	}
	if n > len(r.free) {
		r.free = make([]postings.TermTF, max(n, termBlock))
	}
	terms := r.free[:n:n]
	r.free = r.free[n:]
	for i := range terms {
		end := bytes.IndexByte(data, 0)
		if end < 0 || len(data) < end+3 {
			return nil, errTSVector
		}
		positions := int(binary.BigEndian.Uint16(data[end+1:]))
		next := end + 3 + 2*positions
		if len(data) < next {
			return nil, errTSVector
		}
		terms[i] = postings.TermTF{Term: postings.TermHashBytes(data[:end]), TF: max(positions, 1)}
		data = data[next:]
	}
	return terms, nil
}
