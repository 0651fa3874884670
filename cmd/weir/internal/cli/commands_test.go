package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
	"github.com/weir-project/weir/cmd/weir/internal/testweir"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

var update = flag.Bool("update", false, "write the golden files")

// desk is a command line beside stand-in services.
type desk struct {
	t    *testing.T
	fake *testweir.Fake
	env  map[string]string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	server, connect := testkit.NATSListening(t)
	return &desk{t: t, fake: testweir.Start(t, connect()), env: map[string]string{"NATS_URL": server.ClientURL(), "WEIR_HOME": t.TempDir()}}
}

// run gives the line's exit code, output and errors.
func (d *desk) run(stdin string, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = Main(IO{
		Args: args, In: strings.NewReader(stdin), Out: &stdout, Err: &stderr,
		Getenv: func(k string) string { return d.env[k] },
	})
	return code, stdout.String(), stderr.String()
}

// ok runs a line that must succeed.
func (d *desk) ok(args ...string) string {
	d.t.Helper()
	code, out, errOut := d.run("", args...)
	if code != ExitOK {
		d.t.Fatalf("weir %s: got %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// file writes a file of the test.
func (d *desk) file(name, content string) string {
	d.t.Helper()
	path := filepath.Join(d.env["WEIR_HOME"], name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func TestLifeOfAKnowledgeBase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if out := d.ok("kb", "list"); !strings.Contains(out, "weir kb create") {
		t.Errorf("empty list: got %q, want how to make one", out)
	}
	d.ok("kb", "create", "books", "--field", "year:long", "--field", "secret:string:internal", "--tag", "team=a", "--chunking", "whole", "--description", "old")
	var info messages.KBInfo
	if err := json.Unmarshal([]byte(d.ok("kb", "get", "books", "--json")), &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Metadata) != 2 || !info.Metadata[1].Internal || info.Tags["team"] != "a" || info.Chunking.Strategy != "whole" || info.Description != "old" {
		t.Errorf("got %+v, want what was given", info)
	}
	if out := d.ok("kb", "update", "books", "--mandatory-filter", "secret = '$tenant' OR year > 1900"); !strings.Contains(out, "mandatory filter  secret = '$tenant' OR year > 1900\n") {
		t.Errorf("update: got %q, want the mandatory filter", out)
	}
	if out := d.ok("kb", "update", "books", "--mandatory-filter", `{"isNull":{"key":"secret"}}`); !strings.Contains(out, `{"isNull":{"key":"secret"}}`) {
		t.Errorf("update: got %q, want the mandatory filter", out)
	}
	if out := d.ok("kb", "update", "books", "--no-mandatory-filter"); strings.Contains(out, "mandatory") {
		t.Errorf("update: got %q, want no mandatory filter", out)
	}
	if out := d.ok("kb", "update", "books", "--field", "who:string_list", "--no-description"); !strings.Contains(out, "who: string_list") || strings.Contains(out, "old") {
		t.Errorf("update: got %s", out)
	}
	if out := d.ok("kb", "list"); !strings.Contains(out, "books  hybrid  whole") {
		t.Errorf("list: got %s", out)
	}
	code, _, errOut := d.run("n\n", "kb", "delete", "books")
	if code != ExitUsage || !strings.Contains(errOut, "Delete knowledge base books? [y/N]") {
		t.Errorf("delete answered no: got %d, %s", code, errOut)
	}
	if code, out, _ := d.run("yes\n", "kb", "delete", "books"); code != ExitOK || !strings.Contains(out, "Deleted") {
		t.Errorf("delete answered yes: got %d, %s", code, out)
	}
	if code, _, errOut := d.run("", "kb", "delete", "books", "--yes"); code != ExitNotFound || !strings.Contains(errOut, "KNOWLEDGE_BASE_NOT_FOUND") {
		t.Errorf("delete of nothing: got %d, %s", code, errOut)
	}
}

func TestWrongArgumentsAreToldBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	env := map[string]string{"WEIR_HOME": t.TempDir()} // nothing to ask
	for _, c := range []struct{ line, says string }{
		{"kb create", "exactly one"},
		{"kb create Books", "[a-z0-9_-]{1,64}"},
		{"kb create b --field year", "name:type"},
		{"kb create b --field year:number", `"number" is no metadata type`},
		{"kb create b --tag x", "key=value"},
		{"kb create b --index-type graph", "not hybrid, vector or bm25"},
		{"kb create b --chunking lines", "not tokens or whole"},
		{"kb create b --chunk-size 8", "32 to 8192"},
		{"kb update b", "nothing to change"},
		{"kb update b --description x --no-description", "not both"},
		{"kb update b --mandatory-filter year=1 --no-mandatory-filter", "not both"},
		{"kb update b --mandatory-filter=", "is empty"},
		{"kb create b --mandatory-filter=", "is empty"},
		{"kb create b --mandatory-filter={", "no valid JSON"},
		{"publish x.md", "--kb"},
		{"publish --kb b", "at least 1"},
		{"publish --kb b -", "--id"},
		{"publish --kb b --id x a.md b.md", "single document"},
		{"publish --kb b --in-flight 0 a.md", "in-flight"},
		{"docs list", "--kb"},
		{"docs list --kb b --status gone", "Ready"},
		{"docs watch --kb B", "[a-z0-9_-]{1,64}"},
		{"query --kb b", "at least 1"},
		{"query --kb b --mode fuzzy x", "hybrid, vector or sparse"},
		{"query --kb b --k 0 x", "--k"},
		{"dlq get x", "weir dlq list"},
		{"eval", "either --dir or --all"},
		{"eval --dir a --all b", "either --dir or --all"},
		{"eval --all a --run f", "use --dir"},
		{"eval --dir a --mode both", "hybrid, vector or sparse"},
		{"eval --dir a --n 0", "1 or more"},
	} {
		code, _, errOut := line(env, strings.Fields(c.line)...)
		if code != ExitUsage || !strings.Contains(errOut, c.says) {
			t.Errorf("weir %s: got %d, %q, want %d and %q", c.line, code, errOut, ExitUsage, c.says)
		}
	}
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestEvalPrintsMeasuresAndWritesTheRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var corpus bytes.Buffer
	z := gzip.NewWriter(&corpus)
	fmt.Fprintln(z, `{"_id":"d1","title":"Weir","text":"a low dam"}`)
	fmt.Fprintln(z, `{"_id":"d2","title":"","text":"?"}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	d.file("sets/tiny/corpus.jsonl.gz", corpus.String())
	d.file("sets/tiny/queries.jsonl", `{"_id":"q1","text":"dam"}`+"\n"+`{"_id":"q2","text":"`+strings.Repeat("long ", 1000)+`"}`)
	d.file("sets/tiny/qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\n")
	dir := filepath.Join(d.env["WEIR_HOME"], "sets")
	runFile := filepath.Join(dir, "out.run")
	code, out, errOut := d.run("", "eval", "--dir", filepath.Join(dir, "tiny"), "--json", "--run", runFile)
	var r eval.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != ExitOK {
		t.Fatalf("got %d, %v\n%s%s", code, err, out, errOut)
	}
	if r.NDCG10 != 0.5 || r.Queries != 2 || len(r.Refused) != 1 || len(r.Failed) != 1 || r.P50Millis <= 0 {
		t.Errorf("got %+v, want one of two queries right, one refused, one document failed", r)
	}
	if !strings.Contains(errOut, "document d2: EMPTY_DOCUMENT") || !strings.Contains(errOut, "refused for their text and count as unanswered: q2") {
		t.Errorf("errors: got %s", errOut)
	}
	if body, err := os.ReadFile(runFile); err != nil || !strings.HasPrefix(string(body), "q1 Q0 d1 1 ") {
		t.Errorf("run: got %q, %v", body, err)
	}
	before := d.fake.Submits()
	table := d.ok("eval", "--all", dir)
	if strings.Count(table, "| tiny |") != 3 || d.fake.Submits() != before {
		t.Errorf("--all: got\n%s\n%d submits more, want three modes and none", table, d.fake.Submits()-before)
	}
}

func TestDoctorPrintsFixesAndFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	code, out, errOut := d.run("", "doctor")
	if code != ExitFailed || !strings.Contains(errOut, "checks failed") {
		t.Errorf("without a database: got %d, %s", code, errOut)
	}
	for _, want := range []string{"ok    services: running: ingester 1", "fail  database: unavailable: do not know where Postgres is", "      fix: start one with `weir up --detach`", "skip  schema: needs the database"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	var findings []map[string]string
	if _, out, _ := d.run("", "doctor", "--json"); json.Unmarshal([]byte(out), &findings) != nil || findings[0]["check"] != "bus" {
		t.Errorf("--json: got %s", out)
	}
}

func TestDemoOnServicesElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	examples := filepath.Join("..", "..", "..", "..", "examples")
	out := d.ok("demo", "--examples", examples)
	for _, want := range []string{"Publishing the documents of " + examples, "ready", "Question (Chinese): ", "score ", "Next:\n  weir query --kb demo"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	if strings.Contains(out, "keeps running") {
		t.Error("says that Weir keeps running here, which it does not")
	}
	if out := d.ok("demo", "--examples", examples); !strings.Contains(out, "unchanged") {
		t.Errorf("again: got\n%s\nwant unchanged documents", out)
	}
	var r demoResult
	if err := json.Unmarshal([]byte(d.ok("demo", "--examples", examples, "--json")), &r); err != nil || len(r.Answers) != 3 || r.Documents.Ready == 0 {
		t.Errorf("--json: got %+v, %v", r, err)
	}
	if _, _, found := d.fake.Document("demo", "", "examples/search-service-runbook.md"); !found {
		t.Error("the ids of the documents do not begin with the folder, as those of `weir publish examples` do")
	}
	if code, _, errOut := d.run("", "demo", "--examples", "/nonexistent"); code != ExitFailed || !strings.Contains(errOut, "--examples") {
		t.Errorf("no examples: got %d, %s", code, errOut)
	}
}

func TestFakeembedServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	out := &lockedBuffer{}
	cmd := fakeembedCommand(&Session{IO: IO{Out: out}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	cmd.SetArgs([]string{"--dims", "4"})
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	testkit.Eventually(t, func() error {
		url := strings.TrimSpace(out.String())
		resp, err := client.Post(url+"/embeddings", "application/json", strings.NewReader(`{"model":"m","input":["x"],"encoding_format":"float"}`))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var body struct {
			Data []struct{ Embedding []float64 }
		}
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || len(body.Data) != 1 {
			return fmt.Errorf("got %+v, %w", body, err)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHelpOfEveryCommand keeps the texts: a change of them is seen in review.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	mine := []string{"demo", "kb", "publish", "docs", "query", "dlq", "jobs", "reindex", "eval", "doctor", "fakeembed"}
	for _, command := range commands() {
		c := command(&Session{})
		if !slices.Contains(mine, c.Name()) {
			continue
		}
		checkHelp(t, c, nil)
	}
}

func checkHelp(t *testing.T, c *cobra.Command, above []string) {
	t.Helper()
	path := append(slices.Clone(above), c.Name())
	_, out, _ := line(nil, append(slices.Clone(path), "--help")...)
	golden := filepath.Join("testdata", "help", strings.Join(path, "_")+".golden")
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, []byte(out), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if out != string(want) {
		t.Errorf("help of %v: got\n%s\nwant\n%s\n(-update writes it)", path, out, want)
	}
	for _, sub := range c.Commands() {
		checkHelp(t, sub, path)
	}
}

func TestMigrateKeepsAndChangesSizesOfStreams(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	size := func() string {
		t.Helper()
		nc, err := nats.Connect(d.env["NATS_URL"])
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js := testkit.JetStream(t, nc)
		var sizes []string
		for _, name := range []string{messages.StreamDocs, messages.StreamIndex} {
			s, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, fmt.Sprint(s.CachedInfo().Config.MaxBytes))
		}
		return strings.Join(sizes, " ")
	}
	d.ok("migrate", "--skip-database", "--stream-max-bytes", "33554432")
	if got := size(); got != "33554432 33554432" {
		t.Errorf("asked for: got %s bytes, want 33554432 each", got)
	}
	d.ok("migrate", "--skip-database")
	if got := size(); got != "33554432 33554432" {
		t.Errorf("migrated again: got %s bytes, want them kept", got)
	}
	for _, args := range [][]string{{"--stream-replicas", "9"}, {"--stream-max-bytes", "5"}} {
		if code, _, errOut := d.run("", append([]string{"migrate", "--skip-database"}, args...)...); code != ExitUsage || !strings.Contains(errOut, args[0][2:]) {
			t.Errorf("%v: got %d, %q, want a usage error that names it", args, code, errOut)
		}
	}
}
