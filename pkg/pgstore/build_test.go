package pgstore_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// otherSpace is a space that no generation of newEnv's knowledge base has.
func otherSpace() *messages.Space {
	return &messages.Space{Model: "other", Dims: dims, Metric: "cosine", Normalized: true}
}

// reindex starts a job that builds a generation of another space, and claims it.
func (e *env) reindex(change func(*pgstore.NewJob)) pgstore.Job {
	e.t.Helper()
	e.reload()
	target := e.kb.Generation
	target.ID, target.Space = 0, otherSpace()
	n := pgstore.NewJob{KB: e.kb, Kind: messages.JobReindex, Target: target, Retain: time.Hour}
	if change != nil {
		change(&n)
	}
	if _, err := e.store.StartJob(e.t.Context(), n); err != nil {
		e.t.Fatal(err)
	}
	return e.claim()
}

func (e *env) claim() pgstore.Job {
	e.t.Helper()
	j, ok, err := e.store.ClaimJob(e.t.Context(), "test", time.Hour)
	if err != nil || !ok {
		e.t.Fatalf("claim: %v (%v)", ok, err)
	}
	return j
}

func (e *env) reload() {
	e.t.Helper()
	kb, err := e.store.LoadKB(e.t.Context(), e.kb.Tenant, e.kb.Name)
	if err != nil {
		e.t.Fatal(err)
	}
	e.kb = kb
}

// fill puts everything that lacks a build on the list.
func (e *env) fill(j pgstore.Job) {
	e.t.Helper()
	var at pgstore.ListPlace
	for {
		last, n, err := e.store.FillBuilds(e.t.Context(), j, at, 3)
		if err != nil {
			e.t.Fatal(err)
		}
		if n == 0 {
			return
		}
		at = last
	}
}

// stageBuild begins and stages a build from the stored content, one chunk a line.
func (e *env) stageBuild(ref messages.Ref) (lines int, err error) {
	v, err := e.store.BeginParse(e.t.Context(), ref)
	if err != nil {
		return 0, err
	}
	content, err := io.ReadAll(e.store.OpenBlob(e.t.Context(), ref.KBID, v.Blob))
	if err != nil {
		return 0, err
	}
	st := linesOf(ref, v.Generation.Space, string(content))
	_, err = e.store.Stage(e.t.Context(), st)
	return len(st.Chunks), err
}

func linesOf(ref messages.Ref, space *messages.Space, text string) pgstore.Staging {
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		panic(err)
	}
	st := pgstore.Staging{Ref: ref, Space: space}
	for i, line := range strings.Split(text, "\n") {
		doc := an.Document("", line)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: line, Hash: sha256.Sum256([]byte(line)), Lex: pgstore.NewTSVector(doc), LexLen: doc.Length,
		})
	}
	return st
}

// commit commits a build with its vectors in hand.
func (e *env) commit(ref messages.Ref, lines int) pgstore.SwapResult {
	e.t.Helper()
	res, err := e.store.SwapVersions(e.t.Context(), ref.Generation, []pgstore.Finished{{
		Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version, Build: true}, Vectors: e.vectors(lines),
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	return res
}

// next takes the builds off the list that nobody has begun.
func (e *env) next(j pgstore.Job) []messages.Ref {
	e.t.Helper()
	refs, err := e.store.NextBuilds(e.t.Context(), j, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.store.BuildsQueued(e.t.Context(), j, refs); err != nil {
		e.t.Fatal(err)
	}
	return refs
}

// buildAll builds whatever the job lacks.
func (e *env) buildAll(j pgstore.Job) {
	e.t.Helper()
	e.fill(j)
	for _, ref := range e.next(j) {
		n, err := e.stageBuild(ref)
		if err != nil {
			e.t.Fatal(err)
		}
		if res := e.commit(ref, n); len(res.Swapped) != 1 {
			e.t.Fatalf("commit of %s: got %+v", ref.DocID, res)
		}
	}
}

func (e *env) flip(j pgstore.Job) pgstore.Flip {
	e.t.Helper()
	f, err := e.store.FlipJob(e.t.Context(), j)
	if err != nil {
		e.t.Fatal(err)
	}
	return f
}

func (e *env) remove(doc string) {
	e.t.Helper()
	e.reload()
	e.seq++
	_, err := e.store.DeleteDocument(e.t.Context(), pgstore.Deletion{
		KB: e.kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("js:%d", e.seq), SubmitID: "del",
		Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(e.seq)), Seq: e.seq}, //nolint:gosec // small
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// texts is what a generation holds, of live versions and of others.
func (e *env) texts(generation int64) string {
	e.t.Helper()
	var s string
	err := e.pool.QueryRow(e.t.Context(), `SELECT coalesce(string_agg(d.doc_id || ':' || c.version || ':' || c.content, '|' ORDER BY d.doc_id, c.version, c.ordinal), '')
		FROM chunks c JOIN documents d ON d.key = c.document_key WHERE c.generation = $1`, generation).Scan(&s)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

func TestAReindexBuildsASecondGenerationAndSwitchesToIt(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one\ntwo")
	e.publish("b", "three")
	old := e.kb.Generation.ID
	j := e.reindex(nil)
	e.buildAll(j)
	if got, want := e.texts(j.Target), "a:1:one|a:1:two|b:1:three"; got != want {
		t.Fatalf("the new generation holds %q, want %q", got, want)
	}
	e.reload()
	if e.kb.Generation.ID != old {
		t.Fatal("readers see the new generation before the flip")
	}
	if f := e.flip(j); !f.Done {
		t.Fatalf("flip: got %+v", f)
	}
	revision := e.kb.Revision
	e.reload()
	if e.kb.Generation.ID != j.Target || e.kb.Revision <= revision || e.kb.Generation.Space.Model != "other" {
		t.Errorf("after the flip: generation %d of %s, revision %d", e.kb.Generation.ID, e.kb.Generation.Space.Model, e.kb.Revision)
	}
	done, err := e.store.GetJob(t.Context(), e.kb.Tenant, j.ID)
	if err != nil || done.State != messages.JobDone || done.RetainedUntil == nil || done.FlippedAt == nil {
		t.Errorf("got %+v (%v), want it done and its source retained", done, err)
	}
	if e.count("SELECT count(*) FROM staged_chunks")+e.count("SELECT count(*) FROM staged_vectors") != 0 {
		t.Error("staged rows are left")
	}
}

func TestAVersionThatBecomesLiveDuringAJobIsBuiltToo(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one")
	j := e.reindex(nil)
	e.buildAll(j)
	e.publish("a", "two")
	e.publish("b", "three")
	if got := e.texts(j.Target); got != "" {
		t.Errorf("the new generation still holds %q of an old version", got)
	}
	if f := e.flip(j); f.Done || f.Missing != 2 {
		t.Fatalf("flip: got %+v, want two documents missing", f)
	}
	e.buildAll(j)
	if f := e.flip(j); !f.Done {
		t.Fatalf("flip: got %+v", f)
	}
	if got, want := e.texts(j.Target), "a:2:two|b:1:three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLateBuildsLeaveNothing(t *testing.T) {
	e := newEnv(t)
	for _, doc := range []string{"edited", "deleted", "cancelled"} {
		e.publish(doc, "old "+doc)
	}
	j := e.reindex(nil)
	e.fill(j)
	refs := e.next(j)
	for _, ref := range refs {
		if _, err := e.stageBuild(ref); err != nil {
			t.Fatal(err)
		}
	}
	e.publish("edited", "new")
	e.remove("deleted")
	for _, ref := range refs[:2] {
		if res := e.commit(ref, 1); len(res.Swapped)+len(res.Lost)+len(res.Incomplete) != 0 {
			t.Errorf("late build of %s: got %+v, want nothing", ref.DocID, res)
		}
		if _, err := e.stageBuild(ref); !errors.Is(err, pgstore.ErrStale) {
			t.Errorf("late parse of %s: got %v, want ErrStale", ref.DocID, err)
		}
	}
	if _, err := e.store.CancelJob(t.Context(), e.kb.Tenant, j.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.store.StageVectors(t.Context(), refs[2], e.vectors(1)); err != nil {
		t.Fatal(err)
	}
	if res := e.commit(refs[2], 1); len(res.Swapped) != 0 {
		t.Errorf("build of a cancelled job: got %+v, want nothing", res)
	}
	if n := e.count("SELECT count(*) FROM staged_chunks") + e.count("SELECT count(*) FROM staged_vectors"); n != 0 {
		t.Errorf("%d staged rows are left", n)
	}
	if _, err := e.store.DropGenerations(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if e.count("SELECT count(*) FROM generations") != 1 || e.count("SELECT count(*) FROM document_builds") != 0 ||
		e.count("SELECT count(*) FROM pg_class WHERE relname = $1", fmt.Sprintf("chunks_g%d", j.Target)) != 0 {
		t.Error("something of the cancelled generation is left")
	}
	if skipped := e.count("SELECT skipped FROM jobs"); skipped != 2 {
		t.Errorf("skipped: got %d, want 2", skipped)
	}
}

func TestARollbackBringsTheOldGenerationUpToDate(t *testing.T) {
	e := newEnv(t)
	e.publish("kept", "kept")
	e.publish("edited", "old")
	e.publish("deleted", "gone")
	j := e.reindex(nil)
	e.buildAll(j)
	e.flip(j)
	e.reload()
	e.publish("edited", "new")
	e.publish("added", "added")
	e.remove("deleted")
	if got, want := e.texts(j.Source), "kept:1:kept"; got != want {
		t.Errorf("the retained generation holds %q, want %q", got, want)
	}
	if _, err := e.store.RollbackJob(t.Context(), e.kb.Tenant, j.ID); err != nil {
		t.Fatal(err)
	}
	back := e.claim()
	if back.Goal() != j.Source {
		t.Fatalf("a rollback fills generation %d, want %d", back.Goal(), j.Source)
	}
	if f := e.flip(back); f.Done || f.Missing != 2 {
		t.Fatalf("flip: got %+v, want two documents missing", f)
	}
	e.buildAll(back)
	if f := e.flip(back); !f.Done {
		t.Fatalf("flip: got %+v", f)
	}
	e.reload()
	if got, want := e.texts(j.Source), "added:1:added|edited:2:new|kept:1:kept"; got != want || e.kb.Generation.ID != j.Source {
		t.Errorf("generation %d holds %q, want %q in %d", e.kb.Generation.ID, got, want, j.Source)
	}
	gone, err := e.store.DropGenerations(t.Context(), 0)
	if err != nil || len(gone) != 1 || gone[0] != j.Target {
		t.Errorf("dropped %v (%v), want the target", gone, err)
	}
	if e.contents() != "added:added|edited:new|kept:kept" {
		t.Errorf("readers see %q", e.contents())
	}
}

func TestWorkForAGenerationThatWasReplacedIsTakenUpAnew(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one")
	early, staged := e.submission("pending", "p"), e.submission("staged", "s")
	earlyRef := e.ref(early, e.accept(early, pgstore.Accepted))
	stagedRef := e.ref(staged, e.accept(staged, pgstore.Accepted))
	if _, err := e.stage(stagedRef, "s"); err != nil {
		t.Fatal(err)
	}
	j := e.reindex(nil)
	e.buildAll(j)
	e.flip(j)
	v, err := e.store.BeginParse(t.Context(), earlyRef)
	if err != nil || v.Generation.ID != j.Target {
		t.Errorf("parsing goes on for generation %d (%v), want %d", v.Generation.ID, err, j.Target)
	}
	res, err := e.store.SwapVersions(t.Context(), j.Source, []pgstore.Finished{{Candidate: pgstore.Candidate{DocKey: stagedRef.DocKey, Version: 1}, Vectors: e.vectors(1)}})
	if err != nil || len(res.Lost) != 1 {
		t.Fatalf("got %+v (%v), want it lost: to be parsed again", res, err)
	}
	if _, err := e.store.ResetStaging(t.Context(), stagedRef); err != nil {
		t.Fatal(err)
	}
	if v, err := e.store.BeginParse(t.Context(), stagedRef); err != nil || v.Generation.ID != j.Target || v.Staged {
		t.Errorf("got generation %d, staged %v (%v), want %d anew", v.Generation.ID, v.Staged, err, j.Target)
	}
}

func TestTheSameContentAfterAFlipIsUnchanged(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one")
	j := e.reindex(nil)
	e.buildAll(j)
	e.flip(j)
	e.reload()
	e.accept(e.submission("a", "one"), pgstore.Unchanged)
}

func TestASecondJobIsAConflictThatNamesTheFirst(t *testing.T) {
	e := newEnv(t)
	j := e.reindex(nil)
	_, err := e.store.StartJob(t.Context(), pgstore.NewJob{KB: e.kb, Kind: messages.JobRepair})
	if m, ok := messages.AsError(err); !ok || m.Code != messages.CodeJobConflict || !strings.Contains(m.Message, fmt.Sprint(j.ID)) {
		t.Errorf("got %v, want JOB_CONFLICT with %d", err, j.ID)
	}
	if err := e.store.DeleteKB(t.Context(), e.kb.Tenant, e.kb.Name); err != nil {
		t.Fatal(err)
	}
	if now, err := e.store.GetJob(t.Context(), e.kb.Tenant, j.ID); err != nil || now.State != messages.JobCancelled {
		t.Errorf("after the knowledge base was deleted: got %+v (%v), want it cancelled", now, err)
	}
	if _, err := e.store.FlipJob(t.Context(), j); err == nil {
		t.Error("a job of a deleted knowledge base flipped")
	}
}

func TestAcceptedFailuresAreFailedUntilARollback(t *testing.T) {
	e := newEnv(t)
	e.publish("good", "good")
	e.publish("bad", "bad")
	j := e.reindex(func(n *pgstore.NewJob) { n.Failures = 1 })
	e.fill(j)
	for _, ref := range e.next(j) {
		if ref.DocID == "bad" {
			failed, err := e.store.RecordDeadLetter(t.Context(), pgstore.NewDeadLetter{
				Ref: &ref, Tenant: ref.Tenant, KB: ref.KB, DocID: "bad", Stage: messages.StageEmbed, Error: *messages.Errorf(messages.CodeEmbeddingRejected, "no"),
			})
			if failed || err != nil {
				t.Fatalf("failing a build failed the document: %v (%v)", failed, err)
			}
			continue
		}
		n, err := e.stageBuild(ref)
		if err != nil {
			t.Fatal(err)
		}
		e.commit(ref, n)
	}
	if e.status("bad") != messages.StatusReady || e.count("SELECT count(*) FROM dead_letters") != 0 {
		t.Error("a failed build is seen before the flip")
	}
	if f := e.flip(j); !f.Done || f.Failed != 1 {
		t.Fatalf("flip: got %+v", f)
	}
	if e.status("bad") != messages.StatusFailed || e.status("good") != messages.StatusReady {
		t.Errorf("after the flip: %s and %s", e.status("bad"), e.status("good"))
	}
	now, err := e.store.GetJob(t.Context(), e.kb.Tenant, j.ID)
	if err != nil || len(now.Errors) != 1 || now.Errors[0].Code != messages.CodeEmbeddingRejected || now.Errors[0].Documents[0] != "bad" {
		t.Errorf("errors: got %+v (%v)", now.Errors, err)
	}
	if _, err := e.store.RollbackJob(t.Context(), e.kb.Tenant, j.ID); err != nil {
		t.Fatal(err)
	}
	if f := e.flip(e.claim()); !f.Done {
		t.Fatalf("rollback: got %+v", f)
	}
	if e.status("bad") != messages.StatusReady {
		t.Errorf("after the rollback: %s", e.status("bad"))
	}
}

func TestARepairBuildsChosenDocumentsInPlace(t *testing.T) {
	e := newEnv(t)
	for i, doc := range []string{"a", "b", "c"} {
		sub := e.submission(doc, "text of "+doc)
		sub.Metadata = json.RawMessage(fmt.Sprintf(`{"year": %d}`, 2000+i))
		ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
		if _, err := e.stage(ref, "text of "+doc); err != nil {
			t.Fatal(err)
		}
		if err := e.store.StageVectors(t.Context(), ref, e.vectors(1)); err != nil {
			t.Fatal(err)
		}
		e.swap(ref)
	}
	if err := e.store.SetChunkStatus(t.Context(), e.kb.ID, messages.DefaultSubspace, "b", 0, messages.ChunkInactive, nil); err != nil {
		t.Fatal(err)
	}
	before := e.count("SELECT max(chunk_id) FROM chunks")
	repair := func(sel *messages.JobSelector) []messages.Ref {
		if _, err := e.store.StartJob(t.Context(), pgstore.NewJob{KB: e.kb, Kind: messages.JobRepair, Selector: sel}); err != nil {
			t.Fatal(err)
		}
		j := e.claim()
		if err := e.store.SelectBuilds(t.Context(), j, e.kb.Schema); err != nil {
			t.Fatal(err)
		}
		refs := e.next(j)
		for _, ref := range refs {
			n, err := e.stageBuild(ref)
			if err != nil {
				t.Fatal(err)
			}
			e.commit(ref, n)
		}
		if f := e.flip(j); !f.Done {
			t.Fatalf("end of a repair: got %+v", f)
		}
		return refs
	}
	if refs := repair(&messages.JobSelector{Filter: json.RawMessage(`{"greaterThanOrEquals": {"key": "year", "value": 2001}}`)}); len(refs) != 2 {
		t.Fatalf("chosen by metadata: got %v, want two", refs)
	}
	if n := e.count("SELECT count(*) FROM chunks WHERE chunk_id > $1", before); n != 2 {
		t.Errorf("chunks written anew: got %d, want 2", n)
	}
	if n := e.count("SELECT count(*) FROM chunks WHERE NOT active"); n != 1 {
		t.Errorf("inactive chunks: got %d, want the same one", n)
	}
	if e.contents() != "a:text of a|b:text of b|c:text of c" {
		t.Errorf("readers see %q", e.contents())
	}
	if refs := repair(&messages.JobSelector{Stale: true}); len(refs) != 0 {
		t.Errorf("stale ones: got %v, want none", refs)
	}
	if _, err := e.pool.Exec(t.Context(), "UPDATE chunks SET embedding = NULL WHERE content = 'text of c'"); err != nil {
		t.Fatal(err)
	}
	if refs := repair(&messages.JobSelector{Stale: true}); len(refs) != 1 || refs[0].DocID != "c" || refs[0].Run == 0 {
		t.Errorf("stale ones: got %v, want c with a raised run", refs)
	}
}

func TestALostLeaseChangesNothing(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one")
	first := e.reindex(nil)
	e.buildAll(first)
	if _, err := e.pool.Exec(t.Context(), "UPDATE jobs SET lease_until = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	second := e.claim()
	if second.Fence <= first.Fence {
		t.Fatalf("fence: got %d after %d", second.Fence, first.Fence)
	}
	for name, err := range map[string]error{
		"renew": ignore(e.store.RenewJob(t.Context(), first, time.Hour)), "wait": e.store.WaitJob(t.Context(), first, "x"),
		"count": ignore(e.store.CountJob(t.Context(), first)), "flip": ignore(e.store.FlipJob(t.Context(), first)),
	} {
		if !errors.Is(err, pgstore.ErrLeaseLost) {
			t.Errorf("%s by the former holder: got %v, want ErrLeaseLost", name, err)
		}
	}
	if _, err := e.store.PauseJob(t.Context(), e.kb.Tenant, second.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := e.store.FlipJob(t.Context(), second); !errors.Is(err, pgstore.ErrLeaseLost) {
		t.Errorf("flip of a paused job: got %v, want ErrLeaseLost", err)
	}
}

func ignore[T any](_ T, err error) error { return err }

// A copied build is what parsing and embedding would have made, column by column, whether or not it was analysed anew.
func TestCopiedBuildsAreWhatStagingMakes(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one\ntwo three\nfour")
	e.publish("b", strings.Repeat("long words of a long line. ", 300)+"\nshort")
	if err := e.store.SetChunkStatus(t.Context(), e.kb.ID, messages.DefaultSubspace, "a", 1, messages.ChunkInactive, nil); err != nil {
		t.Fatal(err)
	}
	for _, fingerprint := range []string{"", "another"} {
		j := e.reindex(func(n *pgstore.NewJob) { n.Target.Space = e.kb.Generation.Space })
		e.fill(j)
		from, err := e.store.LoadGeneration(t.Context(), e.kb.Generation.ID)
		if err != nil {
			t.Fatal(err)
		}
		to, err := e.store.LoadGeneration(t.Context(), j.Target)
		if err != nil {
			t.Fatal(err)
		}
		if fingerprint != "" {
			from.Fingerprint = fingerprint
		}
		refs := e.next(j)
		n, left, err := e.store.CopyBuilds(t.Context(), from, to, refs)
		if err != nil || n != 2 || len(left) != 0 {
			t.Fatalf("copied %d and left %v (%v), want both documents", n, left, err)
		}
		const differing = `SELECT count(*) FROM (
			SELECT to_jsonb(c) - 'generation' - 'chunk_id' FROM chunks c WHERE generation = $1
			EXCEPT ALL SELECT to_jsonb(c) - 'generation' - 'chunk_id' FROM chunks c WHERE generation = $2) d`
		if d := e.count(differing, e.kb.Generation.ID, j.Target) + e.count(differing, j.Target, e.kb.Generation.ID); d != 0 {
			t.Errorf("fingerprint %q: %d rows differ", fingerprint, d)
		}
		if n, _, err := e.store.CopyBuilds(t.Context(), from, to, refs); err != nil || n != 0 {
			t.Errorf("copied again: %d (%v), want none", n, err)
		}
		if c := e.count(`SELECT count(*) FROM document_builds WHERE generation = $1 AND state = 'done' AND reused = chunks AND tokens > 0`, j.Target); c != 2 {
			t.Errorf("builds done: got %d, want 2", c)
		}
		if f := e.flip(j); !f.Done {
			t.Fatalf("flip: got %+v", f)
		}
		e.reload()
	}
}
