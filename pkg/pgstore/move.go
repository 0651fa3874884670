package pgstore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// pageRows is how many staged rows are in memory at once, some 4 MB.
const pageRows = 512

// mover writes the staged chunks of complete versions, with their vectors, into chunks, and their posting
// segments. What is in memory is a page of chunks and the terms of one segment, however long a version is.
type mover struct {
	tx             pgx.Tx
	generation     int64
	keys, versions []int64
	versionOf      map[int64]int64 // by document key
	stagedVectors  bool            // some vectors are staged; else all are in hand
	hasVectors     bool
	hand           hand
	source         *liveSource    // chunks to copy instead of staged ones; nil: staged ones
	docs           []postings.Doc // not in a segment yet
	moved          int
}

func moverOf(tx pgx.Tx, generation int64, ready []swapRow, h hand) *mover {
	m := &mover{tx: tx, generation: generation, versionOf: make(map[int64]int64, len(ready)), hand: h}
	for _, r := range ready {
		m.keys, m.versions = append(m.keys, r.DocKey), append(m.versions, r.Version)
		m.versionOf[r.DocKey] = r.Version
		m.stagedVectors = m.stagedVectors || r.vectors > 0
		m.hasVectors = r.hasVectors // of the generation, so of all
	}
	return m
}

// page is some staged rows in the order of document and ordinal.
type page struct {
	rows    []pageRow
	ids     []int64
	vectors map[place][]byte // staged, as halfvec is sent
}

type pageRow struct {
	key int64
	packed
}

func (p page) chunks() int {
	n := 0
	for _, r := range p.rows {
		n += r.chunks
	}
	return n
}

// move moves all, which must be so many chunks.
func (m *mover) move(ctx context.Context, expected int) error {
	var after pageRow
	after.ordinal = -1
	for {
		p, err := m.read(ctx, after)
		if err != nil {
			return err
		}
		if len(p.rows) == 0 {
			break
		}
		if err := m.copyPage(ctx, p); err != nil {
			return err
		}
		for len(m.docs) >= postings.MaxSegmentDocs {
			if err := m.segment(ctx, postings.MaxSegmentDocs); err != nil {
				return err
			}
		}
		after = p.rows[len(p.rows)-1]
	}
	if m.moved != expected {
		return fmt.Errorf("%w: %d chunks where %d were counted", errStaged, m.moved, expected)
	}
	return m.segment(ctx, len(m.docs))
}

// read fetches the page behind a row, ids for its chunks, and those of their vectors that are staged.
func (m *mover) read(ctx context.Context, after pageRow) (page, error) {
	if m.source != nil {
		return m.source.read(ctx, m, after)
	}
	p := page{vectors: map[place][]byte{}}
	rows, err := m.tx.Query(ctx, query("swap_staged"), m.generation, m.keys, m.versions, stagedLayout, after.key, after.ordinal, pageRows)
	if err != nil {
		return p, err
	}
	var r pageRow
	_, err = pgx.ForEachRow(rows, []any{&r.key, &r.ordinal, &r.chunks, &r.data}, func() error {
		p.rows = append(p.rows, r)
		r.data = nil // the next one gets memory of its own
		return nil
	})
	if err != nil || len(p.rows) == 0 {
		return p, err
	}
	b := &pgx.Batch{}
	b.Queue(query("chunk_ids"), p.chunks()).QueryRow(func(row pgx.Row) error { return row.Scan(&p.ids) })
	if m.stagedVectors {
		first, last := p.rows[0], p.rows[len(p.rows)-1]
		b.Queue(query("swap_vectors"), m.generation, m.keys, m.versions, first.key, first.ordinal, last.key, last.ordinal+last.chunks-1).Query(p.readVectors)
	}
	return p, m.tx.SendBatch(ctx, b).Close()
}

func (p page) readVectors(rows pgx.Rows) error {
	var at place
	for rows.Next() {
		if err := rows.Scan(&at.key, &at.ordinal, nil); err != nil {
			return err
		}
		p.vectors[at] = bytes.Clone(rows.RawValues()[2])
	}
	return rows.Err()
}

// copyPage writes the chunks of a page and gathers their terms.
func (m *mover) copyPage(ctx context.Context, p page) error {
	var out copyStream
	next := 0
	for _, r := range p.rows {
		err := unpack(r.chunks, r.data, func(t stagedTuple) error {
			id := p.ids[next]
			next++
			if err := m.appendRow(&out, r.key, id, t, p.vectors); err != nil {
				return err
			}
			return m.addDoc(id, t)
		})
		if err != nil {
			return err
		}
	}
	m.moved += next
	return out.send(ctx, m.tx, "chunks (generation, chunk_id, document_key, version, "+stagedFields+", embedding)")
}

const movedFields = 4 + stagedCount + 1

func (m *mover) appendRow(out *copyStream, key, id int64, t stagedTuple, staged map[place][]byte) (err error) {
	out.row(movedFields)
	for _, n := range []int64{m.generation, id, key, m.versionOf[key]} {
		out.buf = appendInt8(out.buf, n)
	}
	out.buf = append(out.buf, t.raw...)
	at := place{key, t.int(fieldOrdinal)}
	if v, ok := staged[at]; ok {
		out.buf = appendField(out.buf, v)
		return nil
	}
	if v, ok := m.hand.vectorOf(at, m.versionOf[key]); ok {
		out.buf, err = appendHalf(out.buf, v)
		return err
	}
	if m.hasVectors {
		return fmt.Errorf("%w: no vector of chunk %d", errStaged, at.ordinal)
	}
	out.buf = appendNull(out.buf)
	return nil
}

func (m *mover) addDoc(id int64, t stagedTuple) error {
	terms, err := termsOf(t.fields[fieldLex])
	if err != nil {
		return err
	}
	m.docs = append(m.docs, postings.Doc{ChunkID: id, Len: t.int(fieldLexLen), Terms: terms})
	return nil
}

// segment writes the first n of the gathered chunks as a posting segment.
func (m *mover) segment(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	seg, rows, err := postings.Build(m.docs[:n])
	if err != nil {
		return err
	}
	m.docs = m.docs[n:]
	return writeSegment(ctx, m.tx, m.generation, seg, rows)
}
