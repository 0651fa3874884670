package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// twoTenants use the same names and never meet.
func twoTenants(s *system) {
	a, b := s.as(s.t, s.tenant+"-a"), s.as(s.t, s.tenant+"-b")
	for _, x := range []*system{a, b} {
		x.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
		secret := "The secret of " + x.tenant + " about the pump."
		x.put("docs", messages.Submit{DocID: "d", Text: &secret})
		x.publish("docs", "bad", messages.Submit{DocID: "bad", Text: text("")})
	}
	for _, x := range []*system{a, b} {
		x.settled()
		for _, mode := range [][]messages.SearchType{dense, fullText, hybrid} {
			found := x.ask("docs", "secret about the pump", mode)
			if len(found) != 1 || !strings.Contains(found[0].Content, x.tenant+" ") {
				x.t.Errorf("%s %v: found %+v, want its own document only", x.tenant, mode, found)
			}
		}
		for _, e := range x.history() {
			if e.Tenant != x.tenant {
				x.t.Errorf("%s sees an event of %s", x.tenant, e.Tenant)
			}
		}
		if letters := x.deadLetters(""); len(letters) != 1 || letters[0].DocID != "bad" {
			x.t.Errorf("%s: dead letters are %+v, want its own", x.tenant, letters)
		}
		if list, err := call[messages.KBList](x, messages.TenantScope, messages.OpKBList, nil); err != nil || len(list.KnowledgeBases) != 1 {
			x.t.Errorf("%s: knowledge bases are %+v, %v; want one", x.tenant, list, err)
		}
	}
	// One tenant cannot touch what is the other's by its number.
	theirs := messages.DeadLetterRef{ID: b.deadLetters("")[0].ID}
	for _, op := range []string{messages.OpDLQGet, messages.OpDLQReplay, messages.OpDLQDiscard} {
		_, err := call[messages.DeadLetterRef](a, messages.TenantScope, op, theirs)
		isError(s.t, op, err, messages.CodeNotFound, "id")
	}
	if _, err := a.request("docs", messages.OpDelete, nil, messages.Delete{DocID: "d"}); err != nil {
		s.t.Error(err)
	}
	if got := docsOf(b.ask("docs", "secret", hybrid)); got != "d" {
		s.t.Errorf("after the other tenant's delete: found %q, want d", got)
	}
}

// filters go with a document from its submit to the queries over it.
func filters(s *system) {
	s.createKB(messages.CreateKB{
		KnowledgeBaseName: "docs", Metadata: messages.MetadataSchema{{Name: "year", Type: messages.TypeLong}},
		Retrieval: json.RawMessage(`{"filterExpression":"year >= 2025"}`),
	})
	s.put("docs", messages.Submit{DocID: "old", Text: text("The old pump."), Metadata: json.RawMessage(`{"year":2024}`)})
	s.put("docs", messages.Submit{DocID: "new", Text: text("The new pump."), Metadata: json.RawMessage(`{"year":2026}`)})
	for expression, want := range map[string]string{"": "new", "year < 2025": "old"} {
		c := &messages.RetrievalConfiguration{}
		if expression != "" {
			c.FilterExpression = messages.NewExpression(expression)
		}
		out, err := call[messages.RetrieveReply](s, "docs", messages.OpRetrieve, messages.RetrieveRequest{
			Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "the pump"}, Configuration: c,
		})
		if err != nil || docsOf(out.Results) != want {
			s.t.Errorf("%q: found %v (%v), want %s", expression, docsOf(out.Results), err, want)
		}
	}
	s.put("docs", messages.Submit{DocID: "old", Text: text("The old pump."), Metadata: json.RawMessage(`{"year":2025}`)})
	if found := s.ask("docs", "the pump", hybrid); len(found) != 2 {
		s.t.Errorf("with the metadata changed: found %v, want both", docsOf(found))
	}
}

// subspaces never leak into each other.
func subspaces(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Subspace: true})
	ev := s.watch("docs")
	for _, sub := range []string{"left", "right"} {
		s.publish("docs", sub, messages.Submit{DocID: "d", Subspace: sub, Text: text("The pump of the " + sub + " side.")})
	}
	ev.ready("left")
	ev.ready("right")
	s.publish("docs", "none", messages.Submit{DocID: "d", Text: text("x")})
	if e := ev.end("none"); e.Status != messages.StatusFailed || e.Error.Field != "subspace" {
		s.t.Errorf("without a subspace: got %+v", e)
	}
	for _, mode := range [][]messages.SearchType{dense, fullText, hybrid} {
		for _, sub := range []string{"left", "right"} {
			found := s.ask("docs", "the pump left right side", mode, sub)
			if len(found) != 1 || found[0].Subspace != sub || !strings.Contains(found[0].Content, sub) {
				s.t.Errorf("%s %v: found %+v", sub, mode, found)
			}
		}
		if found := s.ask("docs", "the pump", mode, "left", "right"); len(found) != 2 {
			s.t.Errorf("%v of both: found %d, want 2", mode, len(found))
		}
		if found := s.ask("docs", "the pump", mode, "middle"); len(found) != 0 {
			s.t.Errorf("%v of an empty one: found %+v", mode, found)
		}
	}
	s.publishDelete("docs", "del", messages.Delete{DocID: "d", Subspace: "left"})
	ev.end("del")
	if found := s.ask("docs", "the pump", hybrid, "left", "right"); len(found) != 1 || found[0].Subspace != "right" {
		s.t.Errorf("after the delete: found %+v, want the right one", found)
	}
	s.settled()
}

// indexTypes without one of the legs work from end to end.
func indexTypes(s *system) {
	for _, c := range []struct {
		kb       string
		kind     messages.IndexType
		has, not []messages.SearchType
	}{
		{"words", messages.IndexTypeBM25, fullText, dense},
		{"vectors", messages.IndexTypeVector, dense, fullText},
	} {
		s.createKB(messages.CreateKB{KnowledgeBaseName: c.kb, IndexType: c.kind})
		s.put(c.kb, messages.Submit{DocID: "d", Text: text("An indextypes" + c.kb + " text about the pump.")})
		if got := docsOf(s.ask(c.kb, "text about the pump", c.has)); got != "d" {
			s.t.Errorf("%s: found %q, want d", c.kb, got)
		}
		_, err := call[messages.RetrieveReply](s, c.kb, messages.OpRetrieve, messages.RetrieveRequest{
			Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "pump"}, Configuration: &messages.RetrievalConfiguration{SearchType: c.not},
		})
		if err == nil {
			s.t.Errorf("%s: the leg it has not answered", c.kb)
		}
		found, err := call[messages.RetrieveReply](s, c.kb, messages.OpRetrieve, messages.RetrieveRequest{Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "pump"}})
		if err != nil || docsOf(found.Results) != "d" {
			s.t.Errorf("%s by default: found %+v, %v", c.kb, found.Results, err)
		}
	}
	if n := s.fake.embedded("indextypeswords"); n != 0 {
		s.t.Errorf("%d texts of the knowledge base without vectors were embedded", n)
	}
	s.settled()
}

// deletedKB is gone with documents on their way; its successor of the same name starts empty.
func deletedKB(s *system) {
	const word = "holdkb"
	first := s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	s.put("docs", doc(1))
	release := s.fake.hold(word)
	defer release()
	for i := range 4 {
		s.publish("docs", fmt.Sprintf("late-%d", i), messages.Submit{DocID: fmt.Sprintf("late-%d", i), Text: text(fmt.Sprintf("The %s text %d.", word, i))})
	}
	s.awaitHeld(word)
	s.awaitCount(4, "SELECT count(*) FROM documents WHERE kb_id = $1 AND status = 'Indexing'", first.ID)
	if _, err := call[messages.KBRef](s, "docs", messages.OpKBDelete, nil); err != nil {
		s.t.Fatal(err)
	}
	_, err := call[messages.RetrieveReply](s, "docs", messages.OpRetrieve, messages.RetrieveRequest{Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "text"}})
	isError(s.t, "retrieve", err, messages.CodeKBNotFound, "knowledgeBaseName")
	second := s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	if second.ID == first.ID || second.Generation == first.Generation {
		s.t.Errorf("the new knowledge base %+v has a number of the old %+v", second, first)
	}
	release()
	s.put("docs", doc(2)) // comes behind the late work
	testkit.Eventually(s.t, func() error {
		if n := s.count("SELECT count(*) FROM knowledge_bases WHERE id = $1", first.ID); n != 0 {
			return fmt.Errorf("knowledge base %d is not purged", first.ID)
		}
		return nil
	})
	for _, table := range []string{"documents", "document_versions", "document_receipts", "blobs", "blob_parts", "generations"} {
		if n := s.count("SELECT count(*) FROM "+table+" WHERE kb_id = $1", first.ID); n != 0 {
			s.t.Errorf("%s: %d rows are left", table, n)
		}
	}
	for _, table := range []string{"chunks", "staged_chunks", "staged_vectors", "lex_segment", "lex_posting", "lex_tombstone"} {
		if n := s.count("SELECT count(*) FROM "+table+" WHERE generation = $1", first.Generation); n != 0 {
			s.t.Errorf("%s: %d rows are left", table, n)
		}
	}
	if n := s.count("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'chunks%' AND relname LIKE '%' || $1::text", fmt.Sprint(first.Generation)); n != 0 {
		s.t.Error("the partition is still there")
	}
	if got := docsOf(s.ask("docs", "text of the test", hybrid)); got != doc(2).DocID {
		s.t.Errorf("found %q in the new one, want only what was submitted to it", got)
	}
	if n := s.count("SELECT count(*) FROM documents WHERE kb_id = $1", second.ID); n != 1 {
		s.t.Errorf("the new one has %d documents, want 1", n)
	}
}
