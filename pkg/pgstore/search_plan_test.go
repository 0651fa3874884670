package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/pgstore"
)

// planned is a knowledge base large enough for the planner to care, with two subspaces.
func planned(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.newKB("large", "cosine", true)
	rng := rand.New(rand.NewPCG(13, 14))
	for d := range 20 {
		chunks := make([]string, 150)
		for i := range chunks {
			chunks[i] = words(rng) + strings.Repeat(" filler", 200)
		}
		l.put([]string{"a", "b"}[d%2], fmt.Sprintf("d%02d", d), chunks, nil, rng)
	}
	for _, fill := range []string{ // other tenants' rows, so that the tables are large
		`INSERT INTO knowledge_bases (tenant, name, index_type) SELECT 't', 'kb' || i, 'bm25' FROM generate_series(1, 2000) i`,
		`INSERT INTO generations (kb_id, state, parser, chunking, analyzer) SELECT id, 'live', 'p', '{}', 'lex1' FROM knowledge_bases WHERE tenant = 't'`,
		`INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq, live_version)
			SELECT k.id, 's', i::text, 1, 'Ready', 0, 0, 1 FROM knowledge_bases k, generate_series(1, 10) i WHERE tenant = 't'`,
		`INSERT INTO lex_posting SELECT 1000 + i % 50, i, i % 300, 1, 'x' FROM generate_series(1, 100000) i`,
		`INSERT INTO lex_segment (generation, n_docs, sum_len, chunk_ids, lens) SELECT 1000 + i % 50, 1, 1, 'x', 'x' FROM generate_series(1, 2000) i`,
		`INSERT INTO lex_tombstone SELECT 1000 + i % 50, i, 1 FROM generate_series(1, 10000) i`,
		`VACUUM ANALYZE`,
	} {
		if _, err := l.pool.Exec(t.Context(), fill); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// explain runs a statement, under settings if there are any, and returns its plan, made for these arguments.
func (l *lab) explain(s pgstore.SQL, settings ...string) string {
	l.t.Helper()
	var lines []string
	err := pgx.BeginFunc(l.t.Context(), l.pool, func(tx pgx.Tx) error {
		for _, sql := range settings {
			if _, err := tx.Exec(l.t.Context(), sql); err != nil {
				return err
			}
		}
		rows, err := tx.Query(l.t.Context(), "EXPLAIN (ANALYZE, VERBOSE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) "+s.Text, s.Args...)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// generic returns the plan that is kept for any arguments, under settings.
func (l *lab) generic(statement, settings string) string {
	l.t.Helper()
	conn, err := l.pool.Acquire(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Release()
	results, err := conn.Conn().PgConn().Exec(l.t.Context(), "BEGIN; "+settings+"; EXPLAIN (GENERIC_PLAN, VERBOSE, COSTS OFF) "+statement+"; ROLLBACK").ReadAll()
	if err != nil {
		l.t.Fatalf("%s: %v", statement, err)
	}
	var out strings.Builder
	for _, row := range results[2].Rows {
		out.Write(append(row[0], '\n'))
	}
	return out.String()
}

func TestPlansOfHotStatements(t *testing.T) {
	l := planned(t)
	gen := l.kb.Generation.ID
	part := fmt.Sprintf("chunks_g%d", gen)
	var ids, segs []int64
	for _, s := range l.stored()[:40] {
		ids = append(ids, s.id)
	}
	rows, err := l.pool.Query(t.Context(), "SELECT seg FROM lex_segment WHERE generation = $1", gen)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var seg int64
		if err := rows.Scan(&seg); err != nil {
			t.Fatal(err)
		}
		segs = append(segs, seg)
	}
	rows.Close()
	hashes := []int64{}
	for _, term := range l.textPlan("pump valve seal", 10).Terms {
		hashes = append(hashes, term.Hash)
	}
	dense := &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 20}
	hybrid, err := pgstore.HybridSQL(pgstore.SearchPlan{KB: l.kb, Dense: dense}, ids)
	if err != nil {
		t.Fatal(err)
	}
	textOnly, err := pgstore.HybridSQL(pgstore.SearchPlan{KB: l.kb}, ids)
	if err != nil {
		t.Fatal(err)
	}
	missing := make([]int64, len(segs))
	for i := range missing {
		missing[i] = hashes[0]
	}
	for _, c := range []struct {
		name  string
		sql   pgstore.SQL
		scans int // sequential scans, all of the partition
		want  []string
	}{
		{"check", pgstore.SQL{Text: pgstore.Query("search_check"), Args: []any{l.kb.ID, l.kb.Revision, gen}}, 0, nil},
		{"tombstones", pgstore.SQL{Text: pgstore.Query("tombstones"), Args: []any{gen}}, 0, []string{"lex_tombstone_pkey"}},
		{"segments", pgstore.SQL{Text: pgstore.Query("search_segments"), Args: []any{gen, segs}}, 0, []string{"lex_segment_pkey"}},
		{"postings of new segments", pgstore.SQL{Text: pgstore.Query("search_postings_new"), Args: []any{gen, hashes, []int64{}}}, 0, []string{"lex_posting_pkey"}},
		{"missing postings", pgstore.SQL{Text: pgstore.Query("search_postings_missing"), Args: []any{gen, missing, segs}}, 0, []string{"lex_posting_pkey"}},
		{"inactive chunks", pgstore.HiddenSQL(gen), 0, nil},
		{"hybrid", hybrid, 1, []string{"top-N heapsort", "documents_pkey"}},
		{"identity of full-text candidates", textOnly, 0, nil},
		{"content", pgstore.ContentSQL(gen, ids), 0, nil},
		{"cut of ties", pgstore.CutSQL(gen, ids, 10), 0, nil},
	} {
		plan := l.explain(c.sql)
		for kind, plan := range map[string]string{"for these arguments": plan, "for all": l.generic(c.sql.Text, "SELECT")} {
			if strings.Count(plan, "Seq Scan on public."+part) != c.scans || strings.Count(plan, "Seq Scan") != c.scans {
				t.Errorf("%s, %s: want %d sequential scans, of %s\n%s", c.name, kind, c.scans, part, plan)
			}
		}
		for _, w := range c.want {
			if !strings.Contains(plan, w) {
				t.Errorf("%s: want %q\n%s", c.name, w, plan)
			}
		}
		if strings.Contains(plan, "JIT") || strings.Contains(plan, "Parallel") {
			t.Errorf("%s: compiled or parallel\n%s", c.name, plan)
		}
		t.Logf("%s\n%s", c.name, plan)
	}
}

// The exact scan reads the vectors and nothing beside them: no long value is fetched from its table.
func TestTheExactScanReadsNoLongValue(t *testing.T) {
	l := planned(t)
	st, err := pgstore.HybridSQL(pgstore.SearchPlan{KB: l.kb, Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 20}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var storage string
	var pages int64
	err = l.pool.QueryRow(t.Context(), `SELECT a.attstorage::text, pg_relation_size(a.attrelid) / 8192 FROM pg_attribute a
		WHERE a.attrelid = $1::regclass AND a.attname = 'embedding'`, fmt.Sprintf("chunks_g%d", l.kb.Generation.ID)).Scan(&storage, &pages)
	if err != nil {
		t.Fatal(err)
	}
	if storage != "p" {
		t.Errorf("storage of vectors: got %q, want p (always inline)", storage)
	}
	t.Logf("%d pages\n%s", pages, l.explain(st))
}
