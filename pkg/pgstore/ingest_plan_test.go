package pgstore_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore"
)

// filled has rows enough that reading a table whole would be felt. Half of the documents are open.
func filled(t *testing.T, analyzed bool) *env {
	t.Helper()
	e := newEnv(t)
	sqls := []string{
		`INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq)
			SELECT id, '_default', i::text, 1, CASE WHEN i % 2 = 0 THEN 'Indexing' ELSE 'Pending' END, 0, i FROM knowledge_bases, generate_series(1, 20000) i`,
		`INSERT INTO document_versions (document_key, version, kb_id, generation, title, oss_key, content_type, metadata, typed, sha256, size_bytes)
			SELECT key, 1, kb_id, g, '', '', '', '{}', '{}', sha256(key::text::bytea), 4 FROM documents, (SELECT max(id) FROM generations) x(g)`,
		`INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome)
			SELECT key::text, kb_id, key, 1, 0, 0, '', 'accepted' FROM documents`,
		`INSERT INTO blobs (kb_id, sha256, size_bytes) SELECT kb_id, sha256, 4 FROM document_versions`,
		`INSERT INTO blob_parts (kb_id, sha256, part, data) SELECT kb_id, sha256, 0, 'text' FROM document_versions`,
		`INSERT INTO document_builds (generation, document_key, version, state) SELECT generation, document_key, 1, 'pending' FROM document_versions`,
		`INSERT INTO staged_chunks SELECT v.generation, document_key, 1, 0, 1, 1, '' FROM document_versions v`,
		`INSERT INTO staged_vectors SELECT v.generation, document_key, 1, 0, '[1,0,0,0]' FROM document_versions v`,
	}
	if analyzed {
		sqls = append(sqls, `VACUUM ANALYZE`)
	}
	for _, sql := range sqls {
		if _, err := e.pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return e
}

var wholeTable = regexp.MustCompile(`Seq Scan on public\.(documents|document_versions|document_receipts|document_builds|blobs|blob_parts|staged_chunks|staged_vectors)\b`)

// Statements over arrays look up each element, whatever the planner knows of the tables: a plan made while they
// were empty is kept until they are analysed.
func TestPlansOfIngestion(t *testing.T) {
	for _, analyzed := range []bool{false, true} {
		t.Run(fmt.Sprintf("analyzed=%v", analyzed), func(t *testing.T) {
			e := filled(t, analyzed)
			l := &lab{env: e}
			const n = 32
			kb, g := e.kb.ID, e.kb.Generation.ID
			var keys, versions, kbs, generations, revisions []int64
			var subspaces, docs, sources []string
			var hashes [][]byte
			var ordinals []int
			for i := range n {
				var key int64
				var hash []byte
				doc := fmt.Sprint(100 * (i + 1))
				if err := e.pool.QueryRow(t.Context(), `SELECT key, sha256(key::text::bytea) FROM documents WHERE doc_id = $1`, doc).Scan(&key, &hash); err != nil {
					t.Fatal(err)
				}
				keys, versions, kbs, generations, revisions = append(keys, key), append(versions, 1), append(kbs, kb), append(generations, g), append(revisions, 1)
				subspaces, docs, sources, hashes, ordinals = append(subspaces, "_default"), append(docs, doc), append(sources, fmt.Sprint(key)), append(hashes, hash), append(ordinals, 0)
			}
			owners := make([]*int64, n) // none
			for name, args := range map[string][]any{
				"intake_lock":      {kbs, subspaces, docs, revisions},
				"intake_state":     {kbs, subspaces, docs, sources},
				"intake_advance":   {keys, versions, versions, versions, owners, owners, make([]*int, n)},
				"intake_owner":     {keys, owners, owners, make([]*int, n)},
				"blob_lock":        {kbs, hashes},
				"parse_begin":      {keys, versions, kbs, 1 << 16},
				"stage_lock":       {keys, versions, generations},
				"build_stage_lock": {keys, versions, generations},
				"swap_lock_rows":   {keys},
				"swap_lock":        {keys, versions, g, keys, versions, ordinals, 1},
				"swap_staged":      {g, keys, versions, 1, int64(0), -1, 512},
				"swap_vectors":     {g, keys, versions, keys[0], 0, keys[n-1], 0},
				"swap_documents":   {keys, versions},
				"staged_drop":      {keys, versions},
				"ready_events":     {keys, versions},
			} {
				plan := l.explain(pgstore.SQL{Text: pgstore.Query(name), Args: args})
				if found := wholeTable.FindString(plan); found != "" {
					t.Errorf("%s: %s\n%s", name, found, plan)
				}
			}
		})
	}
}
