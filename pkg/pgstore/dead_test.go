package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

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

// The end of what a deleted knowledge base left open is told by the upkeep. Whoever comes to fail or end it later tells nothing,
// or a submit would have two ends.
func TestWhatADeletedKnowledgeBaseLeftOpenEndsOnce(t *testing.T) {
	const deleted = `UPDATE knowledge_bases SET deleted_at = now(), revision = revision + 1`
	e := newEnv(t)
	sub := e.submission("d", "x")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	file := e.submission("f", "{}")
	file.Split = true
	split := e.ref(file, e.accept(file, pgstore.Accepted))
	if _, err := e.store.BeginParse(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	if err := e.store.LinesTaken(t.Context(), split, messages.Lines{}, false); err != nil {
		t.Fatal(err)
	}
	letter := pgstore.NewDeadLetter{
		Source: "dlq:1", Tenant: "acme", KB: "docs", Ref: &ref, DocID: "d", Subspace: ref.Subspace, Stage: messages.StageParse,
		Error: messages.Error{Code: messages.CodeDamagedDocument}, Headers: map[string]string{}, Body: []byte("{}"),
	}
	fail := func() error {
		failed, err := e.store.RecordDeadLetter(t.Context(), letter)
		if failed {
			err = errors.New("it failed the version")
		}
		return err
	}
	if err := e.meet(fail, deleted); err != nil {
		t.Errorf("a letter that meets the delete: %v", err)
	}
	e.exec(`UPDATE knowledge_bases SET deleted_at = NULL`)
	end := func() error { return e.store.EndSplit(t.Context(), pgstore.OpenSplit{Ref: split, Waiting: true}) }
	if err := e.meet(end, deleted); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("the end of a file that meets the delete: got %v, want ErrStale", err)
	}
	letter.Source = "dlq:2"
	if err := fail(); err != nil {
		t.Errorf("a letter behind the delete: %v", err)
	}
	if list, err := e.store.OrphanedSubmits(t.Context(), pgstore.OrphanedSubmit{}, 10); err != nil || len(list) != 2 {
		t.Errorf("left open: got %+v (%v), want both submits", list, err)
	}
}

// Ends that were written down before the knowledge base was deleted are told before its data goes.
func TestADeletedKnowledgeBaseStaysWhileAnEndIsNotTold(t *testing.T) {
	e := newEnv(t)
	ref := e.publish("d", "x")
	e.exec(`INSERT INTO split_ends (document_key, version, status) SELECT key, version, 'Ready' FROM documents`)
	e.exec(`UPDATE knowledge_bases SET deleted_at = now() - interval '1 hour'`)
	purge := func(want int) {
		t.Helper()
		if gone, err := e.store.PurgeDeleted(t.Context(), time.Minute); err != nil || len(gone) != want {
			t.Errorf("got %v (%v), want %d gone", gone, err, want)
		}
	}
	purge(0)
	if err := e.store.SplitTold(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	purge(1)
}
