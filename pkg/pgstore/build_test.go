package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

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

// A group may hold a new version of a document and what a repair has built of the old one: the new one stays.
func TestARepairedVersionThatIsReplacedInItsOwnGroupStaysGone(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "old")
	if _, err := e.store.StartJob(t.Context(), pgstore.NewJob{KB: e.kb, Kind: messages.JobRepair}); err != nil {
		t.Fatal(err)
	}
	j := e.claim()
	if err := e.store.SelectBuilds(t.Context(), j, nil); err != nil {
		t.Fatal(err)
	}
	build := e.next(j)[0]
	sub := e.submission("a", "new")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.stageBuild(build); err != nil {
		t.Fatal(err)
	}
	if _, err := e.stage(ref, "new"); err != nil {
		t.Fatal(err)
	}
	res, err := e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{
		{Candidate: pgstore.Candidate{DocKey: build.DocKey, Version: build.Version, Build: true}, Vectors: e.vectors(1)},
		{Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version}, Vectors: e.vectors(1)},
	})
	if err != nil || len(res.Swapped) != 1 || res.Swapped[0].Build {
		t.Errorf("got %+v (%v), want the new version swapped", res, err)
	}
	if got := e.texts(e.kb.Generation.ID); got != "a:2:new" {
		t.Errorf("readers see %q, want the new version", got)
	}
	if n := e.count(`SELECT count(*) FROM staged_chunks`); n != 0 {
		t.Errorf("staged rows: got %d, want none", n)
	}
}
