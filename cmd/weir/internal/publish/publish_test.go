package publish_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/cmd/weir/internal/testweir"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

const kb = "books"

func start(t *testing.T) (*testweir.Fake, testkit.Connect) {
	t.Helper()
	_, connect := testkit.NATS(t)
	fake := testweir.Start(t, connect())
	fake.CreateKB(t, messages.CreateKB{KnowledgeBaseName: kb})
	return fake, connect
}

// run publishes the items and returns the results by name.
func run(t *testing.T, connect testkit.Connect, cfg publish.Config, items ...publish.Item) (map[string]publish.Result, publish.Counts) {
	t.Helper()
	results := map[string]publish.Result{}
	cfg.Tenant, cfg.KB = testweir.Tenant, kb
	cfg.OnResult = func(r publish.Result) { results[r.Name] = r }
	p, err := publish.New(connect(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan publish.Item, len(items))
	for _, item := range items {
		in <- item
	}
	close(in)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := p.Run(ctx, in); err != nil {
		t.Fatal(err)
	}
	return results, p.Counts()
}

func text(name, content string) publish.Item {
	return publish.Item{Name: name, Submit: messages.Submit{DocID: name, Text: &content}}
}

func TestEveryDocumentEndsOnce(t *testing.T) {
	t.Parallel()
	fake, connect := start(t)
	first, counts := run(t, connect, publish.Config{},
		text("a", "alpha"), text("b", "beta"), text("c", testweir.Poison), text("d", "..."),
		publish.Item{Name: "e", Err: messages.Invalid("docId", "is missing")})
	want := map[string]string{"a": "Ready", "b": "Ready", "c": "Failed DAMAGED_DOCUMENT", "d": "Failed EMPTY_DOCUMENT", "e": "Failed VALIDATION_ERROR"}
	for name, w := range want {
		got := string(first[name].Status)
		if first[name].Error != nil {
			got += " " + string(first[name].Error.Code)
		}
		if got != w {
			t.Errorf("%s: got %q, want %q", name, got, w)
		}
	}
	if counts.Found != 5 || counts.Ready != 2 || counts.Failed != 3 || counts.Open() != 0 {
		t.Errorf("counts: got %+v, want 5 found, 2 ready, 3 failed, none open", counts)
	}
	again, counts := run(t, connect, publish.Config{}, text("a", "alpha"), text("b", "other"))
	if !again["a"].Unchanged || again["b"].Unchanged || again["b"].Version != 2 || counts.Unchanged != 1 {
		t.Errorf("second run: got %+v and %+v, want a unchanged and b at version 2", again["a"], again["b"])
	}
	if got := fake.Submits(); got != 6 {
		t.Errorf("submits that reached the services: got %d, want 6", got)
	}
}

func TestManyDocumentsAtOnce(t *testing.T) {
	t.Parallel()
	_, connect := start(t)
	var items []publish.Item
	for i := range 300 {
		items = append(items, text("doc-"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String(), "words"))
	}
	results, counts := run(t, connect, publish.Config{}, items...)
	if len(results) != 300 || counts.Ready != 300 {
		t.Errorf("got %d results and %+v, want 300 ready", len(results), counts)
	}
}

func TestNoWaitEndsWhenStored(t *testing.T) {
	t.Parallel()
	_, connect := start(t)
	results, counts := run(t, connect, publish.Config{NoWait: true}, text("a", "alpha"))
	if results["a"].Status != messages.StatusPending || counts.Pending != 1 {
		t.Errorf("got %+v, %+v, want one pending", results["a"], counts)
	}
}

func TestLargeContentsGoThroughTheObjectStore(t *testing.T) {
	t.Parallel()
	fake, connect := start(t)
	dir := t.TempDir()
	large := strings.Repeat("alpha beta ", 200_000) // over the server's 1 MiB
	path := filepath.Join(dir, "large.txt")
	if err := os.WriteFile(path, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	results, _ := run(t, connect, publish.Config{},
		publish.Item{Name: "file", Path: path, Submit: messages.Submit{DocID: "dir/Käse.txt", ContentType: "text/plain", Title: "Käse"}},
		text("line", large),
		publish.Item{Name: "stdin", Data: []byte(large), Submit: messages.Submit{DocID: "stdin"}})
	for name, id := range map[string]string{"file": "dir/Käse.txt", "line": "line", "stdin": "stdin"} {
		info, got, _ := fake.Document(kb, "", id)
		if results[name].Status != messages.StatusReady || got != large {
			t.Errorf("%s: got %+v and %d bytes, want Ready and %d", name, results[name], len(got), len(large))
		}
		if name == "file" && info.Title != "Käse" {
			t.Errorf("title: got %q, want Käse", info.Title)
		}
	}
	js := testkit.JetStream(t, connect())
	store, err := js.ObjectStore(t.Context(), messages.UploadBucket(testweir.Tenant))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := store.List(t.Context()); !errors.Is(err, jetstream.ErrNoObjectsFound) {
		t.Errorf("objects left: got %v, %v, want none", left, err)
	}
}

func TestSmallFilesTravelWithHeaders(t *testing.T) {
	t.Parallel()
	fake, connect := start(t)
	path := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(path, []byte("# Überschrift"), 0o600); err != nil {
		t.Fatal(err)
	}
	submit := messages.Submit{DocID: "a b/ü.md", Subspace: "s1", Title: "50 % ü", ContentType: "text/markdown", Metadata: []byte(`{"year":2024}`)}
	results, _ := run(t, connect, publish.Config{}, publish.Item{Name: "a", Path: path, Submit: submit})
	info, got, ok := fake.Document(kb, "s1", "a b/ü.md")
	if !ok || results["a"].Status != messages.StatusReady {
		t.Fatalf("got %+v, want the document Ready", results["a"])
	}
	if got != "# Überschrift" || info.Title != submit.Title || string(info.Metadata) != `{"year":2024}` || info.ContentType != submit.ContentType {
		t.Errorf("got %q, %+v, want what was sent", got, info)
	}
}

func TestOversizeAndMissingFilesFailAlone(t *testing.T) {
	t.Parallel()
	_, connect := start(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "huge.pdf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(publish.MaxDocumentBytes+1), f.Close()); err != nil { // sparse
		t.Fatal(err)
	}
	results, _ := run(t, connect, publish.Config{},
		publish.Item{Name: "huge", Path: path, Submit: messages.Submit{DocID: "huge"}},
		publish.Item{Name: "missing", Path: filepath.Join(dir, "no"), Submit: messages.Submit{DocID: "missing"}},
		publish.Item{Name: "folder", Path: dir, Submit: messages.Submit{DocID: "folder"}},
		publish.Item{Name: "broken", Path: "/proc/self/mem", Submit: messages.Submit{DocID: "broken"}}, // nothing is mapped at 0
		text("a", "alpha"))
	if e := results["huge"].Error; e == nil || e.Code != messages.CodeDocumentTooLarge || e.Field != "data" {
		t.Errorf("huge: got %v, want DOCUMENT_TOO_LARGE of data", e)
	}
	for name, reason := range map[string]string{"missing": "no such file", "folder": "no regular file", "broken": "input/output error"} {
		if e := results[name].Error; e == nil || e.Code != messages.CodeValidation || e.Field != "data" || !strings.Contains(e.Message, reason) {
			t.Errorf("%s: got %v, want VALIDATION_ERROR of data, with the reason", name, e)
		}
	}
	if results["a"].Status != messages.StatusReady {
		t.Errorf("a: got %+v, want Ready", results["a"])
	}
}

func TestStatesAreAskedForWhenEventsStayAway(t *testing.T) {
	t.Parallel()
	fake, connect := start(t)
	fake.Mute(true)
	results, _ := run(t, connect, publish.Config{Silence: 100 * time.Millisecond}, text("a", "alpha"), text("bad", testweir.Poison))
	if results["a"].Status != messages.StatusReady || results["a"].Version != 1 {
		t.Errorf("a: got %+v, want Ready in version 1", results["a"])
	}
	if e := results["bad"].Error; e == nil || e.Code != messages.CodeDocumentNotFound || !strings.Contains(e.Message, "weir dlq list") {
		t.Errorf("bad: got %v, want where to look", e)
	}
}

func TestFullStreamIsWaitedFor(t *testing.T) {
	t.Parallel()
	_, connect := start(t)
	js := testkit.JetStream(t, connect())
	stream, err := js.Stream(t.Context(), messages.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	limited := stream.CachedInfo().Config
	limited.MaxMsgs = 1
	if _, err := js.Publish(t.Context(), "weir.docs.delete.default.other", []byte("{}")); err != nil { // the fake leaves deletes alone
		t.Fatal(err)
	}
	if _, err := js.UpdateStream(t.Context(), limited); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	noted := ""
	results, _ := run(t, connect, publish.Config{Full: 10 * time.Millisecond, OnNote: func(s string) {
		once.Do(func() {
			noted = s
			if err := stream.Purge(context.Background()); err != nil { // the fake, which hears also what is refused, may have done it
				t.Error(err)
			}
		})
	}}, text("a", "alpha"))
	if results["a"].Status != messages.StatusReady || !strings.Contains(noted, "full") {
		t.Errorf("got %+v, note %q, want Ready and a note", results["a"], noted)
	}
}

func TestInterruptedRunReturnsItsCause(t *testing.T) {
	t.Parallel()
	fake, connect := start(t)
	fake.Mute(true)
	p, err := publish.New(connect(), publish.Config{Tenant: testweir.Tenant, KB: kb})
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan publish.Item, 1)
	in <- text("a", "alpha")
	close(in)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, in) }()
	testkit.Eventually(t, func() error {
		if fake.Submits() == 0 {
			return errors.New("nothing came")
		}
		return nil
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || p.Counts().Open() != 1 {
		t.Errorf("got %v, %+v, want canceled with one open", err, p.Counts())
	}
}

func TestMissingStreamSaysWhatToRun(t *testing.T) {
	t.Parallel()
	_, connect := testkit.NATS(t)
	p, err := publish.New(connect(), publish.Config{Tenant: testweir.Tenant, KB: kb, Retry: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan publish.Item, 1)
	in <- text("a", "alpha")
	if err := p.Run(t.Context(), in); err == nil || !strings.Contains(err.Error(), "weir migrate") {
		t.Errorf("got %v, want the command that helps", err)
	}
}

// find collects what Find sends.
func find(t *testing.T, args []string, o publish.Options) ([]publish.Item, error) {
	t.Helper()
	out := make(chan publish.Item)
	var items []publish.Item
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for item := range out {
			items = append(items, item)
		}
	}()
	err := publish.Find(t.Context(), args, o, out)
	<-collected
	return items, err
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindTakesKnownFilesOfFolders(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"docs/a.md": "a", "docs/sub/b.PDF": "%PDF-1.4", "docs/.hidden/c.md": "c", "docs/.d.md": "d", "docs/e.exe": "e", "top.unknown": "%PDF-1.7",
	})
	items, err := find(t, []string{filepath.Join(dir, "docs"), filepath.Join(dir, "top.unknown")}, publish.Options{Base: dir, Subspace: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range items {
		if i.Err != nil {
			t.Errorf("%s: %v", i.Name, i.Err)
		}
		got = append(got, i.Submit.DocID+" "+i.Submit.ContentType+" "+i.Submit.Subspace)
	}
	want := []string{"docs/a.md text/markdown s", "docs/sub/b.PDF application/pdf s", "top.unknown application/pdf s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	outside, err := find(t, []string{filepath.Join(dir, "docs")}, publish.Options{Base: t.TempDir()})
	if err != nil || len(outside) != 2 || outside[1].Submit.DocID != "sub/b.PDF" {
		t.Errorf("outside of the base: got %+v, %v, want ids relative to the argument", outside, err)
	}
}

func TestFindFollowsALinkThatIsTheArgument(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"real/a.md": "a", "real/sub/b.md": "b"})
	for link, to := range map[string]string{"link": "real", "real/c.md": "a.md", "real/sub/up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	items, err := find(t, []string{filepath.Join(dir, "link")}, publish.Options{Base: dir})
	if err != nil || len(items) != 2 || items[0].Submit.DocID != "link/a.md" || items[1].Submit.DocID != "link/sub/b.md" {
		t.Errorf("got %+v, %v, want the files of the folder behind the link and no link in it", items, err)
	}
}

func TestFindRefusesTheSameIDTwice(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.md": "a"})
	path := filepath.Join(dir, "a.md")
	items, err := find(t, []string{path, path}, publish.Options{Base: dir})
	if err != nil || len(items) != 2 || items[0].Err != nil {
		t.Fatalf("got %+v, %v, want two items, the first good", items, err)
	}
	var e *messages.Error
	if !errors.As(items[1].Err, &e) || e.Field != "docId" || !strings.Contains(e.Message, path) {
		t.Errorf("got %v, want docId given before, by the first file", items[1].Err)
	}
}

func TestFindOfMissingArgumentFails(t *testing.T) {
	t.Parallel()
	if _, err := find(t, []string{filepath.Join(t.TempDir(), "no")}, publish.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want not exist", err)
	}
}

func TestJSONLLines(t *testing.T) {
	t.Parallel()
	lines := strings.Join([]string{
		`{"_id":"1","title":"One","text":"first"}`,
		``,
		`{"docId":"2","text":"second","metadata":{"a":1}}`,
		`{"docId":"3","txt":"typo"}`,
		`{"docId":"4"`,
		`{"docId":"5","text":"x","data":"eA=="}`,
		`{"docId":"6","text":"last"}`,
	}, "\n")
	items, err := find(t, []string{publish.Stdin}, publish.Options{JSONL: true, Stdin: strings.NewReader(lines), Subspace: "s", Metadata: []byte(`{"b":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range items {
		line := i.Name + " " + i.Submit.DocID + " " + string(i.Submit.Metadata)
		if e, ok := messages.AsError(i.Err); ok {
			line = i.Name + " " + string(e.Code) + " " + e.Field
		}
		got = append(got, line)
	}
	want := []string{
		`standard input:1 1 {"b":2}`, `standard input:3 2 {"a":1}`, "standard input:4 VALIDATION_ERROR txt",
		"standard input:5 VALIDATION_ERROR body", "standard input:6 VALIDATION_ERROR text", `standard input:7 6 {"b":2}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStdinNeedsAnID(t *testing.T) {
	t.Parallel()
	items, err := find(t, []string{"-"}, publish.Options{Stdin: bytes.NewReader([]byte("%PDF-1.4"))})
	if err != nil || len(items) != 1 || items[0].Err == nil {
		t.Errorf("got %+v, %v, want an item without id refused", items, err)
	}
	items, err = find(t, []string{"-"}, publish.Options{Stdin: bytes.NewReader([]byte("%PDF-1.4")), DocID: "x"})
	if err != nil || len(items) != 1 || items[0].Err != nil || items[0].Submit.ContentType != "application/pdf" {
		t.Errorf("got %+v, %v, want a PDF with id x", items, err)
	}
}

func TestMetadataIsTypedByTheSchema(t *testing.T) {
	t.Parallel()
	schema := messages.MetadataSchema{
		{Name: "year", Type: messages.TypeLong},
		{Name: "price", Type: messages.TypeDouble},
		{Name: "open", Type: messages.TypeBoolean},
		{Name: "who", Type: messages.TypeString},
		{Name: "tags", Type: messages.TypeStringList},
		{Name: "on", Type: messages.TypeDate},
	}
	for _, c := range []struct {
		object string
		pairs  []string
		want   string // JSON, or the error
	}{
		{"", nil, ""},
		{"", []string{"year=2024", "price=1.50", "open=true", "who=a=b", "on=2024-01-02"}, `{"on":"2024-01-02","open":true,"price":1.50,"who":"a=b","year":2024}`},
		{"", []string{"tags=a", "tags=b,c"}, `{"tags":["a","b,c"]}`},
		{"", []string{`tags=["x","y"]`, "tags=z"}, `{"tags":["x","y","z"]}`},
		{`{"year":1,"who":"json"}`, []string{"year=2"}, `{"who":"json","year":2}`},
		{`{"tags":["old"]}`, []string{"tags=new"}, `{"tags":["new"]}`},
		{"", []string{"year=x"}, "VALIDATION_ERROR: metadata.year: must be a long"},
		{"", []string{"price=1e"}, "VALIDATION_ERROR: metadata.price: must be a double"},
		{"", []string{"open=yes"}, "VALIDATION_ERROR: metadata.open: must be true or false"},
		{"", []string{"who=a", "who=b"}, "VALIDATION_ERROR: metadata.who: is given twice"},
		{"", []string{"color=red"}, "VALIDATION_ERROR: metadata.color: is not declared; declared are on, open, price, tags, who, year"},
		{`{"color":"red"}`, nil, "VALIDATION_ERROR: metadata.color: is not declared"},
		{"", []string{"year"}, "VALIDATION_ERROR: metadata: \"year\" is not key=value"},
		{`[1]`, nil, "VALIDATION_ERROR: metadata: --meta-json must be a JSON object"},
	} {
		got, err := publish.Metadata(c.object, c.pairs, schema)
		if err != nil {
			if !strings.HasPrefix(err.Error(), c.want) || c.want == "" {
				t.Errorf("%s %q: got %v, want %s", c.object, c.pairs, err, c.want)
			}
			continue
		}
		if string(got) != c.want {
			t.Errorf("%s %q: got %s, want %s", c.object, c.pairs, got, c.want)
		}
	}
}

func TestHugeLineIsSkippedAlone(t *testing.T) {
	t.Parallel()
	huge := bytes.Repeat([]byte("x"), 300_000)
	in := bytes.NewReader(slices.Concat(huge, []byte("\n{\"_id\":\"a\",\"text\":\"t\"}\n"), huge))
	items, err := find(t, []string{"-"}, publish.Options{JSONL: true, Stdin: in, MaxLineBytes: 200_000})
	if err != nil || len(items) != 3 {
		t.Fatalf("got %d items, %v, want 3", len(items), err)
	}
	for _, i := range []int{0, 2} {
		if e, ok := messages.AsError(items[i].Err); !ok || e.Code != messages.CodeDocumentTooLarge {
			t.Errorf("line %d: got %v, want DOCUMENT_TOO_LARGE", i+1, items[i].Err)
		}
	}
	if items[1].Err != nil || items[1].Submit.DocID != "a" {
		t.Errorf("second: got %+v, want document a", items[1])
	}
}
