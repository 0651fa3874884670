package e2e_test

import (
	"fmt"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestPublishedDocumentsBecomeReady(t *testing.T) {
	s := start(t, options{})
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("docs")
	const n = 20
	for i := range n {
		s.publish("docs", fmt.Sprintf("m%d", i), doc(i))
	}
	for id, e := range ev.terminal(n) {
		if e.Status != messages.StatusReady || e.Chunks == 0 {
			t.Errorf("%s: got %+v, want Ready with chunks", id, e)
		}
	}
	if got := s.count("SELECT count(*) FROM chunks WHERE embedding IS NOT NULL"); got != n {
		t.Errorf("chunks with vectors: got %d, want %d", got, n)
	}
	texts := s.fake.Texts()
	for i := range n {
		s.publish("docs", fmt.Sprintf("again%d", i), doc(i))
	}
	for id, e := range ev.terminal(n) {
		if e.Status != messages.StatusReady || !e.Unchanged {
			t.Errorf("%s: got %+v, want Ready unchanged", id, e)
		}
	}
	if s.fake.Texts() != texts {
		t.Errorf("publishing again embedded %d texts, want none", s.fake.Texts()-texts)
	}
}
