package pgstore_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

const dims = 4

// env is a store over a database of its own with one knowledge base.
type env struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *pgstore.Store
	kb    pgstore.KB
	seq   uint64
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresURL(t), pgstore.Configure)
	e := &env{t: t, pool: pool, store: pgstore.New(pool)}
	e.kb = e.createKB("docs", messages.IndexTypeHybrid)
	return e
}

// testSchema declares the metadata fields that tests of this package use.
func testSchema() messages.MetadataSchema {
	return messages.MetadataSchema{
		{Name: "year", Type: messages.TypeLong}, {Name: "of", Type: messages.TypeString}, {Name: "d", Type: messages.TypeDouble}, {Name: "l", Type: messages.TypeLong},
	}
}

func (e *env) createKB(name string, index messages.IndexType) pgstore.KB {
	e.t.Helper()
	g := pgstore.Generation{Parser: "p1", Chunking: messages.Chunking{Strategy: "tokens", Size: 400}, Analyzer: lexical.Default}
	if index != messages.IndexTypeBM25 {
		g.Space = &messages.Space{Model: "fake", Dims: dims, Metric: "cosine", Normalized: true}
	}
	kb, err := e.store.CreateKB(e.t.Context(), pgstore.NewKB{Tenant: "acme", Name: name, IndexType: index, Generation: g, Schema: testSchema()})
	if err != nil {
		e.t.Fatal(err)
	}
	return kb
}

func (e *env) submission(doc, text string) pgstore.Submission {
	e.seq++
	return pgstore.Submission{
		KB: e.kb, Subspace: messages.DefaultSubspace, DocID: doc,
		Source: fmt.Sprintf("js:%d", e.seq), SubmitID: fmt.Sprintf("m%d", e.seq),
		Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(e.seq)), Seq: e.seq},
		Title: "T " + doc, OSSKey: doc, ContentType: "text/plain", Metadata: json.RawMessage(`{}`),
		Blob: pgstore.Blob{SHA256: sha256.Sum256([]byte(text)), SizeBytes: int64(len(text))}, Content: []byte(text),
	}
}

func (e *env) accept(sub pgstore.Submission, want pgstore.Outcome) pgstore.Acceptance {
	e.t.Helper()
	a, err := e.store.AcceptSubmit(e.t.Context(), sub)
	if err != nil {
		e.t.Fatal(err)
	}
	if a.Outcome != want {
		e.t.Fatalf("outcome of %s: got %s, want %s", sub.DocID, a.Outcome, want)
	}
	return a
}

func (e *env) ref(sub pgstore.Submission, a pgstore.Acceptance) messages.Ref {
	return messages.Ref{
		Tenant: e.kb.Tenant, KB: e.kb.Name, KBID: e.kb.ID, Generation: e.kb.Generation.ID,
		Subspace: sub.Subspace, DocID: sub.DocID, DocKey: a.DocKey, Version: a.Version,
	}
}

// stage parses and stages a version: one chunk a line of text. It returns how many vectors were reused.
func (e *env) stage(ref messages.Ref, text string) (reused int, err error) {
	if _, err := e.store.BeginParse(e.t.Context(), ref); err != nil {
		return 0, err
	}
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		e.t.Fatal(err)
	}
	st := pgstore.Staging{Ref: ref, Space: e.kb.Generation.Space}
	for i, line := range strings.Split(text, "\n") {
		doc := an.Document("", line)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: line, Hash: sha256.Sum256([]byte(line)), Lex: pgstore.NewTSVector(doc), LexLen: doc.Length,
		})
	}
	return e.store.Stage(e.t.Context(), st)
}

func (e *env) vectors(n int) []pgstore.Vector {
	out := make([]pgstore.Vector, n)
	for i := range out {
		out[i] = pgstore.Vector{Ordinal: i, Values: []float32{1, float32(i), 0, 0}}
	}
	return out
}

func (e *env) swap(refs ...messages.Ref) pgstore.SwapResult {
	e.t.Helper()
	var c []pgstore.Finished
	for _, r := range refs {
		c = append(c, pgstore.Finished{Candidate: pgstore.Candidate{DocKey: r.DocKey, Version: r.Version}})
	}
	res, err := e.store.SwapVersions(e.t.Context(), e.kb.Generation.ID, c)
	if err != nil {
		e.t.Fatal(err)
	}
	return res
}

// publish takes a document all the way to Ready.
func (e *env) publish(doc, text string) messages.Ref {
	e.t.Helper()
	sub := e.submission(doc, text)
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.stage(ref, text); err != nil {
		e.t.Fatal(err)
	}
	if err := e.store.StageVectors(e.t.Context(), ref, e.vectors(1+strings.Count(text, "\n"))); err != nil {
		e.t.Fatal(err)
	}
	if res := e.swap(ref); len(res.Swapped) != 1 {
		e.t.Fatalf("swap of %s: got %+v, want it swapped", doc, res)
	}
	return ref
}

func (e *env) status(doc string) messages.DocumentStatus {
	e.t.Helper()
	d, err := e.store.GetDocument(e.t.Context(), e.kb.ID, messages.DefaultSubspace, doc, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	return d.Status
}

func (e *env) count(sql string, args ...any) int {
	e.t.Helper()
	var n int
	if err := e.pool.QueryRow(e.t.Context(), sql, args...).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

func (e *env) contents() string {
	e.t.Helper()
	var s string
	err := e.pool.QueryRow(e.t.Context(), `SELECT coalesce(string_agg(d.doc_id || ':' || c.content, '|' ORDER BY d.doc_id, c.ordinal), '')
		FROM chunks c JOIN documents d ON d.key = c.document_key AND d.live_version = c.version`).Scan(&s)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}
