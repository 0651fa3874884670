package pgstore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/pgstore"
)

func (e *env) exec(sql string, args ...any) {
	e.t.Helper()
	if _, err := e.pool.Exec(e.t.Context(), sql, args...); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

var pagesRead = regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)

// pages is how many a part of a plan reads, that which reads most.
func pages(plan string) (most int) {
	plan, _, _ = strings.Cut(plan, "Planning:")
	for _, found := range pagesRead.FindAllStringSubmatch(plan, -1) {
		hit, _ := strconv.Atoi("0" + found[1])  //nolint:errcheck // digits
		read, _ := strconv.Atoi("0" + found[2]) //nolint:errcheck // digits
		most = max(most, hit+read)
	}
	return most
}

// A document that is published again and again without a change leaves receipts, and the next submit of it reads none of
// them but the newest.
func TestSubmitsThatChangeNothingDoNotSlowTheNext(t *testing.T) {
	l := &lab{env: newEnv(t)}
	l.env.publish("d", "same text")
	l.exec(`INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome, created_at)
		SELECT 'r' || i, kb_id, key, version, order_ns + i, 1, '', CASE WHEN i % 2 = 0 THEN 'unchanged' ELSE 'superseded' END, now() - make_interval(secs => i)
		FROM documents, generate_series(1, 20000) i`)
	l.exec("VACUUM ANALYZE document_receipts")
	plan := l.explain(pgstore.SQL{
		Text: pgstore.Query("intake_state"), Args: []any{[]int64{l.kb.ID}, []string{"_default"}, []string{"d"}, []string{"none"}},
	}, pgstore.Query("lookup_plans"))
	if n := pages(plan); n > 40 {
		t.Errorf("%d pages are read, want a few:\n%s", n, plan)
	}
	late := l.submission("d", "other text")
	late.Order.At = late.Order.At.Add(10000)
	l.accept(late, pgstore.Superseded)
	newer := l.submission("d", "other text")
	newer.Order.At = newer.Order.At.Add(20001)
	l.accept(newer, pgstore.Accepted)
}

// What is left open in a deleted knowledge base is listed page by page, and each page begins where the last ended.
func TestPagesOfOrphanedSubmitsBeginWhereTheLastEnded(t *testing.T) {
	const documents = 20000
	l := &lab{env: filled(t, documents, true)}
	if err := l.store.DeleteKB(t.Context(), "acme", "docs"); err != nil {
		t.Fatal(err)
	}
	var key int64
	var source string
	if err := l.pool.QueryRow(t.Context(), "SELECT d.key, d.key::text FROM documents d ORDER BY d.key OFFSET $1 LIMIT 1", documents-100).Scan(&key, &source); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key     int64
		source  string
		submits int
	}{{0, "", 100}, {key, source, 99}} {
		plan := l.explain(pgstore.SQL{Text: pgstore.Query("deleted_open"), Args: []any{c.key, c.source, 100}})
		if n := pages(plan); n > 1000 || !strings.Contains(plan, fmt.Sprintf("rows=%d", c.submits)) {
			t.Errorf("%d pages are read for %d submits of %d:\n%s", n, c.submits, documents, plan)
		}
	}
}

// A sweep removes all that is due, however much that is: what is left behind each time would grow for ever.
func TestASweepTakesAllThatIsDue(t *testing.T) {
	e := newEnv(t)
	e.publish("d", "text")
	const old = 25000
	due := fmt.Sprintf("now() - interval '2 hours' FROM knowledge_bases, generate_series(1, %d) i", old)
	e.exec(`INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq, updated_at) SELECT id, '_default', 'old' || i, 1, 'Deleted', 0, 0, ` + due)
	e.exec(`INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome, created_at) SELECT 'old' || i, id, 1, 1, 0, 0, '', 'accepted', ` + due)
	e.exec(`INSERT INTO blobs (kb_id, sha256, size_bytes, created_at) SELECT id, sha256(i::text::bytea), 0, ` + due)
	e.exec(`INSERT INTO dead_letters (source, tenant, kb, stage, error, attempts, subject, headers, body, state, updated_at) SELECT 'old' || i, 'acme', 'docs', 'parse', '{}', 1, '', '{}', '', 'replayed', ` + due)
	n, err := e.store.Sweep(t.Context(), pgstore.SweepAges{Blobs: time.Hour, Receipts: time.Hour, Tombstones: time.Hour, Records: time.Hour})
	if err != nil || n != 4*old {
		t.Errorf("got %d rows (%v), want %d", n, err, 4*old)
	}
	if left := e.count("SELECT (SELECT count(*) FROM documents) * 1000 + (SELECT count(*) FROM document_receipts) * 100 + (SELECT count(*) FROM blobs) * 10 + (SELECT count(*) FROM dead_letters)"); left != 1110 {
		t.Errorf("left %d, want the document, its receipt and its content", left)
	}
}

// Tombstones are found among all documents by an index of their own.
func TestTombstonesAreFoundWithoutReadingAllDocuments(t *testing.T) {
	l := &lab{env: filled(t, 20000, true)}
	plan := l.explain(pgstore.SQL{Text: pgstore.Query("sweep_tombstones"), Args: []any{3600, 10_000}})
	if n := pages(plan); n > 40 {
		t.Errorf("%d pages are read where there is none:\n%s", n, plan)
	}
}

// What a deleted knowledge base leaves is found without reading what others have.
func TestAPurgeReadsNothingOfOtherKnowledgeBases(t *testing.T) {
	l := &lab{env: filled(t, 20000, true)}
	gone := l.createKB("gone", "hybrid")
	for _, name := range []string{"purge_documents", "purge_blobs", "purge_rest"} {
		if n := pages(l.explain(pgstore.SQL{Text: pgstore.Query(name), Args: []any{gone.ID}})); n > 40 {
			t.Errorf("%s reads %d pages where there is nothing", name, n)
		}
	}
}
