package pgstore_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore"
)

// filled has so many documents, each with rows in every table of ingestion. Half of them are open.
func filled(t *testing.T, documents int, analyzed bool) *env {
	t.Helper()
	e := newEnv(t)
	fill(e, documents)
	if analyzed {
		if _, err := e.pool.Exec(t.Context(), `VACUUM ANALYZE`); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func fill(e *env, documents int) {
	e.t.Helper()
	for _, sql := range []string{
		`INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq)
			SELECT id, '_default', i::text, 1, CASE WHEN i % 2 = 0 THEN 'Indexing' ELSE 'Pending' END, 0, i FROM knowledge_bases, generate_series(1, ` + fmt.Sprint(documents) + `) i`,
		`INSERT INTO document_versions (document_key, version, kb_id, generation, title, oss_key, content_type, metadata, typed, sha256, size_bytes)
			SELECT key, 1, kb_id, g, '', '', '', '{}', '{}', sha256(key::text::bytea), 4 FROM documents, (SELECT max(id) FROM generations) x(g)`,
		`INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome)
			SELECT key::text, kb_id, key, 1, 0, 0, '', 'accepted' FROM documents`,
		`INSERT INTO blobs (kb_id, sha256, size_bytes) SELECT kb_id, sha256, 4 FROM document_versions`,
		`INSERT INTO blob_parts (kb_id, sha256, part, data) SELECT kb_id, sha256, 0, 'text' FROM document_versions`,
		`INSERT INTO document_builds (generation, document_key, version, state) SELECT generation, document_key, 1, 'pending' FROM document_versions`,
		`INSERT INTO staged_chunks SELECT v.generation, document_key, 1, 0, 1, 1, '' FROM document_versions v`,
		`INSERT INTO staged_vectors SELECT v.generation, document_key, 1, 0, '[1,0,0,0]' FROM document_versions v`,
		`INSERT INTO chunks (generation, chunk_id, document_key, version, ordinal, page_from, page_to, tokens, lex_len, embedding, heading_path, context, content, hash, lex)
			SELECT generation, document_key, document_key, 1, 0, 0, 0, 1, 1, '[1,0,0,0]', '{}', '', '', sha256, '' FROM document_versions`,
	} {
		if _, err := e.pool.Exec(e.t.Context(), sql+" ON CONFLICT DO NOTHING"); err != nil {
			e.t.Fatalf("%s: %v", sql, err)
		}
	}
}

var scan = regexp.MustCompile(`(Seq|Index|Index Only) Scan (using \S+ )?on public\.(documents|document_versions|document_receipts|document_builds|blobs|blob_parts|staged_chunks|staged_vectors|chunks_g\d+)\b|Bitmap Index Scan`)

// byKey is a condition on what few rows share.
var byKey = regexp.MustCompile(`Index Cond: .*\b(key|document_key|doc_id|source|sha256|hash)\b`)

// unbounded returns the first part of a plan that may read a table or an index whole; empty: none does.
func unbounded(plan string) string {
	for part := range strings.SplitSeq(plan, "->") {
		if scan.MatchString(part) && !byKey.MatchString(part) {
			return part
		}
	}
	return ""
}

// Statements over arrays look up each element, whatever the planner knows of the tables: their plans are kept, and a plan
// that was made while a table held next to nothing serves until it is analysed.
func TestPlansOfIngestion(t *testing.T) {
	for _, documents := range []int{0, 1, 20000} {
		for _, analyzed := range []bool{false, true} {
			t.Run(fmt.Sprintf("documents=%d/analyzed=%v", documents, analyzed), func(t *testing.T) {
				testPlansOfIngestion(t, documents, analyzed)
			})
		}
	}
}

func testPlansOfIngestion(t *testing.T, documents int, analyzed bool) {
	l := &lab{env: filled(t, documents, analyzed)}
	const n = 32
	g := l.kb.Generation.ID
	var keys, versions []int64
	hand := make([]bool, n)
	for i := range int64(n) {
		keys, versions = append(keys, 100*(i+1)), append(versions, 1)
	}
	kept := map[string]string{"stage_reuse": pgstore.ReuseFrom(g)}
	for _, name := range []string{
		"intake_lock", "intake_state", "intake_advance", "intake_owner", "intake_drop_versions", "intake_drop_staged", "intake_unsplit",
		"intake_metadata", "blob_lock", "receipts_of_version", "split_fence",
		"parse_begin", "stage_lock", "build_stage_lock", "stage_finish", "build_stage_finish", "ready_events",
	} {
		kept[name] = pgstore.Query(name)
	}
	for name, text := range kept {
		plan := l.generic(text, pgstore.Query("lookup_plans"))
		if found := unbounded(plan); found != "" || strings.Contains(plan, "Bitmap") {
			t.Errorf("%s:%s\nin\n%s", name, found, plan)
		}
	}
	if documents < n {
		return // the others are planned anew each time
	}
	for name, args := range map[string][]any{
		"swap_lock_rows":    {keys},
		"swap_lock":         {keys, versions, hand, g, 1},
		"build_lock":        {keys, versions, hand, g, 1},
		"build_staged_drop": {g, keys, versions},
		"swap_staged":       {g, keys, versions, 1, 0, 512},
		"swap_vectors":      {g, keys, versions, 0, 512},
		"swap_documents":    {keys, versions},
		"staged_drop":       {keys, versions},
	} {
		plan := l.explain(pgstore.SQL{Text: pgstore.Query(name), Args: args})
		if found := unbounded(plan); found != "" {
			t.Errorf("%s:%s\nin\n%s", name, found, plan)
		}
	}
}
