package pgstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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
	cfg, err := pgxpool.ParseConfig(testkit.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	pgstore.Configure(cfg)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
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

func TestADocumentGoesFromPendingToReadyAndIsReplacedWhole(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("d", "alpha one\nbeta two")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if got := e.status("d"); got != messages.StatusPending {
		t.Fatalf("status: got %s, want Pending", got)
	}
	if _, err := e.stage(ref, "alpha one\nbeta two"); err != nil {
		t.Fatal(err)
	}
	if got := e.status("d"); got != messages.StatusIndexing {
		t.Fatalf("status: got %s, want Indexing", got)
	}
	if err := e.store.StageVectors(t.Context(), ref, e.vectors(1)); err != nil {
		t.Fatal(err)
	}
	if res := e.swap(ref); len(res.Incomplete) != 1 || e.contents() != "" {
		t.Fatalf("a half complete version: got %+v and %q, want it incomplete and nothing to read", res, e.contents())
	}
	if err := e.store.StageVectors(t.Context(), ref, e.vectors(2)); err != nil {
		t.Fatal(err)
	}
	e.swap(ref)
	if e.status("d") != messages.StatusReady || e.contents() != "d:alpha one|d:beta two" {
		t.Fatalf("got %s and %q", e.status("d"), e.contents())
	}
	if res := e.swap(ref); len(res.Swapped)+len(res.Incomplete)+len(res.Lost) != 0 {
		t.Errorf("a second swap: got %+v, want nothing", res)
	}
	e.publish("d", "gamma")
	if got := e.contents(); got != "d:gamma" {
		t.Errorf("after the new version: got %q", got)
	}
	for _, table := range []string{"staged_chunks", "staged_vectors"} {
		if n := e.count("SELECT count(*) FROM " + table); n != 0 {
			t.Errorf("%s: got %d rows, want none", table, n)
		}
	}
	if n := e.count("SELECT count(*) FROM document_versions"); n != 1 {
		t.Errorf("versions: got %d, want the live one", n)
	}
	if n := e.count("SELECT count(*) FROM lex_tombstone"); n != 2 {
		t.Errorf("tombstones: got %d, want 2", n)
	}
}

func TestTheSameSubmitTwiceIsOneVersion(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("d", "x")
	first := e.accept(sub, pgstore.Accepted)
	second := e.accept(sub, pgstore.Accepted)
	if !second.Again || second.Version != first.Version || second.DocKey != first.DocKey {
		t.Errorf("got %+v after %+v, want the same version again", second, first)
	}
}

func TestUnchangedContentChangesNoRowButReceipts(t *testing.T) {
	e := newEnv(t)
	e.publish("d", "same text")
	before := e.count("SELECT sum(hashtext(documents::text)) FROM documents")
	e.accept(e.submission("d", "same text"), pgstore.Unchanged)
	if after := e.count("SELECT sum(hashtext(documents::text)) FROM documents"); after != before {
		t.Error("the document's row changed")
	}
	late := e.submission("d", "older text")
	newer := e.submission("d", "same text")
	e.accept(newer, pgstore.Unchanged)
	e.accept(late, pgstore.Superseded)
}

func TestAMetadataChangeTouchesOneRow(t *testing.T) {
	e := newEnv(t)
	ref := e.publish("d", "text")
	sub := e.submission("d", "text")
	sub.Metadata = json.RawMessage(`{"year": 2024}`)
	a := e.accept(sub, pgstore.MetadataOnly)
	if a.Version != ref.Version {
		t.Errorf("version: got %d, want %d", a.Version, ref.Version)
	}
	d, err := e.store.GetDocument(t.Context(), e.kb.ID, messages.DefaultSubspace, "d", nil)
	if err != nil || string(d.Metadata) != `{"year": 2024}` || d.Status != messages.StatusReady {
		t.Errorf("got %+v (%v)", d, err)
	}
	again := e.submission("d", "text")
	again.Metadata = json.RawMessage(`{"year":2024}`)
	e.accept(again, pgstore.Unchanged)
}

func TestAnOlderSubmitIsSupersededWhateverTheOrderOfArrival(t *testing.T) {
	e := newEnv(t)
	older, newer := e.submission("d", "older"), e.submission("d", "newer")
	e.accept(newer, pgstore.Accepted)
	e.accept(older, pgstore.Superseded)
}

func TestANewVersionOvertakesAnOpenOneAndFencesItsWork(t *testing.T) {
	e := newEnv(t)
	live := e.publish("d", "live text")
	first := e.submission("d", "first")
	firstRef := e.ref(first, e.accept(first, pgstore.Accepted))
	if _, err := e.stage(firstRef, "first"); err != nil {
		t.Fatal(err)
	}
	second := e.submission("d", "second")
	a := e.accept(second, pgstore.Accepted)
	if len(a.Overtaken) != 1 || a.Overtaken[0].SubmitID != first.SubmitID {
		t.Fatalf("overtaken: got %+v, want the submit %s", a.Overtaken, first.SubmitID)
	}
	if got := e.accept(second, pgstore.Accepted); len(got.Overtaken) != 1 {
		t.Errorf("delivered again: got %+v, want the same overtaken submit", got)
	}
	if _, err := e.stage(firstRef, "first"); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("late parse: got %v, want ErrStale", err)
	}
	if err := e.store.StageVectors(t.Context(), firstRef, e.vectors(1)); err != nil {
		t.Fatal(err)
	}
	if n := e.count("SELECT count(*) FROM staged_vectors"); n != 0 {
		t.Errorf("late vectors: got %d rows, want none", n)
	}
	if e.contents() != "d:live text" || live.Version != 1 {
		t.Errorf("readers see %q, want the live text", e.contents())
	}
}

func TestADeleteRemovesEverythingAndFencesLateWork(t *testing.T) {
	e := newEnv(t)
	e.publish("keep", "kept")
	e.publish("d", "shared text")
	open := e.submission("d", "open version")
	openRef := e.ref(open, e.accept(open, pgstore.Accepted))
	if _, err := e.stage(openRef, "open version"); err != nil {
		t.Fatal(err)
	}
	e.seq++
	del := pgstore.Deletion{
		KB: e.kb, Subspace: messages.DefaultSubspace, DocID: "d", Source: "js:del", SubmitID: "del",
		Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(e.seq)), Seq: e.seq},
	}
	for range 2 {
		a, err := e.store.DeleteDocument(t.Context(), del)
		if err != nil || a.Outcome != pgstore.Removed || len(a.Overtaken) != 1 {
			t.Fatalf("got %+v (%v), want it removed and the open submit overtaken", a, err)
		}
	}
	if e.contents() != "keep:kept" {
		t.Errorf("readers see %q", e.contents())
	}
	for sql, want := range map[string]int{
		"SELECT count(*) FROM staged_chunks": 0, "SELECT count(*) FROM blobs": 1, "SELECT count(*) FROM blob_parts": 1,
		"SELECT count(*) FROM document_versions": 1, "SELECT count(*) FROM documents": 2,
	} {
		if n := e.count(sql); n != want {
			t.Errorf("%s: got %d, want %d", sql, n, want)
		}
	}
	if _, err := e.stage(openRef, "open version"); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("late parse: got %v, want ErrStale", err)
	}
	late := e.submission("d", "late")
	late.Order.At = time.Unix(1_600_000_000, 0)
	e.accept(late, pgstore.Superseded)
	e.publish("d", "back again")
}

func TestDeletingWhatIsNotThereIsAnErrorAndLeavesNoRow(t *testing.T) {
	e := newEnv(t)
	_, err := e.store.DeleteDocument(t.Context(), pgstore.Deletion{KB: e.kb, Subspace: messages.DefaultSubspace, DocID: "no", Source: "x", Order: pgstore.Order{At: time.Now()}})
	if m, ok := messages.AsError(err); !ok || m.Code != messages.CodeDocumentNotFound {
		t.Errorf("got %v, want DOCUMENT_NOT_FOUND", err)
	}
	if n := e.count("SELECT count(*) FROM documents"); n != 0 {
		t.Errorf("documents: got %d, want none", n)
	}
}

func TestKnownVectorsAreReusedWithinTheKnowledgeBaseOnly(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one\ntwo\nthree")
	sub := e.submission("b", "two\nnew")
	reused, err := e.stage(e.ref(sub, e.accept(sub, pgstore.Accepted)), "two\nnew")
	if err != nil || reused != 1 {
		t.Errorf("same knowledge base: got %d (%v), want 1", reused, err)
	}
	e.kb = e.createKB("other", messages.IndexTypeHybrid)
	sub = e.submission("c", "two")
	reused, err = e.stage(e.ref(sub, e.accept(sub, pgstore.Accepted)), "two")
	if err != nil || reused != 0 {
		t.Errorf("another knowledge base: got %d (%v), want 0", reused, err)
	}
}

func TestLastBatchesCommittedAtOnceMakeOneSwap(t *testing.T) {
	e := newEnv(t)
	const parts = 8
	text := strings.TrimSuffix(strings.Repeat("line\n", parts), "\n")
	sub := e.submission("d", text)
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.stage(ref, text); err != nil {
		t.Fatal(err)
	}
	swapped := make(chan int, parts)
	for i := range parts {
		go func() {
			v := []pgstore.Vector{{Ordinal: i, Values: []float32{1, 0, 0, 0}}}
			if err := e.store.StageVectors(context.WithoutCancel(t.Context()), ref, v); err != nil {
				t.Error(err)
			}
			res, err := e.store.SwapVersions(context.WithoutCancel(t.Context()), e.kb.Generation.ID, []pgstore.Finished{{Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version}}})
			if err != nil {
				t.Error(err)
			}
			swapped <- len(res.Swapped)
		}()
	}
	total := 0
	for range parts {
		total += <-swapped
	}
	if total != 1 || e.status("d") != messages.StatusReady || e.count("SELECT count(*) FROM lex_segment") != 1 {
		t.Errorf("swaps: got %d and status %s, want one and Ready", total, e.status("d"))
	}
}

func TestADeadLetterFailsItsVersionOnce(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("d", "x")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	letter := pgstore.NewDeadLetter{
		Source: "dlq:1", Tenant: "acme", KB: "docs", Ref: &ref, DocID: "d", Subspace: ref.Subspace, Stage: messages.StageParse,
		Error: messages.Error{Code: messages.CodeDamagedDocument, Message: "broken", Stage: messages.StageParse}, Attempts: 1,
		Subject: "weir.work.parse.0.acme.docs", Headers: map[string]string{"a": "b"}, Body: []byte("{}"),
	}
	for range 2 {
		failed, err := e.store.RecordDeadLetter(t.Context(), letter)
		if err != nil || !failed {
			t.Fatalf("got %v (%v), want failed", failed, err)
		}
	}
	list, err := e.store.ListDeadLetters(t.Context(), "acme", "", "", "open", 0, 10)
	if err != nil || len(list) != 1 || list[0].Error.Code != messages.CodeDamagedDocument {
		t.Fatalf("got %+v (%v)", list, err)
	}
	reopened, ok, err := e.store.ReopenVersion(t.Context(), "acme", "docs", ref.Subspace, "d", ref.Version)
	if err != nil || !ok || reopened.Run != 1 || e.status("d") != messages.StatusPending {
		t.Fatalf("got %+v %v (%v), status %s", reopened, ok, err, e.status("d"))
	}
	if err := e.store.MarkDeadLetter(t.Context(), "acme", list[0].ID, "replayed"); err != nil {
		t.Fatal(err)
	}
	if err := e.store.MarkDeadLetter(t.Context(), "acme", list[0].ID, "discarded"); err == nil {
		t.Error("discarding a replayed letter: got no error")
	}
	if err := e.store.MarkDeadLetter(t.Context(), "other", list[0].ID, "replayed"); err == nil {
		t.Error("another tenant's letter: got no error")
	}
}

// The process may die between the record and the event, and a newer version may come before the letter does again.
func TestADeadLetterIsToldOfThoughItsVersionIsOvertaken(t *testing.T) {
	e := newEnv(t)
	first := e.submission("d", "x")
	ref := e.ref(first, e.accept(first, pgstore.Accepted))
	letter := pgstore.NewDeadLetter{
		Source: "dlq:1", Tenant: "acme", KB: "docs", Ref: &ref, DocID: "d", Subspace: ref.Subspace, Stage: messages.StageParse,
		Error: messages.Error{Code: messages.CodeDamagedDocument}, Headers: map[string]string{}, Body: []byte("{}"),
	}
	record := func(source string, want bool) {
		t.Helper()
		letter.Source = source
		if failed, err := e.store.RecordDeadLetter(t.Context(), letter); err != nil || failed != want {
			t.Errorf("%s: got %v (%v), want %v", source, failed, err, want)
		}
	}
	record("dlq:1", true)
	second := e.submission("d", "y")
	overtaken := e.ref(second, e.accept(second, pgstore.Accepted))
	record("dlq:1", true)
	record("dlq:2", false) // came too late to fail anything
	third := e.submission("d", "z")
	e.accept(third, pgstore.Accepted)
	letter.Ref = &overtaken
	record("dlq:3", false) // superseded, which the submit was told
	record("dlq:3", false)
}

func TestMergesDropExactlyTheTombstonesTheyApply(t *testing.T) {
	e := newEnv(t)
	for i := range 20 {
		e.publish(fmt.Sprintf("d%02d", i), fmt.Sprintf("text number %d", i))
	}
	e.publish("d03", "new text")
	merges := 0
	for {
		merged, err := e.store.MergeSegments(t.Context(), e.kb.Generation.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !merged {
			break
		}
		merges++
	}
	if merges == 0 {
		t.Fatal("nothing was merged")
	}
	live := e.count("SELECT count(*) FROM chunks")
	inSegments := e.count("SELECT sum(n_docs) FROM lex_segment") - e.count("SELECT count(*) FROM lex_tombstone")
	if live != 20 || inSegments != live {
		t.Errorf("live chunks %d, in segments %d, want 20 and 20", live, inSegments)
	}
}

func TestADeletedKnowledgeBaseLeavesNothing(t *testing.T) {
	e := newEnv(t)
	e.publish("d", "text")
	if err := e.store.DeleteKB(t.Context(), "acme", "docs"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.store.LoadKB(t.Context(), "acme", "docs"); err == nil {
		t.Error("it can still be loaded")
	}
	if _, err := e.store.AcceptSubmit(t.Context(), e.submission("new", "late")); err == nil {
		t.Error("late submit: got no error")
	}
	again := e.createKB("docs", messages.IndexTypeHybrid)
	if again.ID == e.kb.ID {
		t.Error("the id was used again")
	}
	if _, err := e.store.PurgeDeleted(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"documents", "document_versions", "document_receipts", "blobs", "blob_parts", "chunks", "lex_segment", "lex_posting", "lex_tombstone"} {
		if n := e.count("SELECT count(*) FROM " + table); n != 0 {
			t.Errorf("%s: got %d rows, want none", table, n)
		}
	}
	if n := e.count("SELECT count(*) FROM knowledge_bases"); n != 1 {
		t.Errorf("knowledge bases: got %d, want the new one", n)
	}
}

func TestVectorsInHandCompleteAVersionWithoutBeingStaged(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one")
	sub := e.submission("d", "one\ntwo\nthree")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if reused, err := e.stage(ref, "one\ntwo\nthree"); err != nil || reused != 1 {
		t.Fatalf("reused: got %d (%v), want 1", reused, err)
	}
	candidate := pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version}
	vectors := e.vectors(3)
	// The first is staged already; giving it twice must not stand for the one that is missing.
	for _, c := range []struct {
		vectors []pgstore.Vector
		swapped int
	}{{[]pgstore.Vector{vectors[0], vectors[1], vectors[1]}, 0}, {vectors[1:], 1}} {
		res, err := e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{{Candidate: candidate, Vectors: c.vectors}})
		if err != nil || len(res.Swapped) != c.swapped {
			t.Fatalf("with %d vectors: got %+v (%v), want %d swapped", len(c.vectors), res, err, c.swapped)
		}
	}
	if n := e.count("SELECT count(*) FROM chunks WHERE embedding IS NULL"); n != 0 {
		t.Errorf("chunks without a vector: got %d, want none", n)
	}
}

func TestAVersionWhoseStagedChunksAreGoneIsParsedAgain(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("d", "one")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.stage(ref, "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.pool.Exec(t.Context(), "TRUNCATE staged_chunks, staged_vectors"); err != nil { // as a crash of the server does
		t.Fatal(err)
	}
	if res := e.swap(ref); len(res.Lost) != 1 {
		t.Fatalf("got %+v, want it lost", res)
	}
	run, err := e.store.ResetStaging(t.Context(), ref)
	if err != nil || run != 1 {
		t.Fatalf("run: got %d (%v), want 1", run, err)
	}
	v, err := e.store.BeginParse(t.Context(), ref)
	if err != nil || v.Staged || v.Run != 1 {
		t.Errorf("got %+v (%v), want it unstaged at run 1", v, err)
	}
}

// Numbers that pass the check of metadata can be stored: what the database refused would be tried for ever.
func TestEveryAcceptedNumberCanBeStored(t *testing.T) {
	e := newEnv(t)
	schema := testSchema()
	stored, refused := 0, 0
	for i, n := range []string{
		"0", "-0", "1e308", "4.9e-324", "1e-400", "1e-401", "1e-999999", "0e-20000", "0e20000", "1e999999", "6e1", "9007199254740993",
		"0." + strings.Repeat("0", 390) + "1", "0." + strings.Repeat("0", 20_000) + "1", strings.Repeat("1", 300), strings.Repeat("1", 20_000),
	} {
		for _, field := range []string{"d", "l"} {
			raw, err := schema.ValidateMetadata(json.RawMessage(`{"` + field + `": ` + n + `}`))
			if err != nil {
				refused++
				continue
			}
			sub := e.submission(fmt.Sprintf("%s%d", field, i), "text")
			sub.Metadata = raw
			e.accept(sub, pgstore.Accepted)
			stored++
		}
	}
	if stored < 8 || refused < 8 {
		t.Errorf("stored %d and refused %d, want some of both", stored, refused)
	}
}
