package pgstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/postings"
)

// Vector is the embedding of one chunk.
type Vector struct {
	Ordinal int
	Values  []float32
}

// StageVectors writes vectors of a version; ones that are there already stay. It is its own
// transaction, so that of several last batches at least one sees all.
func (s *Store) StageVectors(ctx context.Context, ref messages.Ref, vectors []Vector) error {
	if len(vectors) == 0 {
		return nil
	}
	ordinals, values := make([]int, len(vectors)), make([]pgvector.HalfVector, len(vectors))
	for i, v := range vectors {
		ordinals[i], values[i] = v.Ordinal, pgvector.NewHalfVector(v.Values)
	}
	statement := query("vectors_insert")
	if ref.Build {
		statement = query("build_vectors_insert")
	}
	_, err := s.pool.Exec(ctx, statement, ref.Generation, ref.DocKey, ref.Version, ordinals, values)
	if err != nil {
		return fmt.Errorf("stage vectors of %s: %w", ref.DocID, err)
	}
	return nil
}

// Candidate is a version that may be complete. Build says that it is built for a job.
type Candidate struct {
	DocKey, Version int64
	Build           bool
}

// Finished is a candidate with vectors in hand that were not staged: all that its one message brought.
type Finished struct {
	Candidate
	Vectors []Vector
}

// SwapResult tells what a swap did with its candidates; those in neither list are stale or done.
type SwapResult struct {
	Swapped    []Candidate // live and Ready now, or built
	Incomplete []Candidate // vectors are missing
	Lost       []Candidate // staged chunks are missing, or of a generation that is not live any more: parse again
}

// swapRow is a candidate as seen under the locks.
type swapRow struct {
	Candidate
	current        bool // its generation is the live one, or built
	kbID           int64
	live           *int64
	chunks         int
	hasVectors     bool
	staged         int // chunks
	vectors, added int // staged vectors, and those in hand that are not staged
}

// place is a chunk of the version of a document that is being swapped.
type place struct {
	key     int64
	ordinal int
}

// hand is the vectors in hand of a group, by version: one of an overtaken version never stands for its successor's.
type hand map[handOwner]map[int][]float32 // by ordinal

type handOwner struct{ key, version int64 }

func handOf(finished []Finished) hand {
	h := hand{}
	for _, f := range finished {
		owner := handOwner{f.DocKey, f.Version}
		for _, v := range f.Vectors {
			if h[owner] == nil {
				h[owner] = make(map[int][]float32, len(f.Vectors))
			}
			h[owner][v.Ordinal] = v.Values
		}
	}
	return h
}

func (h hand) vectorOf(at place, version int64) ([]float32, bool) {
	v, ok := h[handOwner{at.key, version}][at.ordinal]
	return v, ok
}

// added counts the vectors of a version's chunks that are in hand and not staged.
func (h hand) added(r swapRow, staged []int) int {
	have := h[handOwner{r.DocKey, r.Version}]
	n := len(have)
	for _, ordinal := range staged {
		if _, both := have[ordinal]; both {
			n--
		}
	}
	for ordinal := range have {
		if ordinal >= r.chunks && !slices.Contains(staged, ordinal) {
			n--
		}
	}
	return n
}

// SwapVersions makes every complete candidate of a generation live in one transaction: its rows move
// from the staged tables to chunks, the old version's leave, one posting segment and the tombstones
// are written, and the documents are Ready. Readers see all of it or nothing. Candidates that are
// incomplete, overtaken or done already are left alone, so repeating a call is harmless, and so is naming
// one twice, each time with some of its vectors. What a job builds is committed along with it.
func (s *Store) SwapVersions(ctx context.Context, generation int64, finished []Finished) (SwapResult, error) {
	var res SwapResult
	h := handOf(finished)
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		res = SwapResult{}
		l, err := lockSwap(ctx, tx, generation, finished, h)
		if err != nil {
			return err
		}
		if ready := res.sort(l.rows); len(ready) > 0 {
			if err := fanOut(ctx, tx, l.generations, ready); err != nil {
				return err
			}
			if err := swap(ctx, tx, generation, ready, h); err != nil {
				return err
			}
			l.replaced(ready)
		}
		return commitBuilds(ctx, tx, generation, l, finished, h, &res)
	})
	if err != nil {
		return SwapResult{}, fmt.Errorf("swap %d versions of generation %d: %w", len(finished), generation, err)
	}
	return res, nil
}

// candidatesOf lists the candidates of a group, those of jobs or the others, each once: several messages of a version
// may meet in it.
func candidatesOf(finished []Finished, builds bool) (keys, versions []int64) {
	seen := map[Candidate]bool{}
	for _, f := range finished {
		if f.Build == builds && !seen[f.Candidate] {
			seen[f.Candidate] = true
			keys, versions = append(keys, f.DocKey), append(versions, f.Version)
		}
	}
	return keys, versions
}

// holds tells of each version whether some of its vectors are in hand.
func (h hand) holds(keys, versions []int64) []bool {
	out := make([]bool, len(keys))
	for i, key := range keys {
		out[i] = len(h[handOwner{key, versions[i]}]) > 0
	}
	return out
}

// sort files the rows under what they are and returns those to swap.
func (r *SwapResult) sort(rows []swapRow) []swapRow {
	var ready []swapRow
	for _, row := range rows {
		switch {
		case row.staged < row.chunks || !row.current:
			r.Lost = append(r.Lost, row.Candidate)
		case row.hasVectors && row.vectors+row.added < row.chunks:
			r.Incomplete = append(r.Incomplete, row.Candidate)
		default:
			r.Swapped = append(r.Swapped, row.Candidate)
			ready = append(ready, row)
		}
	}
	return ready
}

// lockSwap locks the knowledge base against deletion and switches, then the documents in order of key,
// and only then looks, with a snapshot that sees whatever the locks waited for.
func lockSwap(ctx context.Context, tx pgx.Tx, generation int64, finished []Finished, h hand) (locked, error) {
	keys, versions := candidatesOf(finished, false)
	builds, built := candidatesOf(finished, true)
	var l locked
	b := &pgx.Batch{}
	b.Queue(query("swap_kb_lock"), generation)
	b.Queue(query("swap_generations"), generation).Query(func(found pgx.Rows) (err error) {
		l.generations, err = pgx.CollectRows(found, pgx.RowToStructByPos[generationState])
		return err
	})
	b.Queue(query("swap_lock_rows"), slices.Concat(keys, builds))
	if len(keys) > 0 {
		b.Queue(query("swap_lock"), keys, versions, h.holds(keys, versions), generation, stagedLayout).Query(scanSwapRows(&l.rows, false, h))
	}
	if len(builds) > 0 {
		b.Queue(query("build_lock"), builds, built, h.holds(builds, built), generation, stagedLayout).Query(scanSwapRows(&l.builds, true, h))
	}
	return l, tx.SendBatch(ctx, b).Close()
}

// locked is what a swap works on, as seen under the locks.
type locked struct {
	rows, builds []swapRow
	generations  []generationState // of the knowledge base, but for dead ones
}

// replaced takes builds of documents off that have a new version now: they are late.
func (l *locked) replaced(swapped []swapRow) {
	l.builds = slices.DeleteFunc(l.builds, func(b swapRow) bool {
		return slices.ContainsFunc(swapped, func(s swapRow) bool { return s.DocKey == b.DocKey })
	})
}

type generationState struct {
	ID    int64
	State string
}

func scanSwapRows(into *[]swapRow, build bool, h hand) func(pgx.Rows) error {
	return func(found pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (swapRow, error) {
			r := swapRow{Candidate: Candidate{Build: build}}
			var ordinals []int // of staged vectors
			err := row.Scan(&r.DocKey, &r.Version, &r.current, &r.kbID, &r.live, &r.chunks, &r.hasVectors, &r.staged, &r.vectors, &ordinals)
			r.added = h.added(r, ordinals)
			return r, err
		})
		return err
	}
}

func swap(ctx context.Context, tx pgx.Tx, generation int64, ready []swapRow, h hand) error {
	keys, versions, replaced := make([]int64, len(ready)), make([]int64, len(ready)), []int64{}
	for i, r := range ready {
		keys[i], versions[i] = r.DocKey, r.Version
		if r.live != nil {
			replaced = append(replaced, r.DocKey)
		}
	}
	if len(replaced) > 0 {
		if _, err := tx.Exec(ctx, query("swap_reactivated"), generation, keys, versions); err != nil {
			return err
		}
		if err := dropReplaced(ctx, tx, ready[0].kbID, replaced); err != nil {
			return err
		}
	}
	if err := moverOf(tx, generation, ready, h).move(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(query("swap_documents"), keys, versions)
	if len(replaced) > 0 {
		b.Queue(query("swap_drop_versions"), keys, versions) // and with them what jobs build of them
	}
	b.Queue(query("staged_drop"), keys, versions)
	return tx.SendBatch(ctx, b).Close()
}

// dropReplaced removes the live chunks of documents from every generation of the knowledge base.
func dropReplaced(ctx context.Context, tx pgx.Tx, kbID int64, keys []int64) error {
	generations, err := collectColumn[int64](ctx, tx, "kb_generations", kbID)
	if err != nil {
		return err
	}
	for _, g := range generations {
		if _, err := tx.Exec(ctx, query("live_drop"), g, keys); err != nil {
			return err
		}
	}
	return nil
}

func writeSegment(ctx context.Context, tx pgx.Tx, generation int64, seg *postings.Segment, rows []postings.Posting) error {
	var id int64
	err := tx.QueryRow(ctx, query("segment_insert"), generation, seg.N, seg.SumLen, encodeIDs(seg.ChunkIDs), seg.Lens).Scan(&id)
	if err != nil {
		return fmt.Errorf("write segment: %w", err)
	}
	const head = 2 + 3*12 + 8 + 4
	bytes := 0
	for _, r := range rows {
		bytes += head + len(r.Data)
	}
	var out copyStream
	out.reset(bytes)
	for _, r := range rows {
		out.row(5)
		for _, n := range []int64{generation, r.Term, id} {
			out.buf = appendInt8(out.buf, n)
		}
		out.buf = appendField(appendInt4(out.buf, r.N), r.Data)
	}
	if err := out.send(ctx, tx.Conn(), "lex_posting (generation, term, seg, n, data)"); err != nil {
		return fmt.Errorf("write postings: %w", err)
	}
	return nil
}

func encodeIDs(ids []int64) []byte {
	out := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint64(out, uint64(id)) //nolint:gosec // same bits
	}
	return out
}

func decodeIDs(data []byte) []int64 {
	ids := make([]int64, len(data)/8)
	for i := range ids {
		ids[i] = int64(binary.LittleEndian.Uint64(data[8*i:])) //nolint:gosec // same bits
	}
	return ids
}
