package e2e_test

import (
	"github.com/weir-project/weir/pkg/messages"
)

func (s *system) replay(id int64) error {
	_, err := call[messages.DeadLetterRef](s, messages.TenantScope, messages.OpDLQReplay, messages.DeadLetterRef{ID: id})
	return err
}

// replayed is a failed document whose cause was mended, taken up again.
func replayed(s *system) {
	const word = "refusedreplay"
	s.smallChunks("docs")
	s.fake.refuse(word, true)
	ev := s.watch("docs")
	content := sections(5, "fine") + "\n\n# Last\n\n" + word + " is here\n"
	s.publish("docs", "m1", markdown("d", content))
	if e := ev.end("m1"); e.Status != messages.StatusFailed || e.Error.Code != messages.CodeEmbeddingRejected {
		s.t.Fatalf("got %+v, want EMBEDDING_REJECTED", e)
	}
	letters := s.deadLetters("docs")
	if len(letters) != 1 || letters[0].DocID != "d" || letters[0].Version != 1 || letters[0].Stage != messages.StageEmbed {
		s.t.Fatalf("dead letters: got %+v", letters)
	}
	// As long as the cause is there, it fails again, with a letter of its own.
	if err := s.replay(letters[0].ID); err != nil {
		s.t.Fatal(err)
	}
	s.awaitCount(2, "SELECT count(*) FROM dead_letters WHERE tenant = $1", s.tenant)
	s.awaitStatus("docs", "d", messages.StatusFailed)
	s.fake.refuse(word, false)
	again := s.deadLetters("docs")
	if len(again) != 1 || again[0].ID == letters[0].ID {
		s.t.Fatalf("open dead letters: got %+v, want the second", again)
	}
	if err := s.replay(again[0].ID); err != nil {
		s.t.Fatal(err)
	}
	if d := s.awaitStatus("docs", "d", messages.StatusReady); d.Version != 1 || d.LiveVersion != 1 || d.Error != nil {
		s.t.Errorf("document: got %+v, want version 1 Ready without an error", d)
	}
	if got := docsOf(s.ask("docs", word, fullText)); got != "d" {
		s.t.Errorf("found %q, want d", got)
	}
	if open := s.deadLetters("docs"); len(open) != 0 {
		s.t.Errorf("open dead letters: got %+v, want none", open)
	}
	// Twice is harmless, and a letter of what is Ready now cannot harm it.
	if err := s.replay(again[0].ID); err != nil {
		s.t.Errorf("replay again: %v", err)
	}
	if d := s.document("docs", "d"); d.Status != messages.StatusReady {
		s.t.Errorf("document: got %+v, want Ready", d)
	}
	s.settled("m1")
}

// replayedSubmit is a refused submit whose knowledge base was made since.
func replayedSubmit(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "other"})
	ev := s.watch("*")
	s.publish("docs", "json", doc(1))
	s.publishRaw("docs", "raw", raw("Weir-Doc-Id", "r%20w", "Weir-Title", "%E6%B0%B4%E6%B3%B5", "Content-Type", "text/plain"), []byte("A raw body."))
	s.publishDelete("docs", "del", messages.Delete{DocID: "x"})
	for _, id := range []string{"json", "raw", "del"} {
		if e := ev.end(id); e.Status != messages.StatusFailed || e.Error.Code != messages.CodeKBNotFound {
			s.t.Fatalf("%s: got %+v, want KNOWLEDGE_BASE_NOT_FOUND", id, e)
		}
	}
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	letters := s.deadLetters("docs")
	if len(letters) != 3 {
		s.t.Fatalf("dead letters: got %+v, want 3", letters)
	}
	for _, l := range letters {
		if l.DocID == "x" {
			if _, err := call[messages.DeadLetterRef](s, messages.TenantScope, messages.OpDLQDiscard, messages.DeadLetterRef{ID: l.ID}); err != nil {
				s.t.Error(err)
			}
			isError(s.t, "replay of a discarded one", s.replay(l.ID), messages.CodeNotSupported, "")
			continue
		}
		if err := s.replay(l.ID); err != nil {
			s.t.Errorf("replay of %s: %v", l.DocID, err)
		}
	}
	for _, id := range []string{doc(1).DocID, "r w"} {
		s.awaitExists("docs", id)
		s.awaitStatus("docs", id, messages.StatusReady)
	}
	if d := s.document("docs", "r w"); d.Title != "水泵" {
		s.t.Errorf("title: got %q, want that of the header", d.Title)
	}
	if open := s.deadLetters(""); len(open) != 0 {
		s.t.Errorf("open dead letters: got %+v, want none", open)
	}
	for state, want := range map[string]int{"replayed": 2, "discarded": 1} {
		list, err := call[messages.DeadLetterList](s, messages.TenantScope, messages.OpDLQList, messages.ListDeadLetters{State: state})
		if err != nil || len(list.DeadLetters) != want {
			s.t.Errorf("%s: got %+v, %v; want %d", state, list, err, want)
		}
	}
	isError(s.t, "replay of none", s.replay(1<<40), messages.CodeNotFound, "id")
	s.settled()
}
