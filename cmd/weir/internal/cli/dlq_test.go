package cli

import (
	"strings"
	"testing"
)

func TestDeadLettersOneAtATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books")
	if out := d.ok("dlq", "list"); out != "No dead letters.\n" {
		t.Errorf("empty: got %q", out)
	}
	d.run(`{"_id":"1","text":"poison"}`+"\n"+`{"_id":"2","text":"poison 2"}`, "publish", "--kb", "books", "--jsonl", "-")
	if out := d.ok("dlq", "list", "--kb", "books"); strings.Count(out, "DAMAGED_DOCUMENT: is poisoned") != 2 {
		t.Errorf("list: got\n%s\nwant 2", out)
	}
	if out := d.ok("dlq", "get", "1"); !strings.Contains(out, "stage           parse") || !strings.Contains(out, "Nats-Msg-Id") {
		t.Errorf("get: got\n%s", out)
	}
	if out := d.ok("dlq", "replay", "1"); out != "Replayed dead letter 1.\n" {
		t.Errorf("replay: got %q", out)
	}
	if out := d.ok("dlq", "discard", "2", "--json"); !strings.Contains(out, `"discard": 2`) {
		t.Errorf("discard: got %q", out)
	}
	if out := d.ok("dlq", "list", "--state", "replayed", "--json"); !strings.Contains(out, `"id": 1`) || strings.Contains(out, `"id": 2`) {
		t.Errorf("replayed: got %s", out)
	}
	if code, _, _ := d.run("", "dlq", "replay", "99"); code != ExitNotFound {
		t.Errorf("unknown: got %d, want %d", code, ExitNotFound)
	}
}
