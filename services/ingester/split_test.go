package ingester_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/ingester/internal/split"
	"github.com/weir-project/weir/services/ingester/internal/stage"
)

// dying publishes so many times, and then nothing any more.
type dying struct {
	publisher
	left int
}

var errDied = errors.New("the process died")

func (d *dying) PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error) {
	if d.left == 0 {
		return nil, errDied
	}
	d.left--
	return d.publisher.PublishAck(ctx, msgs...)
}

// numbered is a file of so many lines, the text of each beginning with a word.
func numbered(n int, word string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"docId\":\"d%d\",\"text\":\"%s %d\"}\n", i, word, i)
	}
	return b.String()
}

// lineLab is a lab with uploads.
func lineLab(t *testing.T) (*lab, func(doc, content string) ([]byte, messages.ParseWork)) {
	t.Helper()
	uploads, put := inMemory()
	l := newLab(t, uploads)
	return l, func(doc, content string) ([]byte, messages.ParseWork) {
		put(tenant, "o", []byte(content))
		return l.parseWork("docs", fmt.Sprintf(`{"docId":%q,"contentType":"application/x-ndjson","upload":{"object":"o","size":1}}`, doc))
	}
}

func (l *lab) splitting(pub stage.Publisher) *stage.Handler {
	return stage.New(l.store, &publisher{}, &parser{}, split.New(l.store, l.intake, pub), 4, 1<<20)
}

func (l *lab) lines(doc string) messages.Lines {
	l.t.Helper()
	d, err := l.store.GetDocument(l.t.Context(), l.kb("docs").ID, messages.DefaultSubspace, doc, nil)
	if err != nil || d.Lines == nil {
		l.t.Fatalf("%s: got %+v (%v), want counts of lines", doc, d, err)
	}
	return *d.Lines
}

// A run that ends anywhere, between a commit and its messages too, is repaired by the next one.
func TestAFileIsSplitAgainAfterACrash(t *testing.T) {
	l, file := lineLab(t)
	const n = 200 // four batches
	body, _ := file("f", numbered(n, "text"))
	whole := map[string]bool{}
	for died := range 5 {
		pub := &dying{left: died}
		_, err := l.splitting(pub).Handle(t.Context(), body)
		if (died < 4) != errors.Is(err, errDied) {
			t.Fatalf("run %d: got %v", died, err)
		}
		for _, name := range names(pub.sent) {
			whole[name] = true
		}
		if got := l.count("SELECT count(*) FROM documents WHERE parent_key IS NOT NULL"); got < min(64*(died+1), n) {
			t.Errorf("run %d: got %d lines", died, got)
		}
	}
	if len(whole) != 2*n {
		t.Errorf("got %d different messages, want an event and work for each line", len(whole))
	}
	if got := l.lines("f"); got.Total != n || got.Accepted != n || got.Failed != 0 {
		t.Errorf("got %+v, want %d accepted", got, n)
	}
	if got := l.count("SELECT count(*) FROM document_versions WHERE NOT split"); got != n {
		t.Errorf("got %d versions, want one a line", got)
	}
	if _, err := l.splitting(&publisher{}).Handle(t.Context(), body); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("delivered again when it is over: got %v, want ErrStale", err)
	}
}

func TestTheSameFileAgainChangesNothing(t *testing.T) {
	l, file := lineLab(t)
	body, _ := file("f", numbered(3, "text")+`{"docId":"twice","text":"one"}`+"\n"+`{"docId":"twice","text":"two"}`)
	handle(t, l.splitting(&publisher{}), body)
	var content string
	err := l.pool.QueryRow(t.Context(), `SELECT convert_from(p.data, 'UTF8') FROM documents d JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
		JOIN blob_parts p ON p.sha256 = v.sha256 WHERE d.doc_id = 'twice'`).Scan(&content)
	if err != nil || content != "two" {
		t.Errorf("got %q (%v), want the later of two lines with one id", content, err)
	}
	body, w := file("f", numbered(3, "text"))
	if w.Version != 2 {
		t.Errorf("got version %d, want 2: lines may have failed or been deleted", w.Version)
	}
	handle(t, l.splitting(&publisher{}), body)
	if got := l.lines("f"); got.Total != 3 || got.Unchanged != 3 {
		t.Errorf("got %+v, want 3 unchanged", got)
	}
	if got := l.count("SELECT count(*) FROM documents WHERE parent_key = $1 AND parent_version = 2 AND version = 1", w.DocKey); got != 3 {
		t.Errorf("got %d lines of version 2, want 3 as they were", got)
	}
}

func TestANewerFileOvertakesTheSplitting(t *testing.T) {
	l, file := lineLab(t)
	old, _ := file("f", numbered(100, "old"))
	pub := &dying{left: 1}
	if _, err := l.splitting(pub).Handle(t.Context(), old); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	newer, _ := file("f", numbered(2, "new"))
	if _, err := l.splitting(&publisher{}).Handle(t.Context(), old); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("the older one: got %v, want ErrStale", err)
	}
	handle(t, l.splitting(&publisher{}), newer)
	if got := l.lines("f"); got.Total != 2 || got.Accepted != 2 {
		t.Errorf("got %+v, want 2 accepted", got)
	}
	if got := l.count("SELECT remove_below FROM document_splits"); got != 2 {
		t.Errorf("lines of versions below %d are to be removed, want below 2", got)
	}
}

func TestBadLinesFailAlone(t *testing.T) {
	l, file := lineLab(t)
	for _, c := range []struct{ line, doc, code, field string }{
		{`{"docId":"a"`, "", "VALIDATION_ERROR", "body"},
		{`[1]`, "", "VALIDATION_ERROR", "body"},
		{`null`, "", "VALIDATION_ERROR", "body"},
		{"{\"docId\":\"a\",\"text\":\"\xff\"}", "", "INVALID_ENCODING", "body"},
		{`{"docId":"a","text":"x","colour":1}`, "a", "VALIDATION_ERROR", "colour"},
		{`{"docId":"a","text":"x","metadata":{"colour":1}}`, "a", "VALIDATION_ERROR", "metadata.colour"},
		{`{"docId":"a","text":"x","data":"eA=="}`, "a", "VALIDATION_ERROR", "text"},
		{`{"docId":"a","upload":{"object":"o","size":1}}`, "a", "VALIDATION_ERROR", "upload"},
		{`{"docId":"a","text":"x","tenant":"other"}`, "a", "VALIDATION_ERROR", "tenant"},
		{`{"docId":"a","text":"x","subspace":"left"}`, "a", "VALIDATION_ERROR", "subspace"},
		{`{"docId":"a\u0000b","text":"x"}`, "", "VALIDATION_ERROR", "docId"},
		{`{"docId":"` + strings.Repeat("a", 600) + `","text":"x"}`, "", "VALIDATION_ERROR", "docId"},
		{`{"docId":"a","subspace":"\u0000","text":"x"}`, "", "VALIDATION_ERROR", "subspace"},
		{`{"docId":"a","text":"x","b\u0000b":1}`, "a", "VALIDATION_ERROR", "b\uFFFDb"},
		{`{"docId":"a","text":"x","metadata":{"b\u0000b":1}}`, "a", "VALIDATION_ERROR", "metadata.b\uFFFDb"},
		{`{"docId":"f","text":"x"}`, "f", "VALIDATION_ERROR", "docId"},
	} {
		body, _ := file("f", `{"docId":"good","text":"x"}`+"\n"+c.line)
		handle(t, l.splitting(&publisher{}), body)
		got := l.lines("f")
		if got.Total != 2 || got.Failed != 1 || len(got.Errors) != 1 {
			t.Errorf("%.60s: got %+v, want one of two failed", c.line, got)
			continue
		}
		e := got.Errors[0]
		if e.Line != 2 || e.DocID != c.doc || string(e.Error.Code) != c.code || e.Error.Field != c.field {
			t.Errorf("%.60s: got %+v, want %s of %s", c.line, e, c.code, c.field)
		}
	}
}

func TestAFileWithoutAGoodLineFails(t *testing.T) {
	l, file := lineLab(t)
	var many strings.Builder
	for range 100 {
		many.WriteString("x\n")
	}
	for content, code := range map[string]messages.Code{"\n \n": messages.CodeEmptyDocument, many.String(): messages.CodeValidation} {
		body, _ := file("f", content)
		_, err := l.splitting(&publisher{}).Handle(t.Context(), body)
		if e, ok := messages.AsError(err); !ok || e.Code != code {
			t.Errorf("%.10q: got %v, want %s", content, err, code)
		}
		if got := l.lines("f"); code == messages.CodeValidation && (got.Failed != 100 || len(got.Errors) != messages.MaxLineErrors) {
			t.Errorf("got %d failed and %d errors, want 100 and %d", got.Failed, len(got.Errors), messages.MaxLineErrors)
		}
	}
}

func TestWhatIsSplit(t *testing.T) {
	uploads, put := inMemory()
	l := newLab(t, uploads)
	for i, c := range []struct {
		contentType, name string
		want              int
	}{
		{"application/jsonl", "a", 1},
		{"application/x-ndjson; charset=utf-8", "a", 1},
		{"", "a.jsonl", 1},
		{"application/octet-stream", "a.NDJSON", 1},
		{"", "a.json", 0},
		{"text/plain", "a.jsonl", 0},
	} {
		put(tenant, "o", []byte(`{"text":"x"}`))
		submit, err := json.Marshal(messages.Submit{DocID: fmt.Sprint(i), OSSKey: c.name, ContentType: c.contentType, Upload: &messages.Upload{Object: "o", Size: 1}})
		if err != nil {
			t.Fatal(err)
		}
		l.submit(string(submit))
		if got := l.count("SELECT count(*) FROM document_splits s JOIN documents d ON d.key = s.document_key WHERE doc_id = $1", fmt.Sprint(i)); got != c.want {
			t.Errorf("%+v: got %d, want %d", c, got, c.want)
		}
	}
	l.submit(`{"docId":"inline","contentType":"application/jsonl","text":"{\"text\":\"x\"}"}`)
	if got := l.count("SELECT count(*) FROM document_versions WHERE split"); got != 4 {
		t.Errorf("got %d split, want none that came in its message", got-4)
	}
}

// A line that is submitted by itself since is its file's no more.
func TestALinePublishedByItselfLeavesItsFile(t *testing.T) {
	l, file := lineLab(t)
	body, w := file("f", numbered(2, "text"))
	handle(t, l.splitting(&publisher{}), body)
	owned := func() []string {
		var out []string
		for i := range 2 {
			if l.count("SELECT count(*) FROM documents WHERE parent_key = $1 AND doc_id = $2", w.DocKey, fmt.Sprint("d", i)) > 0 {
				out = append(out, fmt.Sprint("d", i))
			}
		}
		return out
	}
	l.submit(`{"docId":"d0","text":"text 0","contentType":"text/plain","title":"other"}`)
	if got := owned(); !slices.Equal(got, []string{"d1"}) {
		t.Errorf("another content: the file's are %v, want d1", got)
	}
	l.submit(`{"docId":"d1","text":"text 1","metadata":{}}`) // nothing differs
	if got := owned(); len(got) != 0 {
		t.Errorf("the same content: the file's are %v, want none", got)
	}
	if got := l.count("SELECT version FROM documents WHERE doc_id = 'd1'"); got != 1 {
		t.Errorf("got version %d, want 1", got)
	}
}
