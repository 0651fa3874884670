package e2e_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

const (
	examples = "../../../../examples"
	testdata = "../../../../services/ingester/internal/parse/testdata"
)

// formats go through the whole path, each a real file, and are found by words that stand in them.
func formats(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("docs")
	cases := []struct{ file, contentType, query string }{
		{examples + "/weather-station-notes.txt", "text/plain", ""},
		{examples + "/search-service-runbook.md", "text/markdown", ""},
		{examples + "/search-service-runbook-zh.md", "text/markdown", "运维手册"},
		{examples + "/bicycle-workshop-faq.html", "text/html", ""},
		{examples + "/garden-drip-line.docx", docxType, "drip line"},
		{examples + "/espresso-machine-handbook.pdf", "application/pdf", "espresso boiler vibration pump"},
		{examples + "/bicycle-brakes-zh.pdf", "application/pdf", "碟刹和圈刹"},
		{testdata + "/csv/stock.csv", "text/csv", "BRK-2093-X"},
		{testdata + "/json/nested.json", "application/json", "GSK-0581-R"},
		{testdata + "/jsonl/records.jsonl", "application/jsonl", "水泵不转"},
		{testdata + "/html/structure.html", "text/html", "layout table"},
		{testdata + "/txt/gb18030.charset-gb18030.txt", "text/plain; charset=gb18030", ""},
	}
	for _, c := range cases {
		id := filepath.Base(c.file)
		s.publish("docs", id, messages.Submit{DocID: id, ContentType: c.contentType, Data: readFile(s.t, c.file)})
		s.publish("docs", "guess "+id, messages.Submit{DocID: "guess/" + id, Data: readFile(s.t, c.file)})
	}
	for _, c := range cases {
		id := filepath.Base(c.file)
		ev.ready(id)
		if !strings.Contains(id, "gb18030") { // undeclared, no one can know
			ev.ready("guess " + id)
		}
		if c.query == "" {
			continue
		}
		if got := docsOf(s.ask("docs", c.query, fullText)); !strings.Contains(" "+got+" ", " "+id+" ") {
			s.t.Errorf("%q found %q, want %s among them", c.query, got, id)
		}
	}
	pages(s)
	s.settled()
}

// pages of a PDF stand in results and chunks.
func pages(s *system) {
	const id = "espresso-machine-handbook.pdf"
	last := 0
	for _, c := range s.chunks("docs", id) {
		if c.PageFrom < max(last, 1) && c.PageFrom < last || c.PageFrom < 1 || c.PageTo < c.PageFrom {
			s.t.Errorf("chunk %d is on pages %d to %d after page %d", c.ChunkID, c.PageFrom, c.PageTo, last)
		}
		last = c.PageTo
	}
	if last != 3 {
		s.t.Errorf("the last chunk ends on page %d, want 3", last)
	}
	for _, r := range s.ask("docs", "espresso boiler vibration pump", hybrid) {
		if r.DocID == id {
			if r.PageFrom < 1 || r.PageTo < r.PageFrom || r.Title != "Espresso Machine Handbook" || len(r.HeadingPath) == 0 {
				s.t.Errorf("result: got %+v, want page, title and heading", r)
			}
			return
		}
	}
	s.t.Errorf("%s was not found", id)
}

// sizes from a title alone to several parts of embedding work.
func sizes(s *system) {
	s.smallChunks("docs")
	ev := s.watch("docs")
	s.publish("docs", "title", messages.Submit{DocID: "title", Title: "Only the titleword", Text: text("")})
	s.publish("docs", "long", markdown("long", sections(1200, "manyparts")))
	s.publish("docs", "zh", messages.Submit{DocID: "zh", Text: text("这台离心泵的机械密封每年更换一次，备件编号见附录。")})
	ev.ready("title")
	if got := docsOf(s.ask("docs", "titleword", fullText)); got != "title" {
		s.t.Errorf("by its title: found %q", got)
	}
	ev.ready("zh")
	for _, q := range []string{"机械密封", "離心泵", "备件"} {
		if got := docsOf(s.ask("docs", q, fullText)); got != "zh" {
			s.t.Errorf("%s: found %q, want zh", q, got)
		}
	}
	e := ev.ready("long")
	if e.Chunks < 1200 || e.Reused != 0 || s.fake.embedded("manyparts") < 1200 {
		s.t.Errorf("long: got %+v with %d texts embedded", e, s.fake.embedded("manyparts"))
	}
	kb := s.count("SELECT id FROM knowledge_bases WHERE tenant = $1", s.tenant)
	if n := s.count("SELECT count(*) FROM chunks c JOIN documents d ON d.key = c.document_key AND d.live_version = c.version WHERE d.kb_id = $1 AND d.doc_id = 'long' AND embedding IS NOT NULL", kb); n != e.Chunks {
		s.t.Errorf("%d live chunks with vectors, want %d", n, e.Chunks)
	}
	if n := s.count("SELECT count(*) FROM staged_vectors v JOIN documents d ON d.key = v.document_key WHERE d.kb_id = $1", kb); n != 0 {
		s.t.Errorf("%d staged vectors are left", n)
	}
	found := s.ask("docs", "section 777", fullText)
	if len(found) == 0 || !strings.Contains(found[0].Content, "section 777 ") {
		s.t.Errorf("section 777: found %+v", found)
	}
	s.settled()
}

// ids of every kind are kept to the letter and never break a subject.
func ids(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("docs")
	all := []string{"*", ">", "a.b.c", "_", "~X", "with space", "水泵/手册.pdf", strings.Repeat("i", 512), "a\nb", "%41", "..", "Ready", base64.StdEncoding.EncodeToString([]byte("id"))}
	for i, id := range all {
		s.publish("docs", "m"+string(rune('a'+i)), messages.Submit{DocID: id, Text: text("The idword of one.")})
	}
	for i, id := range all {
		m := "m" + string(rune('a'+i))
		if e := ev.ready(m); e.DocID != id {
			s.t.Errorf("event names %q, want %q", e.DocID, id)
		}
		if want := messages.EventSubject(s.tenant, "docs", id, messages.StatusReady); ev.last[m] != want || strings.Count(want, ".") != 5 {
			s.t.Errorf("%q: event on %s, want %s", id, ev.last[m], want)
		}
		if d := s.document("docs", id); d.DocID != id || d.Status != messages.StatusReady {
			s.t.Errorf("document: got %+v, want %q", d, id)
		}
	}
	if found := s.ask("docs", "idword", fullText); len(found) != len(all) {
		s.t.Errorf("found %d, want %d", len(found), len(all))
	}
	s.settled()
}

// lastBatchesAtOnce lets all parts of a document come back together: one swap makes it live.
func lastBatchesAtOnce(s *system) {
	const word = "holdparts"
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Chunking: &messages.Chunking{Size: 4000}})
	release := s.fake.hold(word)
	defer release()
	ev := s.watch("docs")
	large := strings.Repeat("The pump hums in the cellar and nobody minds it at all.\n\n", 900_000/57)
	s.publish("docs", "m1", messages.Submit{DocID: "d", Title: word, Text: &large})
	parts := 0
	testkit.Eventually(s.t, func() error {
		if parts = s.fake.waitingFor(word); parts < 4 {
			return fmt.Errorf("%d parts have come to the embedding server, want several", parts)
		}
		return nil
	})
	release()
	e := ev.ready("m1")
	kb := s.count("SELECT id FROM knowledge_bases WHERE tenant = $1", s.tenant)
	if n := s.count("SELECT count(*) FROM chunks c JOIN documents d ON d.key = c.document_key WHERE d.kb_id = $1 AND embedding IS NOT NULL", kb); n != e.Chunks {
		s.t.Errorf("%d live chunks, want %d", n, e.Chunks)
	}
	if n := s.count("SELECT count(DISTINCT c.xmin::text) FROM chunks c JOIN documents d ON d.key = c.document_key WHERE d.kb_id = $1", kb); n != 1 {
		s.t.Errorf("%d transactions wrote the chunks, want 1", n)
	}
	if n := s.count("SELECT count(*) FROM lex_segment WHERE generation = (SELECT id FROM generations WHERE kb_id = $1)", kb); n != 1 {
		s.t.Errorf("%d segments, want 1", n)
	}
	s.settled()
}
