package pgstore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// passage is a chunk with its vector.
type passage struct {
	text   string
	vector []float32
}

// publish makes documents live, a few at a time and many in one swap.
func (l *lab) publish(names []string, subspaceOf func(doc string) string, contentOf func(doc string) []passage) {
	l.t.Helper()
	const group, writers = 250, 4
	for batch := range slices.Chunk(names, group) {
		finished := make([]pgstore.Finished, len(batch))
		g, ctx := errgroup.WithContext(l.t.Context())
		g.SetLimit(writers)
		for i, doc := range batch {
			sub := l.submission(doc, doc)
			sub.Subspace = subspaceOf(doc)
			g.Go(func() error {
				ref, err := l.writePassages(ctx, sub, contentOf(doc))
				finished[i] = pgstore.Finished{Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version}}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			l.t.Fatal(err)
		}
		res, err := l.store.SwapVersions(l.t.Context(), l.kb.Generation.ID, finished)
		if err != nil || len(res.Swapped) != len(batch) {
			l.t.Fatalf("swap: got %d of %d (%v)", len(res.Swapped), len(batch), err)
		}
	}
}

// writePassages takes a document as far as complete.
func (l *lab) writePassages(ctx context.Context, sub pgstore.Submission, content []passage) (messages.Ref, error) {
	a, err := l.store.AcceptSubmit(ctx, sub)
	if err != nil {
		return messages.Ref{}, err
	}
	ref := l.ref(sub, a)
	if _, err := l.store.BeginParse(ctx, ref); err != nil {
		return ref, err
	}
	st, vectors := pgstore.Staging{Ref: ref, Space: l.kb.Generation.Space}, make([]pgstore.Vector, len(content))
	for i, p := range content {
		lex := l.an.Document("", p.text)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: p.text, Hash: sha256.Sum256(fmt.Appendf(nil, "%s %d", sub.DocID, i)), Lex: pgstore.NewTSVector(lex), LexLen: lex.Length,
		})
		vectors[i] = pgstore.Vector{Ordinal: i, Values: p.vector}
	}
	if _, err := l.store.Stage(ctx, st); err != nil {
		return ref, err
	}
	return ref, l.store.StageVectors(ctx, ref, vectors)
}

var gradedSchema = messages.MetadataSchema{
	{Name: "near", Type: messages.TypeLong},
	{Name: "far", Type: messages.TypeLong},
	{Name: "any", Type: messages.TypeLong},
	{Name: "tenant", Type: messages.TypeString, Internal: true},
}

const (
	gradedDocs  = 1000
	lonelyDoc   = 500 // has one chunk, the others three
	gradedQuery = "pump"
)

// graded is a knowledge base whose documents are the farther from the query, in both legs, the higher their
// number; their metadata place them along with the query, against it, and without regard to it.
func graded(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.newKB("graded", "cosine", true)
	names := make([]string, gradedDocs)
	for i := range names {
		names[i] = fmt.Sprintf("d%04d", i)
	}
	number := func(doc string) (i int) { _, _ = fmt.Sscanf(doc, "d%d", &i); return i }
	l.publish(names, func(doc string) string { return []string{"a", "b"}[number(doc)%2] }, func(doc string) []passage {
		i := number(doc)
		out := make([]passage, 3)
		for j := range out {
			angle := float64(3*i+j) / (3 * gradedDocs) * math.Pi / 2
			pumps := 1 + 20*(gradedDocs-i)/gradedDocs
			out[j] = passage{
				text:   strings.Repeat("pump ", pumps) + strings.Repeat("filler ", 30-pumps),
				vector: []float32{float32(math.Cos(angle)), float32(math.Sin(angle)), 0, 0},
			}
		}
		if i == lonelyDoc {
			out = out[:1]
		}
		return out
	})
	places := rand.New(rand.NewPCG(15, 16)).Perm(gradedDocs)
	tag, err := l.pool.Exec(t.Context(), `
		UPDATE documents d SET live_typed = jsonb_build_object('near', n.i, 'far', $2 - 1 - n.i, 'any', ($3::int[])[n.i + 1], 'tenant', 't' || n.i % 5)
		FROM (SELECT key, substr(doc_id, 2)::int i FROM documents WHERE kb_id = $1) n WHERE n.key = d.key`, l.kb.ID, gradedDocs, places)
	if err != nil || tag.RowsAffected() != gradedDocs {
		t.Fatalf("metadata: %v, %v", tag, err)
	}
	if _, err := l.pool.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	return l
}

func bound(t *testing.T, expression string, internal bool) filter.Bound {
	t.Helper()
	f, err := filter.ParseExpression("filter", expression, filter.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := filter.SchemaBinder{Schema: gradedSchema, Internal: internal}.Bind(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func predicate(b filter.Bound) pgstore.Predicate {
	return func(arg func(any) string) string { return b.Predicate("d.live_typed", arg) }
}

// However few documents match, and wherever they stand for the query, each leg lists as many of them as it
// was asked for, the right ones, or all.
func TestFilteredListsAreNeverShort(t *testing.T) {
	l := graded(t)
	query := []float32{1, 0, 0, 0}
	all := l.stored()
	match := func(expression string) map[int64]bool { // what plain SQL says
		rows, err := l.pool.Query(t.Context(), `SELECT c.chunk_id FROM chunks c JOIN documents d ON d.key = c.document_key WHERE c.generation = $1 AND `+expression, l.kb.Generation.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		out := map[int64]bool{}
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			out[id] = true
		}
		return out
	}
	byVector := rank(all, len(all), func(s stored) (float64, bool) { return near("cosine", query, s.vector), true })
	byWords := rank(all, len(all), bm25(all, l.an.Query(gradedQuery).Terms))
	if len(byVector) != 3*gradedDocs-2 || len(byWords) != len(byVector) {
		t.Fatalf("got %d and %d chunks, want %d", len(byVector), len(byWords), 3*gradedDocs-2)
	}
	lonely := fmt.Sprintf("near = %d", lonelyDoc)
	filters := map[string]string{lonely: "d.doc_id = " + fmt.Sprintf("'d%04d'", lonelyDoc)}
	for _, field := range []string{"near", "far", "any"} {
		for _, matching := range []int{gradedDocs, gradedDocs / 10, gradedDocs / 100, gradedDocs / 1000} {
			filters[fmt.Sprintf("%s < %d", field, matching)] = fmt.Sprintf("(d.live_typed ->> '%s')::int < %d", field, matching)
		}
	}
	mandatory := bound(t, "NOT tenant = 't4'", true)
	for expression, plain := range filters {
		for _, strict := range []bool{false, true} {
			where, meaning := bound(t, expression, false), plain
			var subspaces []string
			if strict {
				where, meaning = filter.Conjunction(mandatory, where), plain+" AND d.live_typed ->> 'tenant' <> 't4' AND d.subspace = 'a'"
				subspaces = []string{"a"}
			}
			allowed := match(meaning)
			only := func(list []scored, k int) []scored {
				out := slices.DeleteFunc(slices.Clone(list), func(s scored) bool { return !allowed[s.id] })
				return out[:min(k, len(out))]
			}
			for _, k := range []int{1, 10, 100, 1000} {
				dense, text := &pgstore.DensePlan{Vector: query, Limit: k}, l.textPlan(gradedQuery, k)
				for what, plan := range map[string]pgstore.SearchPlan{"dense": {Dense: dense}, "full text": {Text: text}, "hybrid": {Dense: dense, Text: text}} {
					plan.Where, plan.Subspaces = predicate(where), subspaces
					plan.Keep = func(pgstore.Found) []int64 { return nil }
					found := l.search(plan).Found
					at := fmt.Sprintf("%s, strict %v, k %d, %s", expression, strict, k, what)
					for _, m := range found.Matches {
						if !allowed[m.ChunkID] {
							t.Fatalf("%s: %s#%d does not match", at, m.DocID, m.Ordinal)
						}
					}
					if plan.Dense != nil {
						sameRanking(t, at+": dense list", found, denseRank, func(m pgstore.Match) float64 { return m.Similarity }, only(byVector, k))
					}
					if plan.Text != nil {
						sameRanking(t, at+": full-text list", found, textRank, func(m pgstore.Match) float64 { return m.BM25 }, only(byWords, k))
					}
				}
			}
		}
	}
}

// The statements of a filtered search probe indexes where few rows are asked for, and read each table once at
// most where all are.
func TestPlansOfFilteredStatements(t *testing.T) {
	l := planned(t)
	l.tag()
	part := fmt.Sprintf("chunks_g%d", l.kb.Generation.ID)
	where := predicate(bound(t, "near < 5", false))
	var ids []int64
	for _, s := range l.stored()[:256] {
		ids = append(ids, s.id)
	}
	plan := pgstore.SearchPlan{KB: l.kb, Subspaces: []string{"a"}, Where: where}
	some := l.explain(pgstore.LookSQL(plan, ids))
	if strings.Contains(some, "Seq Scan") || !strings.Contains(some, part+"_pkey") || !strings.Contains(some, "documents_pkey") {
		t.Errorf("some chunks: want probes of both keys\n%s", some)
	}
	whole := l.explain(pgstore.AllowedSQL(plan))
	if strings.Count(whole, " on public."+part) > 1 || strings.Contains(whole, "Nested Loop") && strings.Contains(whole, "Seq Scan on public."+part) && strings.Contains(whole, "documents_pkey") {
		t.Errorf("all chunks: want the partition read once, and the documents not one by one\n%s", whole)
	}
	t.Logf("some\n%s\nall\n%s", some, whole)
	l.plansOfListings()
}

// A listing walks the documents in their order and stops when the page is full: it neither sorts nor reads the
// knowledge base.
func (l *lab) plansOfListings() {
	t := l.t
	if _, err := l.pool.Exec(t.Context(), `INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq, live_version)
		SELECT $1, 'a', 'x' || i, 1, 'Ready', 0, 0, 1 FROM generate_series(1, 20000) i`, l.kb.ID); err != nil {
		t.Fatal(err)
	}
	l.tag()
	where := predicate(bound(t, "near >= 0", false))
	a := "a"
	for name, c := range map[string]struct {
		plan     pgstore.ListPlan
		subspace *string
	}{
		"first page":      {pgstore.ListPlan{KB: l.kb, Where: where, Limit: 20}, nil},
		"a later page":    {pgstore.ListPlan{KB: l.kb, Where: where, Limit: 20, After: &pgstore.Place{Subspace: "a", DocID: "d04", Ordinal: 149}}, nil},
		"of one subspace": {pgstore.ListPlan{KB: l.kb, Where: where, Limit: 20, Subspaces: []string{a}}, &a},
		"by document":     {pgstore.ListPlan{KB: l.kb, Where: where, Limit: 3, PerDocument: 2}, nil},
	} {
		text := l.explain(pgstore.ListSQL(c.plan, c.subspace))
		if strings.Contains(text, "Seq Scan") || !strings.Contains(text, "Index Scan using documents_kb_id_subspace_doc_id_key") ||
			!strings.Contains(text, "Incremental Sort") || !strings.Contains(text, "Index Cond: ((x.generation") {
			t.Errorf("%s: want a walk of the index of documents and probes of the one of chunks\n%s", name, text)
		}
		t.Logf("%s\n%s", name, text)
	}
}

// tag gives the documents of a planned knowledge base numbers.
func (l *lab) tag() {
	l.t.Helper()
	if _, err := l.pool.Exec(l.t.Context(), `UPDATE documents SET live_typed = jsonb_build_object('near', substr(doc_id, 2)::int) WHERE kb_id = $1`, l.kb.ID); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.pool.Exec(l.t.Context(), "VACUUM ANALYZE documents"); err != nil {
		l.t.Fatal(err)
	}
}
