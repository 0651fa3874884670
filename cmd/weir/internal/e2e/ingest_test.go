package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
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

// Publishers use message ids again, and know nothing of each other's: an equal id must not cost a document.
func TestMessageIDsMayBeUsedAgain(t *testing.T) {
	s := start(t, options{})
	s.createKB(messages.CreateKB{KnowledgeBaseName: "one"})
	s.createKB(messages.CreateKB{KnowledgeBaseName: "two"})
	for i, kb := range []string{"one", "two"} {
		body, err := messages.Encode(doc(i))
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, func() error { // the least window a server has is a tenth of a second
			ack, err := s.js.Publish(t.Context(), messages.SubmitSubject(s.tenant, kb), body, jetstream.WithMsgID("1"))
			if err == nil && ack.Duplicate {
				err = errors.New("taken for a duplicate")
			}
			return err
		})
	}
	testkit.Eventually(t, func() error {
		if n := s.count("SELECT count(*) FROM documents WHERE status = 'Ready'"); n != 2 {
			return fmt.Errorf("%d documents are Ready, want 2", n)
		}
		return nil
	})
}
