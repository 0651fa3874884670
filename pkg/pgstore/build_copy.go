package pgstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
)

// Where the chunks that readers see have everything that a build needs, nothing has to be parsed or embedded: they are
// copied from generation to generation, analysed anew if need be, in the transaction that commits the build.

// Copyable reports whether builds of one generation can be copied from another: the same contents cut in the same way,
// in the same space.
func Copyable(from, to Generation) bool {
	return from.ID != to.ID && from.Parser == to.Parser && sameChunking(from.Chunking, to.Chunking) && sameSpace(from.Space, to.Space)
}

func sameSpace(a, b *messages.Space) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func sameChunking(a, b messages.Chunking) bool {
	return a.Strategy == b.Strategy && a.Size == b.Size && (a.Overlap == nil) == (b.Overlap == nil) && (a.Overlap == nil || *a.Overlap == *b.Overlap)
}

// maxCopied bounds the chunks of one transaction, but for one document that has more.
const maxCopied = 4000

// CopyBuilds commits builds whose chunks it can copy from the live generation, as many as one transaction should hold. It
// returns how many those are, and which must be built from their contents because the live generation lacks them.
func (s *Store) CopyBuilds(ctx context.Context, from, to Generation, refs []messages.Ref) (copied int, left []messages.Ref, err error) {
	var analyzer *lexical.Analyzer
	if from.Analyzer != to.Analyzer || from.Fingerprint != to.Fingerprint {
		if analyzer, err = lexical.Lookup(to.Analyzer); err != nil {
			return 0, nil, fmt.Errorf("copy builds: %w", err)
		}
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		rows, missing, err := lockCopy(ctx, tx, from, to, refs)
		if copied, left = len(rows), missing; err != nil || copied == 0 {
			return err
		}
		return copyBuilds(ctx, tx, from, to, rows, analyzer)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("copy %d builds into generation %d: %w", len(refs), to.ID, err)
	}
	return copied, left, nil
}

// lockCopy locks as a swap does and returns what may be copied, and what the live generation lacks.
func lockCopy(ctx context.Context, tx pgx.Tx, from, to Generation, refs []messages.Ref) (ready []swapRow, missing []messages.Ref, err error) {
	keys, versions := make([]int64, len(refs)), make([]int64, len(refs))
	byKey := make(map[int64]messages.Ref, len(refs))
	for i, r := range refs {
		keys[i], versions[i], byKey[r.DocKey] = r.DocKey, r.Version, r
	}
	chunks := 0
	b := &pgx.Batch{}
	b.Queue(query("probe_plans"))
	b.Queue(query("swap_kb_lock"), to.ID)
	b.Queue(query("swap_lock_rows"), keys)
	b.Queue(query("build_copy_lock"), keys, versions, to.ID, from.ID).Query(func(found pgx.Rows) error {
		r := swapRow{Candidate: Candidate{Build: true}, current: true, hasVectors: to.Space != nil}
		var whole bool
		_, err := pgx.ForEachRow(found, []any{&r.DocKey, &r.Version, &r.kbID, &r.chunks, &whole}, func() error {
			switch {
			case r.chunks == 0 || r.hasVectors && !whole:
				missing = append(missing, byKey[r.DocKey])
			case chunks == 0 || chunks+r.chunks <= maxCopied:
				chunks += r.chunks
				ready = append(ready, r)
			}
			return nil
		})
		return err
	})
	return ready, missing, tx.SendBatch(ctx, b).Close()
}

func copyBuilds(ctx context.Context, tx pgx.Tx, from, to Generation, rows []swapRow, analyzer *lexical.Analyzer) error {
	keys, versions := candidateArrays(rows)
	inactive, err := inactiveOf(ctx, tx, rows[0].kbID, keys)
	if err != nil {
		return err
	}
	m := moverOf(tx, to.ID, rows, hand{})
	m.source = &liveSource{generation: from.ID, analyzer: analyzer}
	if err := m.move(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(query("build_copied"), to.ID, keys, versions, from.ID, to.Space != nil)
	b.Queue(query("build_staged_drop"), to.ID, keys, versions)
	if len(inactive.keys) > 0 {
		b.Queue(query("build_deactivate"), to.ID, inactive.keys, inactive.contents)
	}
	return tx.SendBatch(ctx, b).Close()
}

// liveSource gives a mover the chunks of a generation in place of staged ones.
type liveSource struct {
	generation int64
	analyzer   *lexical.Analyzer // nil: terms stay
}

// copyRows is the statement that reads them: columns of chunks are named by staging alone.
func copyRows() string {
	var fields strings.Builder
	for name := range strings.SplitSeq(stagedFields, ", ") {
		fields.WriteString("c." + name + ", ")
	}
	return strings.Replace(query("build_copy_rows"), "/* fields */ ", fields.String(), 1)
}

// columns before the staged fields in copyRows.
const copyLead = 2

// read fetches a page and ids for its chunks.
func (l *liveSource) read(ctx context.Context, tx pgx.Tx, s span) (page, error) {
	p := page{vectors: map[place][]byte{}}
	rows, err := tx.Query(ctx, copyRows(), pgx.QueryResultFormats{pgx.BinaryFormatCode}, l.generation, s.keys, s.from, s.to)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()
		r := pageRow{key: bigEndian64(raw[0]), packed: packed{chunks: 1, data: l.tuple(raw[copyLead : copyLead+stagedCount])}}
		r.ordinal = bigEndian32(raw[copyLead+fieldOrdinal])
		if raw[1] != nil {
			p.vectors[place{r.key, r.ordinal}] = append([]byte(nil), raw[1]...)
		}
		p.rows = append(p.rows, r)
	}
	if err := rows.Err(); err != nil {
		return p, err
	}
	b := &pgx.Batch{}
	p.number(b)
	return p, tx.SendBatch(ctx, b).Close()
}

// tuple is a chunk's fields as they would be staged.
func (l *liveSource) tuple(fields [][]byte) []byte {
	var size int
	for _, f := range fields {
		size += 4 + len(f)
	}
	out := make([]byte, 0, size)
	if l.analyzer != nil {
		doc := l.analyzer.Document(string(fields[fieldContext]), string(fields[fieldContent]))
		fields[fieldLex], fields[fieldLexLen] = NewTSVector(doc), binary.BigEndian.AppendUint32(nil, uint32(doc.Length)) //nolint:gosec // an int4 by the schema
	}
	for _, f := range fields {
		out = appendField(out, f)
	}
	return out
}
