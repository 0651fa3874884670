package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

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
