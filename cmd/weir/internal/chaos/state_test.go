package chaos_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// state is what an installation holds, free of ids: one line a fact.
func (w *world) state() []string {
	w.t.Helper()
	lines := w.lines(`SELECT format('document %s: %s, version %s, live %s, title %s', doc_id, status, version, live_version, live_title) FROM documents`)
	lines = append(lines, w.lines(`
		SELECT format('chunk %s/%s/%s: %s', d.doc_id, c.version, c.ordinal, md5(concat_ws('|', c.content, c.context, c.heading_path::text,
			c.page_from, c.page_to, c.tokens, encode(c.hash, 'hex'), c.embedding::text, c.lex::text, c.lex_len, c.active)))
		FROM chunks c LEFT JOIN documents d ON d.key = c.document_key AND d.live_version = c.version`)...)
	lines = append(lines, w.postings()...)
	slices.Sort(lines)
	return lines
}

func (w *world) lines(sql string) []string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), sql)
	if err != nil {
		w.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return lines
}

// postings decodes every segment to term, chunk and frequency, without what the tombstones take out. It
// finds chunks that stand in two segments, in none, or in one without being there, and tombstones of
// nothing, on the way.
func (w *world) postings() []string {
	w.t.Helper()
	tx, err := w.pool.BeginTx(w.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		w.t.Fatal(err)
	}
	defer tx.Rollback(w.t.Context()) //nolint:errcheck // it only reads
	chunks, dead := map[int64]string{}, map[int64]bool{}
	w.each(tx, `SELECT c.chunk_id, format('%s/%s/%s', d.doc_id, c.version, c.ordinal) FROM chunks c JOIN documents d ON d.key = c.document_key`, func(id int64, name string) { chunks[id] = name })
	w.each(tx, `SELECT chunk_id, '' FROM lex_tombstone`, func(id int64, _ string) { dead[id] = true })
	held := map[int64]int{}
	segments := map[int64][]int64{}
	rows, err := tx.Query(w.t.Context(), `SELECT seg, chunk_ids FROM lex_segment`)
	if err != nil {
		w.t.Fatal(err)
	}
	var seg int64
	var packed []byte
	if _, err := pgx.ForEachRow(rows, []any{&seg, &packed}, func() error {
		for ; len(packed) > 0; packed = packed[8:] {
			id := int64(binary.LittleEndian.Uint64(packed)) //nolint:gosec // the same bits
			segments[seg] = append(segments[seg], id)
			held[id]++
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	w.checkSegments(chunks, dead, held)
	return w.decode(tx, segments, chunks, dead)
}

func (w *world) each(tx pgx.Tx, sql string, visit func(id int64, name string)) {
	w.t.Helper()
	rows, err := tx.Query(w.t.Context(), sql)
	if err != nil {
		w.t.Fatal(err)
	}
	var id int64
	var name string
	if _, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error { visit(id, name); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) checkSegments(chunks map[int64]string, dead map[int64]bool, held map[int64]int) {
	w.t.Helper()
	for id, n := range held {
		if n > 1 {
			w.t.Errorf("chunk %s (%d) stands in %d segments", chunks[id], id, n)
		}
		if _, live := chunks[id]; live == dead[id] {
			w.t.Errorf("chunk %s (%d) of a segment: live %v, tombstone %v", chunks[id], id, live, dead[id])
		}
	}
	for id, name := range chunks {
		if held[id] == 0 {
			w.t.Errorf("chunk %s (%d) stands in no segment", name, id)
		}
	}
	for id := range dead {
		if held[id] == 0 {
			w.t.Errorf("a tombstone of chunk %d, which no segment holds", id)
		}
	}
}

func (w *world) decode(tx pgx.Tx, segments map[int64][]int64, chunks map[int64]string, dead map[int64]bool) []string {
	w.t.Helper()
	rows, err := tx.Query(w.t.Context(), `SELECT seg, term, n, data FROM lex_posting`)
	if err != nil {
		w.t.Fatal(err)
	}
	byChunk := map[string][]string{}
	var p postings.Posting
	var entries []postings.Entry
	_, err = pgx.ForEachRow(rows, []any{&p.Seg, &p.Term, &p.N, &p.Data}, func() error {
		ids := segments[p.Seg]
		var err error
		if entries, err = postings.AppendEntries(entries[:0], p, len(ids)); err != nil {
			return err
		}
		for _, e := range entries {
			if id := ids[e.Ord]; !dead[id] {
				byChunk[chunks[id]] = append(byChunk[chunks[id]], fmt.Sprintf("%d:%d", p.Term, e.TF))
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	lines := make([]string, 0, len(byChunk))
	for name, terms := range byChunk {
		slices.Sort(terms)
		lines = append(lines, "postings "+name+": "+strings.Join(terms, " "))
	}
	return lines
}

// difference describes how got differs from want, a few lines of each side; empty when it does not.
func difference(got, want []string) string {
	const most = 10
	count := map[string]int{}
	for _, line := range want {
		count[line]++
	}
	var extra []string
	for _, line := range got {
		if count[line]--; count[line] < 0 {
			extra = append(extra, "+ "+cut(line))
		}
	}
	var missing []string
	for _, line := range slices.Sorted(maps.Keys(count)) {
		if count[line] > 0 {
			missing = append(missing, "- "+cut(line))
		}
	}
	if len(extra)+len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("%d lines too many, %d missing\n%s\n%s", len(extra), len(missing),
		strings.Join(extra[:min(len(extra), most)], "\n"), strings.Join(missing[:min(len(missing), most)], "\n"))
}

func cut(line string) string { return line[:min(len(line), 200)] }

// rows is every row with the transaction that wrote it, but of the receipts, and of the segments, which are merged
// at any time; state tells what those hold.
func (w *world) rows() []string {
	w.t.Helper()
	var all []string
	for _, table := range w.lines(`SELECT format('%I', relname) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'document_receipts' AND NOT starts_with(relname, 'lex_')`) {
		all = append(all, w.lines(`SELECT '`+table+` ' || r.xmin || ' ' || md5(r::text) FROM `+table+` r`)...)
	}
	return all
}
