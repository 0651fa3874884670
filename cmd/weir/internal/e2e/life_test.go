package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// sections is a Markdown text of n sections that each make a chunk in a knowledge base of small chunks.
func sections(n int, words string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "# Section %d\n\nThe pump of section %d is %s. ", i, i, words)
		b.WriteString(strings.Repeat("It is looked after each week by the one who runs it. ", 2) + "\n\n")
	}
	return b.String()
}

func markdown(id, content string) messages.Submit {
	return messages.Submit{DocID: id, ContentType: "text/markdown", Text: &content}
}

// smallChunks makes a knowledge base whose chunks are short, so that short texts have several.
func (s *system) smallChunks(name string) {
	s.t.Helper()
	overlap := 0
	s.createKB(messages.CreateKB{KnowledgeBaseName: name, Chunking: &messages.Chunking{Size: 64, Overlap: &overlap}})
}

// fromSubmitToAnswer follows a document from its submit to answers in every mode.
func fromSubmitToAnswer(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("docs")
	s.publish("docs", "m1", messages.Submit{
		DocID: "manual", Title: "Pump manual", OSSKey: "shelf/manual.md", ContentType: "text/markdown",
		Text: text("# Care\n\nGrease the bearing.\n\n## Seals\n\nThe seal GSK-0581-R is changed every year.\n"),
	})
	s.publish("docs", "m2", doc(7))
	e := ev.ready("m1")
	if e.DocID != "manual" || e.Version != 1 || e.Chunks == 0 || e.Tokens == 0 || e.KBID == 0 || e.Subspace != messages.DefaultSubspace {
		s.t.Errorf("event: got %+v", e)
	}
	ev.ready("m2")
	for _, id := range []string{"m1", "m2"} {
		if got := ev.statuses(id); got != "Pending Indexing Ready " {
			s.t.Errorf("%s went through %q, want Pending, Indexing, Ready", id, got)
		}
	}
	for name, mode := range map[string][]messages.SearchType{"dense": dense, "full text": fullText, "hybrid": hybrid} {
		found := s.ask("docs", "seal GSK-0581-R", mode)
		if len(found) == 0 {
			s.t.Errorf("%s: nothing found", name)
			continue
		}
		i := 0
		for i < len(found)-1 && found[i].DocID != "manual" {
			i++
		}
		r := found[i]
		if r.DocID != "manual" || r.Title != "Pump manual" || r.OSSKey != "shelf/manual.md" || len(r.HeadingPath) == 0 || r.HeadingPath[0] != "Care" {
			s.t.Errorf("%s: got %+v", name, r)
		}
		if name == "full text" && (len(found) != 1 || !strings.Contains(r.Content, "GSK-0581-R")) {
			s.t.Errorf("%s: got %d results, first %+v; want the one with the words", name, len(found), r)
		}
		if strings.Contains(r.Content, "GSK") && strings.Join(r.HeadingPath, "/") == "" {
			s.t.Errorf("%s: no heading path in %+v", name, r)
		}
	}
	if d := s.document("docs", "manual"); d.Status != messages.StatusReady || d.Version != 1 || d.LiveVersion != 1 || d.Chunks != e.Chunks {
		s.t.Errorf("document: got %+v", d)
	}
	s.settled()
}

// whichVersion tells which of the two texts the answers show, and refuses a mix, a gap and a part.
func whichVersion(results []messages.RetrievedChunk, older, newer int) (string, error) {
	oldies, newbies := 0, 0
	for _, r := range results {
		if strings.Contains(r.Content, "painted green") {
			oldies++
		}
		if strings.Contains(r.Content, "painted red") {
			newbies++
		}
	}
	switch {
	case oldies == older && newbies == 0:
		return "old", nil
	case oldies == 0 && newbies == newer:
		return "new", nil
	}
	return "", fmt.Errorf("%d chunks of the old version and %d of the new, want all %d or all %d", oldies, newbies, older, newer)
}

// updateIsAtomic looks at a document all the time while its new version is on its way.
func updateIsAtomic(s *system) {
	const word = "holdupdate"
	s.smallChunks("docs")
	s.put("docs", markdown("d", sections(3, "painted green")))
	older := len(s.chunks("docs", "d"))
	release := s.fake.hold(word)
	defer release()
	ev := s.watch("docs")
	s.publish("docs", "update", markdown("d", sections(5, "painted red")+"\n\n# Last\n\nThe pump with "+word+" at the end, which is painted red as well.\n"))
	s.awaitHeld(word)
	if d := s.document("docs", "d"); d.Status != messages.StatusIndexing || d.Version != 2 || d.LiveVersion != 1 {
		s.t.Errorf("while it is on its way: got %+v, want Indexing of version 2 with 1 live", d)
	}
	newer := s.document("docs", "d").Chunks
	if older < 3 || newer <= older {
		s.t.Fatalf("%d chunks and %d, want several", older, newer)
	}
	for _, mode := range [][]messages.SearchType{dense, fullText, hybrid} {
		if got, err := whichVersion(s.ask("docs", "pump painted", mode), older, newer); got != "old" {
			s.t.Errorf("%v while the update is on its way: got %q, %v; want the old version", mode, got, err)
		}
	}
	release()
	testkit.Eventually(s.t, func() error {
		for _, mode := range [][]messages.SearchType{dense, fullText, hybrid} {
			got, err := whichVersion(s.ask("docs", "pump painted", mode), older, newer)
			if err != nil {
				s.t.Fatalf("%v: %v", mode, err)
			}
			if got != "new" {
				return fmt.Errorf("%v still shows the %s version", mode, got)
			}
		}
		return nil
	})
	ev.ready("update")
	if got := len(s.chunks("docs", "d")); got != newer {
		s.t.Errorf("chunks: got %d, want %d", got, newer)
	}
	s.settled()
}

// failedUpdate leaves the old version where it is.
func failedUpdate(s *system) {
	const word = "refusedupdate"
	s.smallChunks("docs")
	s.put("docs", markdown("d", sections(3, "painted green")))
	older := len(s.chunks("docs", "d"))
	s.fake.refuse(word, true)
	ev := s.watch("docs")
	s.publish("docs", "update", markdown("d", sections(3, "painted red")+"\n\n# Last\n\n"+word+" is here\n"))
	e := ev.end("update")
	if e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != messages.CodeEmbeddingRejected || e.Error.Stage != messages.StageEmbed || e.Version != 2 {
		s.t.Errorf("event: got %+v (%v)", e, e.Error)
	}
	d := s.document("docs", "d")
	if d.Status != messages.StatusFailed || d.Version != 2 || d.LiveVersion != 1 || d.Error == nil || d.Error.Code != messages.CodeEmbeddingRejected {
		s.t.Errorf("document: got %+v", d)
	}
	if got, err := whichVersion(s.ask("docs", "pump painted", hybrid), older, -1); got != "old" {
		s.t.Errorf("got %q, %v; want the old version", got, err)
	}
	s.publish("docs", "again", markdown("d", sections(4, "painted red")))
	if e := ev.ready("again"); e.Version != 3 {
		s.t.Errorf("the next submit: got %+v, want version 3", e)
	}
	s.settled()
}

// overtaken submits end Superseded, once each, and the last one wins.
func overtaken(s *system) {
	const word = "holdovertaken"
	s.smallChunks("docs")
	release := s.fake.hold(word)
	defer release()
	ev := s.watch("docs")
	const n = 12
	for i := range n {
		s.publish("docs", fmt.Sprintf("m%d", i), markdown("d", fmt.Sprintf("# A %s\n\nText number%d of it.", word, i)))
	}
	for i := range n - 1 {
		if e := ev.end(fmt.Sprintf("m%d", i)); e.Status != messages.StatusSuperseded {
			s.t.Errorf("m%d: got %+v, want Superseded", i, e)
		}
	}
	release()
	if e := ev.ready(fmt.Sprintf("m%d", n-1)); e.Version > n { // those seen after a newer one get none
		s.t.Errorf("the last: got %+v, want at most version %d", e, n)
	}
	found := s.ask("docs", "text number11", fullText)
	if docsOf(found) != "d" || !strings.Contains(found[0].Content, "number11") {
		s.t.Errorf("found %+v", found)
	}
	s.awaitCount(0, "SELECT count(*) FROM staged_chunks c JOIN documents d ON d.key = c.document_key JOIN knowledge_bases k ON k.id = d.kb_id WHERE k.tenant = $1", s.tenant)
	s.settled()
}

// sameContentWhileOpen is answered by the version on its way, each submit with its own event.
func sameContentWhileOpen(s *system) {
	const word = "holdsame"
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	release := s.fake.hold(word)
	defer release()
	ev := s.watch("docs")
	for i := range 3 {
		id := fmt.Sprintf("m%d", i)
		s.publish("docs", id, messages.Submit{DocID: "d", Text: text("Only " + word + " here.")})
		ev.first(id)
	}
	release()
	for i := range 3 {
		if e := ev.ready(fmt.Sprintf("m%d", i)); e.Version != 1 {
			s.t.Errorf("m%d: got %+v, want version 1", i, e)
		}
	}
	if n := s.fake.embedded(word); n != 1 {
		s.t.Errorf("%d texts were embedded, want 1", n)
	}
	s.settled()
}

// deleted documents are gone at once and come back when they are submitted again.
func deleted(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	s.put("docs", doc(1))
	s.put("docs", doc(2))
	ev := s.watch("docs")
	s.publishDelete("docs", "del", messages.Delete{DocID: doc(1).DocID})
	if e := ev.end("del"); e.Status != messages.StatusDeleted || e.DocID != doc(1).DocID || e.Version != 2 {
		s.t.Errorf("event: got %+v, want Deleted", e)
	}
	for _, mode := range [][]messages.SearchType{dense, fullText, hybrid} {
		if got := docsOf(s.ask("docs", "text of the test", mode)); got != doc(2).DocID {
			s.t.Errorf("%v: found %q, want the other one", mode, got)
		}
	}
	_, err := call[messages.ChunkList](s, "docs", messages.OpDocChunks, messages.ListChunks{DocID: doc(1).DocID})
	isError(s.t, "chunks", err, messages.CodeDocumentNotFound, "docId")
	_, err = call[messages.DocumentInfo](s, "docs", messages.OpDocGet, messages.DocumentRef{DocID: doc(1).DocID})
	isError(s.t, "document", err, messages.CodeDocumentNotFound, "docId")
	s.publish("docs", "again", doc(1))
	if e := ev.ready("again"); e.Unchanged || e.Version != 3 {
		s.t.Errorf("submitted again: got %+v, want a new version 3", e)
	}
	if got := len(s.ask("docs", "text of the test", fullText)); got != 2 {
		s.t.Errorf("found %d, want both", got)
	}
	reply, err := s.request("docs", messages.OpDelete, nil, messages.Delete{DocID: doc(1).DocID})
	if err != nil || reply.Status != messages.StatusDeleted {
		s.t.Errorf("delete by request: got %+v, %v", reply, err)
	}
	if got := docsOf(s.ask("docs", "text of the test", hybrid)); got != doc(2).DocID {
		s.t.Errorf("found %q after the reply, want the other one", got)
	}
	s.settled()
}

// deletedOnTheWay ends a submit whose vectors come after the delete: late work changes nothing.
func deletedOnTheWay(s *system) {
	const word = "holddeleted"
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	release := s.fake.hold(word)
	defer release()
	ev := s.watch("docs")
	s.publish("docs", "m1", messages.Submit{DocID: "d", Text: text("Only " + word + " here.")})
	s.awaitHeld(word)
	s.publishDelete("docs", "del", messages.Delete{DocID: "d"})
	if e := ev.end("del"); e.Status != messages.StatusDeleted {
		s.t.Errorf("delete: got %+v", e)
	}
	if e := ev.end("m1"); e.Status != messages.StatusSuperseded {
		s.t.Errorf("submit: got %+v, want Superseded", e)
	}
	release()
	s.put("docs", doc(1)) // comes behind the late vectors
	if got := docsOf(s.ask("docs", "only here", hybrid)); got != doc(1).DocID {
		s.t.Errorf("found %q, want only what was not deleted", got)
	}
	s.settled()
}

// unchanged and metadata-only submits embed nothing and make no version.
func unchanged(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Metadata: badSchema})
	submit := func(year string) messages.Submit {
		return messages.Submit{DocID: "d", Title: "T", Text: text("The valve meterword was built."), Metadata: json.RawMessage(`{"year":` + year + `}`)}
	}
	s.put("docs", submit("1999"))
	ev := s.watch("docs")
	s.publish("docs", "same", submit("1999.0"))
	if e := ev.ready("same"); !e.Unchanged || e.Version != 1 || ev.statuses("same") != "Ready " {
		s.t.Errorf("the same again: got %+v after %q, want Ready unchanged", e, ev.statuses("same"))
	}
	rows := s.count("SELECT count(*) FROM document_versions v JOIN knowledge_bases k ON k.id = v.kb_id WHERE k.tenant = $1", s.tenant)
	s.publish("docs", "metadata", submit("2001"))
	if e := ev.ready("metadata"); !e.Unchanged || e.Version != 1 {
		s.t.Errorf("other metadata: got %+v, want Ready of version 1", e)
	}
	found := s.ask("docs", "meterword valve", hybrid)
	if len(found) != 1 || string(found[0].Metadata) != `{"year":2001}` && string(found[0].Metadata) != `{"year": 2001}` {
		s.t.Errorf("found %+v, want the new metadata", found)
	}
	if got := s.fake.embedded("meterword was built"); got != 1 {
		s.t.Errorf("%d texts were embedded, want 1", got)
	}
	if got := s.count("SELECT count(*) FROM document_versions v JOIN knowledge_bases k ON k.id = v.kb_id WHERE k.tenant = $1", s.tenant); got != rows {
		s.t.Errorf("%d versions, want %d", got, rows)
	}
	s.settled()
}

// idempotencyKeys give one verdict, whatever comes under the key.
func idempotencyKeys(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	key := bus.Header{messages.HeaderIdempotencyKey: "k1"}
	first, err := s.request("docs", messages.OpSubmit, key, doc(1))
	if err != nil || first.Version != 1 || first.SubmitID != "k1" {
		s.t.Fatalf("first: got %+v, %v", first, err)
	}
	s.awaitStatus("docs", doc(1).DocID, messages.StatusReady)
	other := doc(1)
	other.Text = text("Quite another text.")
	for name, submit := range map[string]messages.Submit{"the same": doc(1), "another content": other} {
		again, err := s.request("docs", messages.OpSubmit, key, submit)
		if err != nil || again.Version != 1 || again.SubmitID != "k1" || again.DocID != doc(1).DocID {
			s.t.Errorf("%s under the key: got %+v, %v; want the first verdict %+v", name, again, err, first)
		}
	}
	if d := s.document("docs", doc(1).DocID); d.Version != 1 || d.Status != messages.StatusReady {
		s.t.Errorf("document: got %+v, want version 1", d)
	}
	next, err := s.request("docs", messages.OpSubmit, bus.Header{messages.HeaderIdempotencyKey: "k2"}, other)
	if err != nil || next.Version != 2 {
		s.t.Errorf("under another key: got %+v, %v; want version 2", next, err)
	}
	// The key belongs to its knowledge base.
	s.createKB(messages.CreateKB{KnowledgeBaseName: "other"})
	if there, err := s.request("other", messages.OpSubmit, key, doc(1)); err != nil || there.Version != 1 {
		s.t.Errorf("elsewhere: got %+v, %v", there, err)
	}
	s.awaitStatus("other", doc(1).DocID, messages.StatusReady)
	// A publisher that uses a message id again for another document is not misunderstood.
	id := bus.Header{messages.HeaderRequestID: "r1"}
	a, errA := s.request("docs", messages.OpSubmit, id, doc(5))
	b, errB := s.request("docs", messages.OpSubmit, id, doc(6))
	if errA != nil || errB != nil || a.DocID == b.DocID || b.Version != 1 {
		s.t.Errorf("one request id twice: got %+v, %v and %+v, %v", a, errA, b, errB)
	}
	s.awaitStatus("docs", doc(6).DocID, messages.StatusReady)
}

// editedParagraph of a long document embeds a handful of chunks.
func editedParagraph(s *system) {
	s.smallChunks("docs")
	long := sections(60, "longedit")
	first := s.put("docs", markdown("d", long))
	if first.Chunks < 60 || first.Reused != 0 {
		s.t.Fatalf("first: got %+v", first)
	}
	before := s.fake.embedded("longedit")
	edited := s.put("docs", markdown("d", strings.Replace(long, "section 30 is", "section 30 surely is", 1)))
	fresh := s.fake.embedded("longedit") - before
	if edited.Version != 2 || fresh == 0 || fresh > 3 || edited.Reused != edited.Chunks-fresh {
		s.t.Errorf("edit: got %+v with %d texts embedded, want at most 3 and the rest reused", edited, fresh)
	}
	if d := s.document("docs", "d"); d.Reused != edited.Reused || d.Chunks != edited.Chunks {
		s.t.Errorf("document: got %+v, want the counts of %+v", d, edited)
	}
	if found := s.ask("docs", "surely", fullText); len(found) != 1 {
		s.t.Errorf("found %d chunks with the new word, want 1", len(found))
	}
	back := s.put("docs", markdown("d", long))
	if back.Version != 3 || back.Chunks-back.Reused > 3 {
		s.t.Errorf("edited back: got %+v", back)
	}
	s.settled()
}

// toldLate: when the indexer dies between making a version live and telling so, the message it did not
// acknowledge comes again, perhaps after the next version went live. The submit must still be told, and one
// that was told another end must not.
func toldLate(s *system) {
	const word, bad = "holdlate", "refusedlate"
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	s.put("docs", messages.Submit{DocID: "d", Text: text("The first text.")})
	release := s.fake.hold(word)
	defer release()
	ev := s.watch("docs")
	s.fake.refuse(bad, true)
	s.publish("docs", "failed", messages.Submit{DocID: "d", Text: text("The second is " + bad)})
	ev.end("failed")
	s.publish("docs", "overtaken", messages.Submit{DocID: "d", Text: text("The third is " + word)})
	s.awaitHeld(word)
	s.publish("docs", "last", messages.Submit{DocID: "d", Text: text("The fourth text.")})
	ev.ready("last")
	release()
	key := int64(s.count("SELECT key FROM documents d JOIN knowledge_bases k ON k.id = d.kb_id WHERE k.tenant = $1", s.tenant))
	for version, want := range []string{1: "put-0", 2: "", 3: "", 4: "last", 5: ""} {
		list, err := pgstore.New(s.pool).ReadyOf(s.t.Context(), []pgstore.Candidate{{DocKey: key, Version: int64(version)}})
		if err != nil {
			s.t.Fatal(err)
		}
		got := ""
		for _, r := range list {
			got += strings.TrimPrefix(r.SubmitID, s.msgID(""))
		}
		if got != want {
			s.t.Errorf("of version %d: told %q, want %q", version, got, want)
		}
	}
	s.settled()
}
