package ingester_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/ingester/internal/intake"
)

func TestBothFormsOfASubmitAreTheSameSubmit(t *testing.T) {
	l := newLab(t, nil)
	from := l.from(`{"docId":"a b/ü","title":"Tä","contentType":"text/plain","data":"dGV4dA==","ossKey":"k/ü","metadata":{"year":2020}}`, nil)
	first, err := l.intake.Submit(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	wantTold(t, "JSON", first.Messages, "Pending v1 m1", "parse")
	again, err := l.intake.Submit(t.Context(), from)
	if err != nil || !slices.Equal(names(again.Messages), names(first.Messages)) || again.Reply != first.Reply {
		t.Errorf("delivered again: got %+v (%v), want %+v", again.Reply, err, first.Reply)
	}
	raw, err := l.intake.Submit(t.Context(), l.from("text", map[string]string{
		messages.HeaderDocID: "a%20b%2F%C3%BC", messages.HeaderTitle: "T%C3%A4", messages.HeaderContentType: "text/plain",
		messages.HeaderOSSKey: "k/%C3%BC", messages.HeaderMetadata: "%7B%22year%22:2020%7D",
	}))
	if err != nil {
		t.Fatal(err)
	}
	wantTold(t, "raw", raw.Messages, "Pending v1 m2") // nothing differs, and version 1 is still open
	if !raw.Reply.Unchanged || raw.Reply.Version != 1 || raw.Reply.DocID != "a b/ü" || raw.Reply.Subspace != messages.DefaultSubspace {
		t.Errorf("got %+v", raw.Reply)
	}
	if n := l.count("SELECT count(*) FROM document_versions WHERE oss_key = 'k/ü' AND title = 'Tä' AND content_type = 'text/plain'"); n != 1 {
		t.Errorf("got %d such versions, want one", n)
	}
}

func TestWhatASubmitLeavesOpen(t *testing.T) {
	l := newLab(t, nil)
	l.submit(`{"_id":"text","text":"x"}`)
	l.submit(`{"ossKey":"folder/named.txt","data":"eA=="}`)
	l.submit(`{"docId":"doc","data":"eA==","metadata":{"year":null}}`)
	want := messages.IDFromOSSKey("", "folder/named.txt")
	for doc, row := range map[string]string{"text": "text|text/plain|{}", want: "folder/named.txt||{}", "doc": "doc||{}"} {
		var got string
		err := l.pool.QueryRow(t.Context(), `SELECT v.oss_key || '|' || v.content_type || '|' || v.metadata FROM document_versions v
			JOIN documents d ON d.key = v.document_key WHERE d.doc_id = $1`, doc).Scan(&got)
		if err != nil || got != row {
			t.Errorf("%s: got %q (%v), want %q", doc, got, err, row)
		}
	}
}

func TestSubspaceRules(t *testing.T) {
	l := newLab(t, nil)
	l.createKB("rooms", func(n *pgstore.NewKB) { n.Subspaces = true })
	for _, c := range []struct{ kb, subspace, want string }{
		{"docs", "", messages.DefaultSubspace},
		{"docs", messages.DefaultSubspace, messages.DefaultSubspace},
		{"docs", "left", ""},
		{"rooms", "left", "left"},
		{"rooms", "", ""},
		{"rooms", messages.DefaultSubspace, messages.DefaultSubspace},
		{"rooms", "_", ""},
		{"rooms", "Left", ""},
	} {
		from := l.from(fmt.Sprintf(`{"docId":"d","subspace":%q,"text":"x"}`, c.subspace), nil)
		from.KB = c.kb
		v, err := l.intake.Submit(t.Context(), from)
		del := l.from(fmt.Sprintf(`{"docId":"d","subspace":%q}`, c.subspace), nil)
		del.KB = c.kb
		_, delErr := l.intake.Delete(t.Context(), del)
		if c.want == "" {
			wantError(t, "submit to "+c.kb+"/"+c.subspace, err, messages.CodeValidation, "subspace")
			wantError(t, "delete of "+c.kb+"/"+c.subspace, delErr, messages.CodeValidation, "subspace")
			continue
		}
		if err != nil || delErr != nil || v.Reply.Subspace != c.want {
			t.Errorf("%s/%s: got %+v (%v, %v), want %s", c.kb, c.subspace, v.Reply, err, delErr, c.want)
		}
	}
}

func TestBadSubmitsAreRefusedByName(t *testing.T) {
	l := newLab(t, nil)
	for _, c := range []struct {
		kb, body, field string
		code            messages.Code
	}{
		{"nowhere", `{"docId":"d","text":"x"}`, "knowledgeBaseName", messages.CodeKBNotFound},
		{"docs", `{"docId":"d","text":"x","metadata":{"year":"old"}}`, "metadata.year", messages.CodeValidation},
		{"docs", `{"docId":"d","text":"x","metadata":{"colour":1}}`, "metadata.colour", messages.CodeValidation},
		{"docs", `{"docId":"d","text":"x","tenant":"other"}`, "tenant", messages.CodeValidation},
		{"docs", `{"docId":"d","text":"x","knowledgeBaseName":"other"}`, "knowledgeBaseName", messages.CodeValidation},
		{"docs", `{"docId":"d","text":"` + strings.Repeat("x", maxBytes+1) + `"}`, "text", messages.CodeDocumentTooLarge},
		{"docs", `{"docId":"d","upload":{"object":"o","size":2000000}}`, "text", messages.CodeDocumentTooLarge},
	} {
		from := l.from(c.body, nil)
		from.KB = c.kb
		_, err := l.intake.Submit(t.Context(), from)
		wantError(t, c.body[:min(len(c.body), 80)], err, c.code, c.field)
	}
	from := l.from(`{"docId":"d"}`, nil)
	_, err := l.intake.Delete(t.Context(), from)
	wantError(t, "delete of nothing", err, messages.CodeDocumentNotFound, "docId")
	if n := l.count("SELECT count(*) FROM documents"); n != 0 {
		t.Errorf("they left %d documents", n)
	}
}

// ready marks the newest version of a document live, as the indexer does.
func (l *lab) ready(doc string) {
	l.t.Helper()
	l.exec(`UPDATE documents d SET status = 'Ready', live_version = d.version, live_metadata = v.metadata, live_oss_key = v.oss_key
		FROM document_versions v WHERE v.document_key = d.key AND v.version = d.version AND d.doc_id = $1`, doc)
}

func TestVerdictsAndWhatIsPublished(t *testing.T) {
	l := newLab(t, nil)
	early := l.from(`{"docId":"d","text":"early"}`, nil)
	v := l.submit(`{"docId":"d","text":"one"}`)
	wantTold(t, "new", v.Messages, "Pending v1 m2", "parse")
	v = l.submit(`{"docId":"d","text":"two"}`)
	wantTold(t, "overtakes", v.Messages, "Pending v2 m3", "Superseded v1 m2", "parse")
	v, err := l.intake.Submit(t.Context(), early)
	if err != nil || v.Reply.Status != messages.StatusSuperseded {
		t.Errorf("older: got %+v (%v), want Superseded", v.Reply, err)
	}
	wantTold(t, "older", v.Messages, "Superseded v2 m1")
	l.ready("d")
	v = l.submit(`{"docId":"d","text":"two"}`)
	wantTold(t, "unchanged", v.Messages, "Ready v2 m4 unchanged")
	v = l.submit(`{"docId":"d","text":"two","metadata":{"year":1999}}`)
	wantTold(t, "metadata only", v.Messages, "Ready v2 m5 unchanged")
	if n := l.count("SELECT count(*) FROM documents WHERE live_metadata = '{\"year\":1999}'"); n != 1 {
		t.Error("the metadata did not change")
	}
	v = l.submit(`{"docId":"d","text":"two","title":"T"}`) // every chunk carries the title
	wantTold(t, "another title", v.Messages, "Pending v3 m6", "parse")
	del := l.from(`{"docId":"d"}`, nil)
	for range 2 { // delivered twice
		v, err = l.intake.Delete(t.Context(), del)
		if err != nil || v.Reply.Status != messages.StatusDeleted {
			t.Fatalf("delete: got %+v (%v)", v.Reply, err)
		}
		wantTold(t, "delete", v.Messages, "Deleted v4 m7", "Superseded v3 m6")
	}
	_, err = l.intake.Delete(t.Context(), l.from(`{"docId":"d"}`, nil))
	wantError(t, "delete of a deleted one", err, messages.CodeDocumentNotFound, "docId")
	v = l.submit(`{"docId":"d","text":"two"}`)
	wantTold(t, "again from nothing", v.Messages, "Pending v5 m9", "parse")
}

func TestADeleteMayComeAsHeaders(t *testing.T) {
	l := newLab(t, nil)
	l.submit(`{"docId":"a b","text":"one"}`)
	v, err := l.intake.Delete(t.Context(), l.from("", map[string]string{messages.HeaderDocID: "a%20b"}))
	if err != nil || v.Reply.DocID != "a b" || v.Reply.Status != messages.StatusDeleted {
		t.Errorf("got %+v (%v), want it deleted", v.Reply, err)
	}
}

func TestAFieldAddedMeanwhileIsKnown(t *testing.T) {
	l := newLab(t, nil)
	l.submit(`{"docId":"first","text":"x"}`) // the knowledge base is in memory now
	_, err := l.store.UpdateKB(t.Context(), tenant, "docs", pgstore.KBUpdate{AddFields: messages.MetadataSchema{{Name: "colour", Type: messages.TypeString}}})
	if err != nil {
		t.Fatal(err)
	}
	v := l.submit(`{"docId":"second","text":"x","metadata":{"colour":"red"}}`)
	wantTold(t, "with the new field", v.Messages, "Pending v1 m2", "parse")
}

func TestADeletedKnowledgeBaseIsForgotten(t *testing.T) {
	l := newLab(t, nil)
	l.submit(`{"docId":"first","text":"x"}`)
	if err := l.store.DeleteKB(t.Context(), tenant, "docs"); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"docId":"second","text":"x","metadata":{"colour":"red"}}`, `{"docId":"second","text":"x"}`, `{"docId":"second","subspace":"left","text":"x"}`} {
		_, err := l.intake.Submit(t.Context(), l.from(body, nil))
		wantError(t, body, err, messages.CodeKBNotFound, "knowledgeBaseName")
	}
	_, err := l.intake.Delete(t.Context(), l.from(`{"docId":"first"}`, nil))
	wantError(t, "delete", err, messages.CodeKBNotFound, "knowledgeBaseName")
}

func TestAKnowledgeBaseOfTheSameNameIsAnother(t *testing.T) {
	l := newLab(t, nil)
	from := l.from(`{"docId":"doc","text":"x"}`, nil)
	if _, err := l.intake.Submit(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		change func(*pgstore.NewKB)
		body   string
	}{
		{nil, `{"docId":"doc","text":"x"}`},
		{func(n *pgstore.NewKB) {
			n.Schema = messages.MetadataSchema{{Name: "colour", Type: messages.TypeString}}
		}, `{"docId":"doc","text":"x","metadata":{"colour":"red"}}`},
		{func(n *pgstore.NewKB) { n.Subspaces = true }, `{"docId":"doc","subspace":"left","text":"x"}`},
		{nil, `{"docId":"doc","text":"x"}`},
	} {
		old := l.kb("docs")
		if err := l.store.DeleteKB(t.Context(), tenant, "docs"); err != nil {
			t.Fatal(err)
		}
		fresh := l.createKB("docs", c.change)
		v, err := l.intake.Submit(t.Context(), l.from(c.body, nil))
		if err != nil || v.Reply.Version != 1 || v.Reply.Unchanged {
			t.Errorf("%d: got %+v (%v), want version 1 of a new document", i, v.Reply, err)
		}
		if n := l.count("SELECT count(*) FROM documents WHERE kb_id = $1", fresh.ID); n != 1 {
			t.Errorf("%d: the new knowledge base has %d documents, want 1; the old one is %d", i, n, old.ID)
		}
	}
	v, err := l.intake.Submit(t.Context(), from) // the first one, delivered again
	if err != nil || v.Reply.Status != messages.StatusSuperseded {
		t.Errorf("a submit from before: got %+v (%v), want it superseded by the newer one", v.Reply, err)
	}
}

func TestIntakeKeepsContentOnce(t *testing.T) {
	l := newLab(t, nil)
	big := strings.Repeat("0123456789abcdef", pgstore.BlobPartBytes/32) // half a part
	l.submit(`{"docId":"a","text":"` + big + `"}`)
	l.submit(`{"docId":"b","text":"` + big + `"}`)
	if n := l.count("SELECT count(*) FROM blobs"); n != 1 || l.count("SELECT sum(length(data)) FROM blob_parts") != len(big) {
		t.Errorf("got %d contents, want one", n)
	}
}

// A key that was used is no key of anything else: what is answered would be told of the wrong document, and what was asked for
// would not be done.
func TestAKeyOfSomethingElseIsRefused(t *testing.T) {
	uploads, put := inMemory()
	put(tenant, "o", []byte("text"))
	l := newLab(t, uploads)
	keyed := func(act func(context.Context, intake.From) (intake.Verdict, error), key, body string) error {
		from := l.from(body, nil)
		from.Source, from.Request = "key/"+key, true
		_, err := act(t.Context(), from)
		return err
	}
	for _, body := range []string{`{"docId":"a","text":"one"}`, `{"docId":"a","text":"another content"}`} {
		if err := keyed(l.intake.Submit, "k1", body); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range []string{`{"docId":"b","text":"two"}`, `{"docId":"b","upload":{"object":"o","size":4}}`} {
		wantError(t, "submit of another document", keyed(l.intake.Submit, "k1", body), messages.CodeValidation, messages.HeaderIdempotencyKey)
	}
	wantError(t, "delete under the key of a submit", keyed(l.intake.Delete, "k1", `{"docId":"a"}`), messages.CodeValidation, messages.HeaderIdempotencyKey)
	if err := keyed(l.intake.Delete, "k2", `{"docId":"a"}`); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"docId":"a","text":"one"}`, `{"docId":"a","upload":{"object":"o","size":4}}`} {
		wantError(t, "submit under the key of a delete", keyed(l.intake.Submit, "k2", body), messages.CodeValidation, messages.HeaderIdempotencyKey)
	}
	if n := l.count("SELECT count(*) FROM documents WHERE doc_id <> 'a' OR version <> 2"); n != 0 {
		t.Errorf("what was refused left or changed %d documents", n)
	}
}

// What was accepted and is delivered again tells what it told, also when it would be refused by now: a dead letter would give it
// a second end.
func TestWhatWasAcceptedIsNotRefusedWhenItComesAgain(t *testing.T) {
	l := newLab(t, nil)
	submit, unchanged, removed := l.from(`{"docId":"d","text":"one"}`, nil), l.from(`{"docId":"d","text":"one"}`, nil), l.from(`{"docId":"d"}`, nil)
	other := l.from(`{"docId":"e","text":"two"}`, nil)
	take := func(when string) {
		t.Helper()
		for _, c := range []struct {
			act  func(context.Context, intake.From) (intake.Verdict, error)
			from intake.From
			want []string
		}{
			{l.intake.Submit, submit, []string{"Pending v1 m1"}},
			{l.intake.Submit, unchanged, []string{"Pending v1 m2"}},
			{l.intake.Delete, removed, []string{"Deleted v2 m3", "Superseded v1 m1", "Superseded v1 m2"}},
			{l.intake.Submit, other, []string{"Pending v1 m4"}},
		} {
			v, err := c.act(t.Context(), c.from)
			if err != nil {
				t.Errorf("%s: %s: %v", when, c.want[0], err)
			}
			got := slices.DeleteFunc(told(t, v.Messages), func(s string) bool { return s == messages.StageParse })
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, want %v", when, got, c.want)
			}
		}
	}
	take("at first")
	l.intake = intake.New(l.store, nil, testkit.Logger(t), 2)
	take("when less may be accepted")
	if err := l.store.DeleteKB(t.Context(), tenant, "docs"); err != nil {
		t.Fatal(err)
	}
	l.intake = intake.New(l.store, nil, testkit.Logger(t), maxBytes)
	take("when the knowledge base is deleted")
	_, err := l.intake.Submit(t.Context(), l.from(`{"docId":"d","text":"one"}`, nil))
	wantError(t, "a new one", err, messages.CodeKBNotFound, "knowledgeBaseName")
	other.Request = true
	_, err = l.intake.Submit(t.Context(), other)
	wantError(t, "a request", err, messages.CodeKBNotFound, "knowledgeBaseName")
}
