package cli

import (
	"strings"
	"testing"
)

func TestDefaultsOfAKnowledgeBaseAreSet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "papers", "--retrieval", `{"searchType":["FULL_TEXT"]}`)
	if out := d.ok("kb", "get", "papers", "--json"); !strings.Contains(out, "FULL_TEXT") {
		t.Errorf("created: got %s, want its defaults", out)
	}
	d.ok("kb", "update", "papers", "--retrieval", "@"+d.file("best.json", `{"searchType":["DENSE_VECTOR"]}`))
	if out := d.ok("kb", "get", "papers", "--json"); !strings.Contains(out, "DENSE_VECTOR") || strings.Contains(out, "FULL_TEXT") {
		t.Errorf("updated: got %s, want the new defaults alone", out)
	}
	for _, bad := range []string{"", "{", "[]", "null", "@" + d.file("bad.json", "x")} {
		if code, _, errOut := d.run("", "kb", "update", "papers", "--retrieval", bad); code != ExitUsage || !strings.Contains(errOut, "--retrieval is no JSON object") {
			t.Errorf("%q: got %d, %s", bad, code, errOut)
		}
	}
	if code, _, errOut := d.run("", "kb", "update", "papers", "--retrieval", "@/nowhere/x.json"); code == ExitOK || !strings.Contains(errOut, "/nowhere/x.json") {
		t.Errorf("a file that is not there: got %d, %s", code, errOut)
	}
}
