package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// file publishes lines over the object store, as one document that is split.
func (s *system) file(id, docID string, lines ...string) {
	s.t.Helper()
	content := strings.Join(lines, "\n")
	s.upload(id, content)
	s.publish("docs", id, messages.Submit{
		DocID: docID, ContentType: "application/jsonl", Metadata: []byte(`{"origin":"file"}`),
		Upload: &messages.Upload{Object: id, Size: int64(len(content))},
	})
}

// listed is id and status of every document, in order.
func (s *system) listed() string {
	s.t.Helper()
	list, err := call[messages.DocumentList](s, "docs", messages.OpDocList, messages.ListDocuments{Page: messages.Page{MaxResults: 100}})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, d := range list.Documents {
		out = append(out, d.DocID+" "+string(d.Status))
	}
	return strings.Join(out, ", ")
}

func equalJSON(got json.RawMessage, want string) bool {
	var a, b any
	return json.Unmarshal(got, &a) == nil && json.Unmarshal([]byte(want), &b) == nil && reflect.DeepEqual(a, b)
}

func wantLines(s *system, what string, got *messages.Lines, total, accepted, unchanged, failed int) {
	s.t.Helper()
	if got == nil || got.Total != total || got.Accepted != accepted || got.Unchanged != unchanged || got.Failed != failed {
		s.t.Errorf("%s: got %+v, want %d lines: %d accepted, %d unchanged, %d failed", what, got, total, accepted, unchanged, failed)
	}
}

// splitFile is a file of JSON lines through its life: published, edited, published again, deleted.
func splitFile(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Metadata: messages.MetadataSchema{
		{Name: "origin", Type: messages.TypeString}, {Name: "year", Type: messages.TypeLong},
	}})
	ev := s.watch("docs")
	s.file("m1", "all.jsonl",
		`{"docId":"pump","text":"The pump hums in the cellar.","metadata":{"year":2020}}`,
		``,
		`{"_id":"valve","title":"Valve","text":"The valve is shut.","metadata":{"origin":"line"}}`,
		`{"text":"A line without a name."}`,
		`{"colour":"green","size":4}`,
		`{"docId":"bad year","text":"x","metadata":{"year":"old"}}`,
		`{"docId":"bad`,
		`{"docId":"blank","text":"   "}`,
	)
	e := ev.ready("m1")
	wantLines(s, "event", e.Lines, 7, 4, 0, 3)
	d := s.document("docs", "all.jsonl")
	wantLines(s, "document", d.Lines, 7, 4, 0, 3)
	if d.Status != messages.StatusReady || d.LiveVersion != 0 || d.Chunks != 0 {
		s.t.Errorf("the file: got %+v, want it Ready without chunks of its own", d)
	}
	var bad []string
	for _, e := range d.Lines.Errors {
		bad = append(bad, fmt.Sprintf("%d %s %s %s", e.Line, e.DocID, e.Error.Code, e.Error.Field))
	}
	if want := []string{"6 bad year VALIDATION_ERROR metadata.year", "7  VALIDATION_ERROR body", "8 blank EMPTY_DOCUMENT text"}; !slices.Equal(bad, want) {
		s.t.Errorf("errors: got %q, want %q", bad, want)
	}
	if got, want := s.listed(), "all.jsonl Ready, all.jsonl#4 Ready, all.jsonl#5 Ready, blank Failed, pump Ready, valve Ready"; got != want {
		s.t.Errorf("documents: got %s, want %s", got, want)
	}
	for id, want := range map[string]string{"pump": `{"year":2020,"origin":"file"}`, "valve": `{"origin":"line"}`} {
		if got := s.document("docs", id); !equalJSON(got.Metadata, want) || got.OSSKey != id {
			s.t.Errorf("%s: got metadata %s, want %s", id, got.Metadata, want)
		}
	}
	if got := docsOf(s.ask("docs", "green", fullText)); got != "all.jsonl#5" {
		s.t.Errorf("a record that is no submit: found %q", got)
	}
	editedFile(s, ev)
	deletedFile(s, ev)
	s.settled()
}

func editedFile(s *system, ev *events) {
	pump, valve := `{"docId":"pump","text":"The pump hums in the cellar.","metadata":{"year":2020}}`, `{"docId":"valve","text":"The valve is open."}`
	s.put("docs", messages.Submit{DocID: "own", Text: new("Published by itself.")})
	s.file("m2", "all.jsonl", pump, valve, `{"docId":"bad`)
	wantLines(s, "edited, one line broken", ev.ready("m2").Lines, 3, 1, 1, 1)
	if got, want := s.listed(), "all.jsonl Ready, all.jsonl#4 Ready, all.jsonl#5 Ready, blank Failed, own Ready, pump Ready, valve Ready"; got != want {
		s.t.Errorf("a broken line may be any document, so none is removed: got %s, want %s", got, want)
	}
	s.file("m3", "all.jsonl", pump, valve, `{"docId":"blank","text":"x","metadata":{"year":"old"}}`, `{"docId":"own","text":"Published by itself."}`)
	wantLines(s, "edited", ev.ready("m3").Lines, 4, 0, 3, 1)
	if got, want := s.listed(), "all.jsonl Ready, blank Failed, own Ready, pump Ready, valve Ready"; got != want {
		s.t.Errorf("edited: got %s, want %s", got, want)
	}
	if found := s.ask("docs", "nameless line without a name", fullText); len(found) != 0 && docsOf(found) != "" && strings.Contains(docsOf(found), "#") {
		s.t.Errorf("a line that is gone is still found: %s", docsOf(found))
	}
	s.file("m4", "all.jsonl", `{"docId":"bad`, `[]`)
	if e := ev.end("m4"); e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != messages.CodeValidation || !strings.Contains(e.Error.Message, "line 1") {
		s.t.Errorf("no good line: got %+v (%v)", e, e.Error)
	}
	wantLines(s, "no good line", s.document("docs", "all.jsonl").Lines, 2, 0, 0, 2)
	s.file("m5", "all.jsonl", "", " ")
	if e := ev.end("m5"); e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != messages.CodeEmptyDocument {
		s.t.Errorf("no line: got %+v (%v)", e, e.Error)
	}
	if got, want := s.listed(), "all.jsonl Failed, blank Failed, own Ready, pump Ready, valve Ready"; got != want {
		s.t.Errorf("a failed version leaves the lines: got %s, want %s", got, want)
	}
}

func deletedFile(s *system, ev *events) {
	s.put("docs", messages.Submit{DocID: "pump", Text: new("Now published by itself.")})
	reply, err := s.request("docs", messages.OpDelete, nil, messages.Delete{DocID: "all.jsonl"})
	if err != nil || reply.Status != messages.StatusDeleting {
		s.t.Fatalf("delete: got %+v (%v), want Deleting", reply, err)
	}
	if e := ev.end(reply.SubmitID); e.Status != messages.StatusDeleted {
		s.t.Errorf("delete ended %+v", e)
	}
	if got := s.listed(); got != "pump Ready" {
		s.t.Errorf("deleted: got %s, want what was published by itself since", got)
	}
	_, err = s.request("docs", messages.OpDelete, nil, messages.Delete{DocID: "all.jsonl"})
	isError(s.t, "deleted again", err, messages.CodeDocumentNotFound, "docId")

	s.file("m6", "all.jsonl", `{"docId":"valve","text":"The valve is back."}`)
	wantLines(s, "after the delete", ev.ready("m6").Lines, 1, 1, 0, 0)
	s.publish("docs", "m7", messages.Submit{DocID: "all.jsonl", ContentType: "application/jsonl", Text: new(`{"docId":"valve","text":"One document."}`)})
	ev.ready("m7") // in the message, it is one document
	testkit.Eventually(s.t, func() error {
		if got, want := s.listed(), "all.jsonl Ready, pump Ready"; got != want {
			return errors.New("a document that is split no more: got " + got + ", want " + want)
		}
		return nil
	})
	if d := s.document("docs", "all.jsonl"); d.Lines != nil || d.Chunks != 1 || d.LiveVersion != d.Version {
		s.t.Errorf("got %+v, want a document like any", d)
	}
	s.file("m8", "all.jsonl", `{"docId":"valve","text":"Split again."}`)
	ev.ready("m8")
	if got := docsOf(s.ask("docs", "document split again", fullText)); got != "valve" {
		s.t.Errorf("split again: found %q, want the line alone", got)
	}
}

// A file whose work, and that of its lines, is lost with the streams again and again still ends, with all of its lines.
func TestASplitFileOutlivesTheStreams(t *testing.T) {
	l := losing{start(t, options{reconcile: lookEvery})}
	l.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Metadata: messages.MetadataSchema{{Name: "origin", Type: messages.TypeString}}})
	l.fake.Always(slow())
	const n = 300
	content := make([]string, n)
	for i := range content {
		content[i] = fmt.Sprintf(`{"docId":"d%d","text":"Line %d of the file."}`, i, i)
	}
	l.file("m", "all.jsonl", content...)
	for _, taken := range []int{0, 1, n / 2, n} {
		testkit.Eventually(t, func() error {
			if got := l.count(`SELECT count(*) FROM documents WHERE version > 0`); got <= taken {
				return fmt.Errorf("got %d documents, want more than %d", got, taken)
			}
			return nil
		})
		for _, stream := range []string{messages.StreamParse, messages.StreamEmbed, messages.StreamIndex} {
			l.purge(stream)
		}
	}
	l.until("Ready documents", n+1, `SELECT count(*) FROM documents WHERE status = 'Ready'`)
	wantLines(l.system, "file", l.document("docs", "all.jsonl").Lines, n, n, 0, 0)
	if got := l.count(`SELECT count(*) FROM chunks`); got != n {
		t.Errorf("got %d chunks, want one a line", got)
	}
	l.settled()
}
