package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/testweir"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestPublishListGetAndDelete(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books", "--field", "year:long", "--field", "tags:string_list")
	d.file("docs/a.md", "alpha")
	d.file("docs/sub/b.txt", "beta")
	d.file("docs/c.exe", "gamma")
	dir := filepath.Join(d.env["WEIR_HOME"], "docs")
	out := d.ok("publish", "--kb", "books", "--meta", "year=2024", "--meta", "tags=x", "--meta", "tags=y", dir)
	if !strings.Contains(out, "2 documents in") || !strings.Contains(out, "2 ready") {
		t.Errorf("publish: got %s, want 2 documents", out)
	}
	if out := d.ok("publish", "--kb", "books", "--meta", "year=2024", dir); !strings.Contains(out, "2 unchanged") {
		t.Errorf("again: got %s, want 2 unchanged", out)
	}
	info, _, found := d.fake.Document("books", "", "a.md")
	if !found || string(info.Metadata) != `{"tags":["x","y"],"year":2024}` || info.ContentType != "text/markdown" {
		t.Errorf("a.md: got %+v, want its metadata and type", info)
	}
	d.env["WEIR_KB"] = "books"
	for i := range 4 { // more than a page
		d.ok("publish", "--id", fmt.Sprint("extra-", i), d.file("x.txt", "words"))
	}
	if out := d.ok("docs", "list"); strings.Count(out, "Ready") != 6 {
		t.Errorf("list: got\n%s\nwant 6 documents", out)
	}
	if out := d.ok("docs", "list", "--limit", "3"); strings.Count(out, "Ready") != 3 || !strings.Contains(out, "more") {
		t.Errorf("list --limit 3: got\n%s", out)
	}
	if out := d.ok("docs", "get", "a.md", "--chunks"); !strings.Contains(out, "retrievable: 1") || !strings.Contains(out, "chunk 0 (1 tokens, active)\nalpha") {
		t.Errorf("get: got\n%s", out)
	}
	if out := d.ok("docs", "delete", "a.md", "extra-0"); out != "a.md: Deleted\nextra-0: Deleted\n" {
		t.Errorf("delete: got %q", out)
	}
	if code, _, errOut := d.run("", "docs", "get", "a.md"); code != ExitNotFound || !strings.Contains(errOut, "DOCUMENT_NOT_FOUND") {
		t.Errorf("get of a deleted one: got %d, %s", code, errOut)
	}
	if code, _, errOut := d.run("", "publish", "--meta", "yaer=1", dir); code != ExitRejected || !strings.Contains(errOut, "metadata.yaer: is not declared; declared are tags, year") {
		t.Errorf("undeclared metadata: got %d, %s", code, errOut)
	}
	if code, _, errOut := d.run("", "publish", "--kb", "nobody", dir); code != ExitNotFound || !strings.Contains(errOut, "KNOWLEDGE_BASE_NOT_FOUND") {
		t.Errorf("unknown knowledge base: got %d, %s", code, errOut)
	}
}

func TestPublishNamesWhatFailed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books")
	lines := `{"_id":"1","text":"good"}
{"_id":"2","text":"` + testweir.Poison + `"}
{"_id":"3","txet":"typo"}
`
	code, out, errOut := d.run(lines, "publish", "--kb", "books", "--jsonl", "-")
	if code != ExitRejected || !strings.Contains(errOut, "2 of 3 documents failed") {
		t.Errorf("got %d, %s, want %d", code, errOut, ExitRejected)
	}
	for _, want := range []string{"FAILED standard input:2: DAMAGED_DOCUMENT: is poisoned", "FAILED standard input:3: VALIDATION_ERROR: txet: is not a known key", "1 ready, 2 failed"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	code, out, errOut = d.run(lines, "publish", "--kb", "books", "--jsonl", "--json", "-")
	states := map[string]string{}
	for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
		var r struct {
			Name, Status string
			Error        *messages.Error
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		states[r.Name] = r.Status
		if r.Error != nil {
			states[r.Name] += " " + string(r.Error.Code) + " " + r.Error.Field
		}
	}
	want := map[string]string{"standard input:1": "Ready", "standard input:2": "Failed DAMAGED_DOCUMENT ", "standard input:3": "Failed VALIDATION_ERROR txet"}
	if code != ExitRejected || fmt.Sprint(states) != fmt.Sprint(want) {
		t.Errorf("--json: got %d, %v, want %v", code, states, want)
	}
	var e struct{ Error struct{ Code messages.Code } }
	if err := json.Unmarshal([]byte(errOut), &e); err != nil || e.Error.Code == "" {
		t.Errorf("--json error: got %q, %v", errOut, err)
	}
}

func TestPublishWithoutWaitingAndWithATimeLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books")
	path := d.file("a.md", "alpha")
	if out := d.ok("publish", "--kb", "books", "--no-wait", path); !strings.Contains(out, "1 pending") {
		t.Errorf("--no-wait: got %s", out)
	}
	d.fake.Mute(true)
	code, _, errOut := d.run("", "publish", "--kb", "books", "--wait", "300ms", d.file("b.md", "beta"))
	if code != ExitTimeout || !strings.Contains(errOut, "1 documents are still on their way: `weir docs list --kb books`") {
		t.Errorf("--wait: got %d, %s, want %d and where to look", code, errOut, ExitTimeout)
	}
}

func TestWatchPrintsEventsUntilItIsLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books")
	out := &lockedBuffer{}
	s := &Session{IO: IO{Out: out, Err: &bytes.Buffer{}, Getenv: func(k string) string { return d.env[k] }}, Tenant: "default", Timeout: testkit.Patience}
	defer s.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- watchDocuments(ctx, s, "", false) }()
	n := 0
	testkit.Eventually(t, func() error { // watching begins some time after the call
		n++
		d.ok("publish", "--kb", "books", "--no-wait", "--id", fmt.Sprint("doc", n), d.file("a.md", fmt.Sprint("alpha ", n)))
		for _, want := range []string{"Pending", "Ready       books  doc", "1 chunks, 0 known before"} {
			if !strings.Contains(out.String(), want) {
				return fmt.Errorf("got %q, want %q", out.String(), want)
			}
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want a watch that is left to end well", err)
	}
}
