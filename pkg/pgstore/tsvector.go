package pgstore

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/postings"
)

// TSVector turns an analysed chunk into the value stored with it. The analyzer has merged, sorted, capped
// and cleaned the lexemes; Postgres would store some malformed values without complaint, so nothing else
// may build one.
func TSVector(doc lexical.Document) pgtype.TSVector {
	v := pgtype.TSVector{Lexemes: make([]pgtype.TSVectorLexeme, len(doc.Lexemes)), Valid: true}
	total := 0
	for _, l := range doc.Lexemes {
		total += len(l.Positions)
	}
	all := make([]pgtype.TSVectorPosition, 0, total)
	for i, l := range doc.Lexemes {
		from := len(all)
		for _, p := range l.Positions {
			all = append(all, pgtype.TSVectorPosition{Position: p.Pos, Weight: pgtype.TSVectorWeight(p.Weight)})
		}
		v.Lexemes[i] = pgtype.TSVectorLexeme{Word: l.Term, Positions: all[from:len(all):len(all)]}
	}
	return v
}

var errTSVector = errors.New("malformed tsvector")

// termsOf reads the terms and their frequencies out of a tsvector in Postgres' binary form: a count,
// then for each lexeme its bytes, a zero, the number of positions and two bytes a position.
func termsOf(data []byte) ([]postings.TermTF, error) {
	if len(data) < 4 {
		return nil, errTSVector
	}
	n := int(binary.BigEndian.Uint32(data))
	data = data[4:]
	if n < 0 || n > len(data)/3 {
		return nil, errTSVector
	}
	terms := make([]postings.TermTF, n)
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
		terms[i] = postings.TermTF{Term: postings.TermHash(string(data[:end])), TF: max(positions, 1)}
		data = data[next:]
	}
	return terms, nil
}
