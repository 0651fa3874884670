package indexer_test

import (
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/indexer/internal/commit"
	"github.com/weir-project/weir/services/indexer/internal/index"
)

// publishVersion makes a document of three chunks live and returns its Ready event.
func (l *lab) publishVersion(doc, text string) messages.Event {
	l.t.Helper()
	committer := commit.New(l.store, commit.Limits{}, nil)
	defer committer.Close()
	ref := l.staged(doc, text)
	msgs, err := index.New(l.store, committer).Handle(l.t.Context(), marshal(l.t, indexWork(ref, 0, 1, 0, 1, 2)))
	if err != nil {
		l.t.Fatal(err)
	}
	events := eventsOf(l.t, msgs)
	if len(events) != 1 || events[0].Status != messages.StatusReady {
		l.t.Fatalf("got %+v, want one Ready event", events)
	}
	return events[0]
}

func TestUpdateChunk(t *testing.T) { // CT-47, the writer's side
	o := newOffice(t)
	if e := o.publishVersion("a", "one\ntwo\nthree"); e.Reactivated != 0 {
		t.Errorf("first version: got %d reactivated, want none", e.Reactivated)
	}
	inactive := func() int { return o.count("SELECT count(*) FROM chunks WHERE NOT active") }
	for range 2 { // doing it again changes nothing
		got, err := o.ask(o.admin.UpdateChunk, "docs", `{"docId":"a","chunkId":1,"status":"inactive"}`)
		want := messages.ChunkState{DocID: "a", Subspace: messages.DefaultSubspace, ChunkID: 1, Status: messages.ChunkInactive}
		if err != nil || got != want || inactive() != 1 {
			t.Errorf("got %+v (%v), %d inactive; want %+v, 1", got, err, inactive(), want)
		}
	}
	chunks, err := o.store.ListChunks(t.Context(), o.kb, messages.DefaultSubspace, "a", -1, 10, nil)
	if err != nil || len(chunks) != 3 || chunks[1].Status != messages.ChunkInactive || chunks[0].Status != messages.ChunkActive {
		t.Errorf("listing: got %+v (%v), want chunk 1 inactive", chunks, err)
	}
	if _, err := o.ask(o.admin.UpdateChunk, "docs", `{"docId":"a","chunkId":1,"status":"active"}`); err != nil || inactive() != 0 {
		t.Errorf("active again: %v, %d inactive", err, inactive())
	}
	for body, want := range map[string]struct {
		code  messages.Code
		field string
	}{
		`{"docId":"a","chunkId":3,"status":"inactive"}`:                            {messages.CodeNotFound, "chunkId"},
		`{"docId":"b","chunkId":0,"status":"inactive"}`:                            {messages.CodeDocumentNotFound, "docId"},
		`{"docId":"a","chunkId":-1,"status":"inactive"}`:                           {messages.CodeValidation, "chunkId"},
		`{"docId":"a","chunkId":0,"status":"gone"}`:                                {messages.CodeValidation, "status"},
		`{"docId":"a","chunkId":0}`:                                                {messages.CodeValidation, "status"},
		`{"chunkId":0,"status":"active"}`:                                          {messages.CodeValidation, "docId"},
		`{"docId":"a","chunkId":0,"status":"active","subspace":"x"}`:               {messages.CodeValidation, "subspace"},
		`{"docId":"a","chunkId":0,"status":"active","knowledgeBaseName":"others"}`: {messages.CodeValidation, "knowledgeBaseName"},
		`{"docId":"a","chunkId":0,"status":"active","content":"x"}`:                {messages.CodeValidation, "content"},
	} {
		_, err := o.ask(o.admin.UpdateChunk, "docs", body)
		wantError(t, body, err, want.code, want.field)
	}
	_, err = o.ask(o.admin.UpdateChunk, "nowhere", `{"docId":"a","chunkId":0,"status":"active"}`)
	wantError(t, "unknown knowledge base", err, messages.CodeKBNotFound, "knowledgeBaseName")
}

func TestANewVersionMakesChunksActiveAndTellsHowMany(t *testing.T) {
	l := newLab(t)
	l.publishVersion("a", "one\ntwo\nthree")
	for _, ordinal := range []int{0, 2} {
		if err := l.store.SetChunkStatus(t.Context(), l.kb.ID, messages.DefaultSubspace, "a", ordinal, messages.ChunkInactive, nil); err != nil {
			t.Fatal(err)
		}
	}
	if e := l.publishVersion("a", "one\ntwo\nfour"); e.Reactivated != 2 {
		t.Errorf("event: got %d reactivated, want 2", e.Reactivated)
	}
	if d := l.document("a"); d.Reactivated != 2 || l.count("SELECT count(*) FROM chunks WHERE NOT active") != 0 {
		t.Errorf("document: got %+v, want 2 reactivated and no chunk inactive", d)
	}
	if e := l.publishVersion("a", "one\ntwo\nfive"); e.Reactivated != 0 {
		t.Errorf("the version after: got %d reactivated, want none", e.Reactivated)
	}
}
