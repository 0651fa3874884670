package indexer_test

import (
	"math"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/indexer/internal/commit"
	"github.com/weir-project/weir/services/indexer/internal/index"
)

// indexing is the index stage over the lab's database.
func (l *lab) indexing() *index.Handler {
	c := commit.New(l.store, commit.Limits{Docs: 1}, nil)
	l.t.Cleanup(c.Close)
	return index.New(l.store, c)
}

func TestTheLastPartMakesAVersionReady(t *testing.T) {
	l := newLab(t)
	h := l.indexing()
	ref := l.staged("doc", "one\ntwo\nthree")
	first := marshal(t, indexWork(ref, 0, 2, 0, 1))
	for range 2 { // delivered twice
		out, err := h.Handle(t.Context(), first)
		if err != nil || len(out) != 0 {
			t.Fatalf("part 0: got %v (%v), want nothing yet", names(out), err)
		}
	}
	if n := l.count("SELECT count(*) FROM staged_vectors"); n != 2 || l.document("doc").Status != messages.StatusIndexing {
		t.Fatalf("got %d vectors and status %s, want 2 and Indexing", n, l.document("doc").Status)
	}
	last := marshal(t, indexWork(ref, 1, 2, 2))
	out, err := h.Handle(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	events := eventsOf(t, out)
	if len(events) != 1 {
		t.Fatalf("got %d events, want one", len(events))
	}
	e := events[0]
	if e.Status != messages.StatusReady || e.SubmitID != "m1" || e.Chunks != 3 || e.Tokens != 3 || !slices.Equal(e.Warnings, []string{"a warning"}) || e.Version != 1 || e.KBID != l.kb.ID {
		t.Errorf("got %+v", e)
	}
	again, err := h.Handle(t.Context(), last)
	if err != nil || !slices.Equal(names(again), names(out)) {
		t.Errorf("delivered again: got %v (%v), want %v", names(again), err, names(out))
	}
	if n := l.count("SELECT count(*) FROM chunks"); n != 3 || l.count("SELECT count(*) FROM staged_vectors") != 0 {
		t.Errorf("got %d chunks, want 3 and nothing staged", n)
	}
}

func TestEverySubmitThatAVersionAnswersIsTold(t *testing.T) {
	l := newLab(t)
	ref := l.staged("doc", "one")
	l.submit("doc", "one") // the same content again, while it is being indexed
	out, err := l.indexing().Handle(t.Context(), marshal(t, indexWork(ref, 0, 1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range eventsOf(t, out) {
		told = append(told, e.SubmitID)
	}
	if !slices.Equal(told, []string{"m1", "m2"}) || out[0].ID == out[1].ID {
		t.Errorf("told %v, want m1 and m2 in messages of their own", told)
	}
}

func TestAMessageWithoutVectorsFinishesWhatIsStaged(t *testing.T) {
	l := newLab(t)
	h := l.indexing()
	first := l.staged("a", "one")
	if _, err := h.Handle(t.Context(), marshal(t, indexWork(first, 0, 1, 0))); err != nil {
		t.Fatal(err)
	}
	ref := l.staged("b", "one") // its vector is known
	out, err := h.Handle(t.Context(), marshal(t, messages.IndexWork{Ref: ref, Parts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	if e := eventsOf(t, out); len(e) != 1 || e[0].Status != messages.StatusReady || e[0].Reused != 1 {
		t.Errorf("got %+v, want Ready with one vector reused", e)
	}
}

func TestLostStagingIsParsedAgainUnderNewIDs(t *testing.T) {
	l := newLab(t)
	h := l.indexing()
	ref := l.staged("doc", "one\ntwo")
	l.exec("TRUNCATE staged_chunks, staged_vectors") // as a crash of the server does
	out, err := h.Handle(t.Context(), marshal(t, indexWork(ref, 0, 1, 0, 1)))
	if err != nil || len(out) != 1 {
		t.Fatalf("got %v (%v), want one message", names(out), err)
	}
	want := ref
	want.Run = 1
	if m := out[0]; m.ID != want.MsgID(messages.StageParse, 0) || m.Subject != messages.WorkSubject(messages.StageParse, tenant, "docs") {
		t.Errorf("got %s %s, want parse work of run 1", m.Subject, m.ID)
	}
	l.stage(want, "one\ntwo")
	out, err = h.Handle(t.Context(), marshal(t, indexWork(want, 0, 1, 0, 1)))
	if err != nil || len(out) != 1 || eventsOf(t, out)[0].Status != messages.StatusReady {
		t.Errorf("afterwards: got %v (%v), want Ready", names(out), err)
	}
}

func TestLateWorkChangesNothing(t *testing.T) {
	l := newLab(t)
	h := l.indexing()
	old := l.staged("doc", "old")
	next := l.staged("doc", "new")
	out, err := h.Handle(t.Context(), marshal(t, indexWork(old, 0, 1, 0)))
	if err != nil || len(out) != 0 {
		t.Fatalf("work of an overtaken version: got %v (%v), want nothing", names(out), err)
	}
	if _, err := h.Handle(t.Context(), marshal(t, indexWork(next, 0, 1, 0))); err != nil {
		t.Fatal(err)
	}
	if err := l.store.DeleteKB(t.Context(), tenant, "docs"); err != nil {
		t.Fatal(err)
	}
	third := next
	third.Version = 3
	if out, err := h.Handle(t.Context(), marshal(t, indexWork(third, 0, 2, 0))); err != nil || len(out) != 0 {
		t.Errorf("work of a deleted knowledge base: got %v (%v), want nothing", names(out), err)
	}
	if n := l.count("SELECT count(*) FROM staged_vectors"); n != 0 {
		t.Errorf("it left %d staged vectors", n)
	}
}

func TestBadIndexWorkIsAPermanentError(t *testing.T) {
	l := newLab(t)
	h := l.indexing()
	ref := l.staged("doc", "one")
	with := func(change func(*messages.IndexWork)) []byte {
		w := indexWork(ref, 0, 1, 0)
		change(&w)
		return marshal(t, w)
	}
	for _, c := range []struct {
		name  string
		body  []byte
		field string
	}{
		{"no JSON", []byte(`{"docKey":`), "body"},
		{"no reference", []byte(`{}`), "tenant"},
		{"no version", with(func(w *messages.IndexWork) { w.Version = 0 }), "version"},
		{"cut vector", with(func(w *messages.IndexWork) { w.Vectors[0].Vector = w.Vectors[0].Vector[:7] }), "vectors[0]"},
		{"empty vector", with(func(w *messages.IndexWork) { w.Vectors[0].Vector = nil }), "vectors[0]"},
		{"negative ordinal", with(func(w *messages.IndexWork) { w.Vectors[0].Ordinal = -1 }), "vectors[0]"},
		{"NaN", with(func(w *messages.IndexWork) { w.Vectors[0].Vector = vectorBytes(0, float32(math.NaN()), 0, 0) }), "vectors[0]"},
		{"infinity", with(func(w *messages.IndexWork) { w.Vectors[0].Vector = vectorBytes(float32(math.Inf(-1)), 0, 0, 0) }), "vectors[0]"},
		{"more than half precision holds", with(func(w *messages.IndexWork) { w.Vectors[0].Vector = vectorBytes(70_000, 0, 0, 0) }), "vectors[0]"},
		{"no parts", with(func(w *messages.IndexWork) { w.Parts = 0 }), "parts"},
		{"part beyond parts", with(func(w *messages.IndexWork) { w.Part = 1 }), "parts"},
	} {
		_, err := h.Handle(t.Context(), c.body)
		wantError(t, c.name, err, messages.CodeValidation, c.field)
	}
	if d := l.document("doc"); d.Status != messages.StatusIndexing || l.count("SELECT count(*) FROM staged_vectors") != 0 {
		t.Errorf("got %s, want it untouched", d.Status)
	}
}
