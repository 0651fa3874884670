package pgstore_test

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// settle brings everything to its end: what failed is taken up again, what is open is done, and the job is over.
func (m *mixed) settle(h *mixedHand) {
	m.t.Helper()
	ctx := m.t.Context()
	must := func(err error) {
		m.t.Helper()
		if err != nil && !gone(err) {
			m.t.Fatal(err)
		}
	}
	if m.job.now == nil {
		must(h.startJob(ctx)) // one at least switches generations, or mends
	}
	for round := 0; ; round++ {
		must(h.reopen(ctx))
		open, err := m.store.OpenVersions(ctx, 0, 0, 1000)
		must(err)
		builds, err := m.store.OpenBuilds(ctx, 0, 0, 1000)
		must(err)
		if round == 100 {
			m.t.Fatalf("after %d rounds these are open: %+v, builds %+v, job %+v", round, open, builds, m.job.now)
		}
		m.open = nil
		for _, v := range append(open, builds...) {
			if v.Expected == nil || v.Status == messages.StatusPending {
				m.push(mixedWork{ref: v.Ref})
			} else {
				m.push(mixedWork{v.Ref, *v.Expected})
			}
		}
		for range 4 * len(m.open) {
			must(h.parse(ctx))
			must(h.commit(ctx))
		}
		if m.job.now != nil {
			must(ignore(m.store.ResumeJob(ctx, m.kb.Tenant, messages.ResumeJob{ID: m.job.now.ID, RetryFailed: true})))
			must(h.drive(ctx))
		} else if len(open)+len(builds) == 0 {
			break
		}
	}
	must(ignore(m.store.DropGenerations(ctx, 0)))
	must(ignore(m.store.PurgeDeleted(ctx, 0)))
}

// check counts everything anew.
func (m *mixed) check() {
	m.t.Helper()
	for name, sql := range map[string]string{
		"knowledge bases but one":     `SELECT count(*) - 1 FROM knowledge_bases`,
		"live generations but one":    `SELECT count(*) - 1 FROM generations WHERE state = 'live'`,
		"documents without an end":    `SELECT count(*) FROM documents WHERE status NOT IN ('Ready', 'Deleted')`,
		"ready, but not the newest":   `SELECT count(*) FROM documents WHERE status = 'Ready' AND live_version IS DISTINCT FROM version`,
		"versions of no live version": `SELECT count(*) FROM document_versions v LEFT JOIN documents d ON d.key = v.document_key AND d.live_version = v.version WHERE d.key IS NULL`,
		"wrong counts of chunks or tokens": `SELECT count(*) FROM documents d JOIN document_versions v ON v.document_key = d.key AND v.version = d.live_version
			CROSS JOIN LATERAL (SELECT count(*) AS n, coalesce(sum(c.tokens), 0) AS tokens, count(c.embedding) AS vectors, max(c.ordinal) + 1 AS last
				FROM chunks c JOIN generations g ON g.id = c.generation AND g.state = 'live' WHERE c.document_key = d.key AND c.version = d.live_version) c
			WHERE (c.n, c.tokens, c.vectors, c.last) IS DISTINCT FROM (v.chunks::bigint, v.tokens::bigint, v.chunks::bigint, v.chunks)`,
		"chunks of a version that is not live":  `SELECT count(*) FROM chunks c LEFT JOIN documents d ON d.key = c.document_key AND d.live_version = c.version WHERE d.key IS NULL`,
		"builds of a version that is not live":  `SELECT count(*) FROM document_builds b LEFT JOIN documents d ON d.key = b.document_key AND d.live_version = b.version WHERE d.key IS NULL`,
		"builds done without their chunks":      `SELECT count(*) FROM document_builds b WHERE b.state = 'done' AND b.chunks <> (SELECT count(*) FROM chunks c WHERE c.generation = b.generation AND c.document_key = b.document_key AND c.version = b.version)`,
		"staged chunks":                         `SELECT count(*) FROM staged_chunks`,
		"staged vectors":                        `SELECT count(*) FROM staged_vectors`,
		"postings of no segment":                `SELECT count(*) FROM lex_posting p LEFT JOIN lex_segment s ON s.generation = p.generation AND s.seg = p.seg WHERE s.seg IS NULL`,
		"segments of no generation":             `SELECT count(*) FROM lex_segment s LEFT JOIN generations g ON g.id = s.generation WHERE g.id IS NULL`,
		"tombstones of no generation":           `SELECT count(*) FROM lex_tombstone s LEFT JOIN generations g ON g.id = s.generation WHERE g.id IS NULL`,
		"partitions of no generation":           `SELECT count(*) FROM pg_class WHERE relname LIKE 'chunks\_g%' AND relkind = 'r' AND substr(relname, 9) NOT IN (SELECT id::text FROM generations)`,
		"versions without their content":        `SELECT count(*) FROM document_versions v LEFT JOIN blobs b ON b.kb_id = v.kb_id AND b.sha256 = v.sha256 WHERE b.kb_id IS NULL`,
		"chunks of a document that is not live": `SELECT count(*) FROM documents d WHERE d.live_version IS NULL AND EXISTS (SELECT FROM chunks c WHERE c.document_key = d.key)`,
	} {
		if n := m.count(sql); n != 0 {
			m.t.Errorf("%s: %d", name, n)
		}
	}
	m.checkTexts()
	m.checkFullText()
}

// checkTexts looks whether each document is what was said of it last, and each version that was accepted has ended.
func (m *mixed) checkTexts() {
	m.t.Helper()
	m.reload()
	for i := range mixedDocs {
		doc := fmt.Sprintf("d%d", i)
		var got string
		err := m.pool.QueryRow(m.t.Context(), `SELECT coalesce(string_agg(c.content, E'\n' ORDER BY c.ordinal), '')
			FROM chunks c JOIN documents d ON d.key = c.document_key WHERE c.generation = $1 AND d.doc_id = $2`, m.kb.Generation.ID, doc).Scan(&got)
		if err != nil {
			m.t.Fatal(err)
		}
		if want := m.wanted[m.kb.Name+"/"+doc].text; got != want {
			m.t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
	rows, err := m.pool.Query(m.t.Context(), `SELECT document_key, version FROM document_receipts WHERE outcome = 'accepted' AND kb_id = $1`, m.kb.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c pgstore.Candidate
		if err := rows.Scan(&c.DocKey, &c.Version); err != nil {
			m.t.Fatal(err)
		}
		if m.ended[c] == "" && !m.failed[c] {
			m.t.Errorf("version %d of document %d was accepted and has not ended", c.Version, c.DocKey)
		}
	}
	if err := rows.Err(); err != nil {
		m.t.Fatal(err)
	}
}

// checkFullText compares the posting segments of every generation with its chunks.
func (m *mixed) checkFullText() {
	m.t.Helper()
	generations := strings.Fields(m.text(`SELECT coalesce(string_agg(id::text, ' '), '') FROM generations`))
	for _, g := range generations {
		var id int64
		if _, err := fmt.Sscan(g, &id); err != nil {
			m.t.Fatal(err)
		}
		indexed, stored, err := m.store.FullText(m.t.Context(), id)
		if err != nil {
			m.t.Fatalf("generation %d: %v", id, err)
		}
		if !reflect.DeepEqual(indexed, stored) {
			m.t.Errorf("generation %d: %d chunks are indexed, %d stored, or their terms differ", id, len(indexed), len(stored))
		}
	}
}

func (m *mixed) text(sql string) (s string) {
	m.t.Helper()
	if err := m.pool.QueryRow(m.t.Context(), sql).Scan(&s); err != nil {
		m.t.Fatal(err)
	}
	return s
}
