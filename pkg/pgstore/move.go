package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// pageChunks is about how many staged chunks are in memory at once, some 3 MB.
const pageChunks = 1000

// mover writes the staged chunks of complete versions, with their vectors, into chunks, and their posting
// segments. What is in memory is a page of chunks and the terms of one segment, however long a version is.
type mover struct {
	tx            pgx.Tx
	generation    int64
	spans         []span
	expected      int             // chunks of all
	versionOf     map[int64]int64 // by document key
	stagedVectors bool            // some vectors are staged; else all are in hand
	hasVectors    bool
	hand          hand
	source        *liveSource    // chunks to copy instead of staged ones; nil: staged ones
	docs          []postings.Doc // not in a segment yet
	terms         termReader     // makes those of docs
	moved         int
	out           copyStream // its memory serves one page after the other
}

// span is what a page holds: all chunks of some documents, or those of one from an ordinal to another.
type span struct {
	keys, versions []int64
	from, to       int // ordinals, without to
}

// spansOf divides versions into pages, in order of key.
func spansOf(ready []swapRow) []span {
	ready = slices.SortedFunc(slices.Values(ready), func(a, b swapRow) int { return cmp.Compare(a.DocKey, b.DocKey) })
	var out []span
	room := 0 // in the last one
	for _, r := range ready {
		if len(out) == 0 || r.chunks > room {
			out, room = append(out, span{to: pageChunks}), pageChunks
		}
		last := &out[len(out)-1]
		last.keys, last.versions = append(last.keys, r.DocKey), append(last.versions, r.Version)
		for room -= r.chunks; last.to < r.chunks; last = &out[len(out)-1] {
			out = append(out, span{keys: last.keys, versions: last.versions, from: last.to, to: last.to + pageChunks})
		}
	}
	return out
}

func moverOf(tx pgx.Tx, generation int64, ready []swapRow, h hand) *mover {
	m := &mover{tx: tx, generation: generation, spans: spansOf(ready), versionOf: make(map[int64]int64, len(ready)), hand: h}
	for _, r := range ready {
		m.expected += r.chunks
		m.versionOf[r.DocKey] = r.Version
		m.stagedVectors = m.stagedVectors || r.vectors > 0
		m.hasVectors = r.hasVectors // of the generation, so of all
	}
	return m
}

// page is the staged rows of a span in the order of document and ordinal.
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

// bytes of the staged fields.
func (p page) bytes() int {
	n := 0
	for _, r := range p.rows {
		n += len(r.data)
	}
	return n
}

// sort orders the rows here: in the database it would copy all of them once more.
func (p page) sort() {
	slices.SortFunc(p.rows, func(a, b pageRow) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.ordinal, b.ordinal)) })
}

// move moves all.
func (m *mover) move(ctx context.Context) error {
	for _, s := range m.spans {
		p, err := m.read(ctx, s)
		if err != nil {
			return err
		}
		p.sort()
		if err := m.copyPage(ctx, p); err != nil {
			return err
		}
		for len(m.docs) >= postings.MaxSegmentDocs {
			if err := m.segment(ctx, postings.MaxSegmentDocs); err != nil {
				return err
			}
		}
	}
	if m.moved != m.expected {
		return fmt.Errorf("%w: %d chunks where %d were counted", errStaged, m.moved, m.expected)
	}
	return m.segment(ctx, len(m.docs))
}

// read fetches a page, ids for its chunks, and those of their vectors that are staged.
func (m *mover) read(ctx context.Context, s span) (page, error) {
	if m.source != nil {
		return m.source.read(ctx, m.tx, s)
	}
	var p page
	rows, err := m.tx.Query(ctx, query("swap_staged"), pgx.QueryResultFormats{pgx.BinaryFormatCode}, m.generation, s.keys, s.versions, stagedLayout, s.from, s.to)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	end := s.from
	for rows.Next() {
		raw := rows.RawValues()
		r := pageRow{bigEndian64(raw[0]), packed{bigEndian32(raw[1]), bigEndian32(raw[2]), append([]byte(nil), raw[3]...)}}
		p.rows, end = append(p.rows, r), max(end, r.ordinal+r.chunks)
	}
	if err := rows.Err(); err != nil {
		return p, err
	}
	b := &pgx.Batch{}
	p.number(b)
	if m.stagedVectors {
		p.vectors = map[place][]byte{}
		b.Queue(query("swap_vectors"), m.generation, s.keys, s.versions, s.from, end).Query(p.readVectors)
	}
	return p, m.tx.SendBatch(ctx, b).Close()
}

// number queues taking ids for the chunks.
func (p *page) number(b *pgx.Batch) {
	b.Queue(query("chunk_ids"), p.chunks()).QueryRow(func(row pgx.Row) error { return row.Scan(&p.ids) })
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
	out := &m.out
	out.reset(p.bytes() + p.chunks()*(movedHead+m.vectorBytes(p)))
	next := 0
	for _, r := range p.rows {
		err := unpack(r.chunks, r.data, func(t stagedTuple) error {
			id := p.ids[next]
			next++
			if err := m.appendRow(out, r.key, id, t, p.vectors); err != nil {
				return err
			}
			return m.addDoc(id, t)
		})
		if err != nil {
			return err
		}
	}
	m.moved += next
	return out.send(ctx, m.tx.Conn(), "chunks (generation, chunk_id, document_key, version, "+stagedFields+", embedding)")
}

const movedFields = 4 + stagedCount + 1

// movedHead is how many bytes stand before the staged fields and before the vector.
const movedHead = 2 + 4*12 + 4

// vectorBytes is the size of one vector of a page.
func (m *mover) vectorBytes(p page) int {
	for _, v := range p.vectors {
		return len(v)
	}
	for _, vectors := range m.hand {
		for _, v := range vectors {
			return 4 + 2*len(v)
		}
	}
	return 0
}

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
	terms, err := m.terms.read(t.fields[fieldLex])
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
