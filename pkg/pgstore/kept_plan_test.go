package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// alone is a lab whose store has one connection, over tables that hold next to nothing and know it.
func alone(t *testing.T) (*lab, *pgxpool.Pool) {
	t.Helper()
	l := newLab(t)
	l.env.publish("seed", "text")
	for _, sql := range []string{"ALTER TABLE documents SET (autovacuum_enabled = off)", "VACUUM ANALYZE"} {
		if _, err := l.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	cfg := l.pool.Config()
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	l.store = pgstore.New(pool)
	l.searcher = pgstore.NewSearcher(l.store, 32<<20)
	return l, pool
}

// A connection that did everything over and over while the tables held next to nothing has kept no plan that reads one
// whole when they have grown, and nobody has analysed them since.
func TestKeptPlansServeTablesThatHaveGrown(t *testing.T) {
	l, pool := alone(t)
	for i := range 8 {
		l.everything(fmt.Sprintf("d%d", i))
	}
	fill(l.env, 20000)
	kept := keptPlans(t, pool)
	if len(kept) == 0 {
		t.Error("no plan is kept")
	}
	for _, k := range kept {
		if found := unbounded(k.plan); found != "" {
			t.Errorf("%s\nkeeps\n%s", k.text, k.plan)
		}
	}
}

// Searches keep plans of their own, as the exact scan is to read its partition whole, but not for long.
func TestPlansOfSearchesAreMadeAnewNowAndThen(t *testing.T) {
	l, pool := alone(t)
	search := func() {
		l.search(pgstore.SearchPlan{Text: l.textPlan("text", 10), Dense: &pgstore.DensePlan{Vector: []float32{1, 0, 0, 0}, Limit: 20}})
	}
	search()
	search()
	fill(l.env, 20000)
	scanned := func() (n int) {
		for _, k := range keptPlans(t, pool) {
			n += strings.Count(k.plan, "Seq Scan on public.documents")
		}
		return n
	}
	if scanned() == 0 {
		t.Error("plans that were made for a few rows scan no table: the test shows nothing")
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgstore.AgePlans(conn.Conn())
	conn.Release()
	search()
	if n := scanned(); n > 0 {
		t.Errorf("%d scans of all documents are kept", n)
	}
}

// everything takes a document through what may happen to it.
func (e *env) everything(doc string) {
	ctx, text, more := e.t.Context(), "text of "+doc, "more of "+doc
	try := func(err error) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
	}
	first := e.submission(doc, text)
	ref := e.ref(first, e.accept(first, pgstore.Accepted))
	try(ignore(e.stage(ref, text)))
	try(ignore(e.store.StagedTexts(ctx, ref)))
	_, err := e.pool.Exec(ctx, `DELETE FROM staged_chunks WHERE document_key = $1`, ref.DocKey)
	try(err)
	run, err := e.store.ResetStaging(ctx, ref)
	try(err)
	ref.Run = run
	try(ignore(e.store.RaiseRun(ctx, ref)))
	try(ignore(e.store.RecordDeadLetter(ctx, pgstore.NewDeadLetter{
		Ref: &ref, Tenant: ref.Tenant, KB: ref.KB, DocID: doc, Source: doc, Stage: messages.StageParse,
		Error: *messages.Errorf(messages.CodeInternal, "no"), Headers: map[string]string{}, Body: []byte("{}"),
	})))
	_, _, err = e.store.ReopenVersion(ctx, ref.Tenant, ref.KB, ref.Subspace, doc, ref.Version)
	try(err)
	try(ignore(e.stage(ref, text)))
	try(e.store.StageVectors(ctx, ref, e.vectors(1)))
	try(ignore(e.store.OpenVersions(ctx, 0, 0, 10)))
	e.swap(ref)
	try(ignore(e.store.ReadyOf(ctx, []pgstore.Candidate{{DocKey: ref.DocKey, Version: ref.Version}})))
	try(ignore(e.store.ReceiptsOf(ctx, ref.DocKey, ref.Version)))
	_, _, err = e.store.Answered(ctx, first)
	try(err)
	e.status(doc)
	try(ignore(e.store.ListChunks(ctx, e.kb, messages.DefaultSubspace, doc, -1, 10, nil)))
	meta := e.submission(doc, text)
	meta.Metadata = []byte(`{"year": 2000}`)
	e.accept(meta, pgstore.MetadataOnly)
	second := e.submission(doc, more)
	second.Content = nil
	try(e.store.PutBlob(ctx, e.kb.ID, second.Blob, strings.NewReader(more)))
	e.accept(second, pgstore.Accepted)
	e.remove(doc)
	try(ignore(e.store.CollectBlobs(ctx, 0)))
	try(ignore(e.store.Sweep(ctx, pgstore.SweepAges{Receipts: time.Hour, Tombstones: time.Hour})))
}

type keptPlan struct{ text, plan string }

// keptPlans are those of the statements that the one connection of a pool has prepared, and made a plan for any arguments of.
func keptPlans(t *testing.T, pool *pgxpool.Pool) []keptPlan {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	rows, err := conn.Query(t.Context(), `SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements WHERE generic_plans > 0`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	type prepared struct {
		Name, Text string
		Args       int
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[prepared])
	if err != nil {
		t.Fatal(err)
	}
	var out []keptPlan
	for _, p := range list {
		args := ""
		if p.Args > 0 {
			args = "(NULL" + strings.Repeat(", NULL", p.Args-1) + ")"
		}
		sql := "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; EXPLAIN (VERBOSE, COSTS OFF) EXECUTE " + p.Name + args + "; ROLLBACK"
		results, err := conn.Conn().PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", p.Text, err)
		}
		var plan strings.Builder
		for _, row := range results[2].Rows {
			plan.Write(append(row[0], '\n'))
		}
		out = append(out, keptPlan{p.Text, plan.String()})
	}
	return out
}
