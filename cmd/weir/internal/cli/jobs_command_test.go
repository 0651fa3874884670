package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestLifeOfAJob(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "papers")
	if out := d.ok("jobs", "list"); !strings.Contains(out, "No jobs.") {
		t.Errorf("list of none: got %s", out)
	}
	if out := d.ok("reindex", "--kb", "papers", "--dry-run", "--chunk-size", "300"); !strings.Contains(out, "a dry run") {
		t.Errorf("dry run: got %s", out)
	}
	if out := d.ok("reindex", "--kb", "papers"); !strings.Contains(out, "done") {
		t.Errorf("reindex: got %s", out)
	}
	judged := d.file("judged.jsonl", `{"query":"dam","relevant":{"d1":1}}`+"\n\n"+`{"query":"weir","relevant":{"d2":2}}`+"\n")
	var j messages.JobInfo
	out := d.ok("jobs", "start", "reindex", "--kb", "papers", "--manual", "--judged", judged, "--json")
	if err := json.Unmarshal([]byte(out), &j); err != nil || j.State != messages.JobWaiting || j.Gate == nil || len(j.Gate.Judged) != 2 {
		t.Fatalf("start: got %+v (%v)", j, err)
	}
	if out := d.ok("jobs", "list", "--state", "waiting"); !strings.Contains(out, "papers") || !strings.Contains(out, "approve or cancel") {
		t.Errorf("list: got %s", out)
	}
	if code, _, errOut := d.run("", "jobs", "watch", "2"); code != ExitFailed || !strings.Contains(errOut, "waiting") {
		t.Errorf("watching a job that waits: got %d, %s", code, errOut)
	}
	for _, step := range [][]string{{"approve", "2"}, {"watch", "2"}, {"get", "2"}, {"rollback", "2", "--wait"}, {"pause", "1"}, {"resume", "1", "--rate", "3"}, {"cancel", "1"}} {
		d.ok(append([]string{"jobs"}, step...)...)
	}
	if code, _, _ := d.run("", "jobs", "get", "9"); code != ExitNotFound {
		t.Errorf("an unknown job: got exit code %d, want %d", code, ExitNotFound)
	}
}

func TestWrongJobsAreToldBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no knowledge base":   {"jobs", "start", "reindex"},
		"an unknown kind":     {"jobs", "start", "rebuild", "--kb", "papers"},
		"a repair with model": {"jobs", "start", "repair", "--kb", "papers", "--model", "m", "--dims", "3"},
		"a chosen reindex":    {"jobs", "start", "reindex", "--kb", "papers", "--stale"},
		"a bad filter":        {"jobs", "start", "repair", "--kb", "papers", "--filter", "{"},
		"a gate's flag alone": {"reindex", "--kb", "papers", "--min-overlap", "0.9"},
		"a bad number":        {"jobs", "get", "first"},
		"a bad state":         {"jobs", "list", "--state", "lost"},
	} {
		if code, _, errOut := line(nil, args...); code != ExitUsage {
			t.Errorf("%s: got %d (%s), want %d", name, code, errOut, ExitUsage)
		}
	}
	for _, args := range [][]string{{"reindex"}, {"jobs", "start", "repair"}} {
		if _, _, errOut := line(map[string]string{"WEIR_KB": "Not A Name"}, args...); !strings.Contains(errOut, "must match") {
			t.Errorf("%v with WEIR_KB: got %s, want that its name is wrong", args, errOut)
		}
	}
}
