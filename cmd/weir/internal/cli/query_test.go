package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestQueryPrintsPlacesAndScoresOfTheLegs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("kb", "create", "books")
	d.ok("publish", "--kb", "books", "--id", "dam", "--title", "The dam", d.file("x.txt", "a low dam across a river\n"+strings.Repeat("and more ", 60)))
	out := d.ok("query", "--kb", "books", "--explain", "river", "dam")
	for _, want := range []string{
		" 1. dam (The dam), pages 1-2, Part  score 2.0000 = vector 0.5000 (rank 1), words 2.0000 (rank 2)\n",
		"    a low dam across a river and more", "…\n", "Fusion WEIGHT, generation 1. Time: 1.5 ms", "vector: exact, 1 candidates, no index, ", "words: exact, 1 candidates, index segments, ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	var reply messages.RetrieveReply
	if err := json.Unmarshal([]byte(d.ok("query", "--kb", "books", "--json", "--mode", "sparse", "dam")), &reply); err != nil || len(reply.Results) != 1 {
		t.Errorf("--json: got %+v, %v", reply, err)
	}
	if out := d.ok("query", "--kb", "books", "nothing like it"); out != "Nothing found.\n" {
		t.Errorf("nothing: got %q", out)
	}
	code, _, errOut := d.run("", "query", "--kb", "books", strings.Repeat("x", 5000))
	if code != ExitRejected || !strings.Contains(errOut, "retrievalQuery.text") {
		t.Errorf("long query: got %d, %s", code, errOut)
	}
}

func TestQueryPassesItsFilterOn(t *testing.T) {
	t.Parallel()
	const text = `year >= 2024 AND NOT status = 'draft'`
	given, empty := text, ""
	for want, f := range map[string]*queryFlags{text: {k: 1, filter: &given}, "": {k: 1, filter: &empty}} {
		in, err := f.request("x")
		if err != nil {
			t.Fatal(err)
		}
		if got, ok, err := in.Configuration.Expression(); !ok || got != want || err != nil {
			t.Errorf("got %q, %v, %v, want %q", got, ok, err, want)
		}
	}
	in, err := (&queryFlags{k: 1}).request("x")
	if err != nil || in.Configuration.FiltersGiven() {
		t.Errorf("without --filter: got %+v, %v, want nothing said of filters", in.Configuration, err)
	}
}
