package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
)

func TestEvalSweepComparesRankings(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.file("sets/tiny/corpus.jsonl", `{"_id":"d1","title":"Weir","text":"a low dam"}`+"\n"+`{"_id":"d2","title":"Dam","text":"a high dam wall"}`+"\n")
	d.file("sets/tiny/queries.jsonl", `{"_id":"q1","text":"dam"}`+"\n"+`{"_id":"q2","text":"`+strings.Repeat("long ", 1000)+`"}`)
	d.file("sets/tiny/qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\n")
	dir := filepath.Join(d.env["WEIR_HOME"], "sets")
	code, out, errOut := d.run("", "eval", "--dir", filepath.Join(dir, "tiny"), "--sweep", "--json", "--sweep-n", "10/20", "--sweep-weights", "0.5", "--sweep-k", "60")
	var r eval.SweepReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != ExitOK {
		t.Fatalf("got %d, %v\n%s%s", code, err, out, errOut)
	}
	var methods []string
	for _, row := range r.Rows {
		methods = append(methods, row.Method)
	}
	if got := strings.Join(methods, ", "); got != "WEIGHT, dense alone, full text alone, WEIGHT, RRF k 60" || r.Sets[0].Queries != 2 || len(r.Sets[0].Refused) != 1 {
		t.Errorf("got %s on %+v, want the default, both legs, and what was asked for", got, r.Sets)
	}
	if !strings.Contains(errOut, "count as unanswered: q2") {
		t.Errorf("errors: got %s", errOut)
	}
	before := d.fake.Submits()
	table := d.ok("eval", "--all", dir, "--sweep")
	if !strings.Contains(table, "| tiny ") || !strings.Contains(table, "baseline") || !strings.Contains(table, "RRF k 10") || d.fake.Submits() != before {
		t.Errorf("got\n%s\n%d submits more, want the table and none", table, d.fake.Submits()-before)
	}
}

func TestEvalSweepFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for args, says := range map[string]string{
		"--sweep --mode hybrid":       "--mode has no meaning",
		"--sweep --n 5":               "--n has no meaning",
		"--sweep --run f":             "--run has no meaning",
		"--sweep-k 60":                "--sweep-k needs --sweep",
		"--sweep --sweep-k 0":         "--sweep-k",
		"--sweep --sweep-n 20/0":      "--sweep-n",
		"--sweep --sweep-n 1001":      "--sweep-n",
		"--sweep --sweep-weights 1.1": "--sweep-weights",
		"--sweep --sweep-weights NaN": "--sweep-weights",
	} {
		code, _, errOut := d.run("", append([]string{"eval", "--dir", "a"}, strings.Fields(args)...)...)
		if code != ExitUsage || !strings.Contains(errOut, says) {
			t.Errorf("%s: got %d, %q, want %d and %q", args, code, errOut, ExitUsage, says)
		}
	}
}
