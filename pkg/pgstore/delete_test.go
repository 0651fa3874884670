package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

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
