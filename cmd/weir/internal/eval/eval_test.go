package eval_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
	"github.com/weir-project/weir/cmd/weir/internal/testweir"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worked is the case worked by hand in the self-test of score.py: ties, a score equal in 32 bits, grades
// below 1, a query without relevant documents, one without an answer, one without judgments.
func worked() (eval.Qrels, eval.Run) {
	qrels := eval.Qrels{
		"q1": {"a": 2, "b": 1, "c": 1, "d": 0, "e": -1}, "q2": {"x": 1}, "q3": {"y": 1}, "q4": {"z": 0},
	}
	run := eval.Run{
		"q1": {{"a", 5}, {"b", 5}, {"d", 9}, {"u", 1.5}, {"c", 1}},
		"q2": {{"x", 1.00000001}, {"z", 1}},
		"q9": {{"x", 1}},
	}
	return qrels, run
}

func TestScoresOfTheWorkedCase(t *testing.T) {
	t.Parallel()
	qrels, run := worked()
	got, err := eval.Score(qrels, run)
	if err != nil {
		t.Fatal(err)
	}
	log2 := math.Log2
	ideal := 2 + 1/log2(3) + 0.5
	first := (1/log2(3) + 2/log2(4) + 1/log2(6)) / ideal // d b a u c
	want := eval.Scores{
		NDCG10: (first + 1/log2(3)) / 3, Recall100: 2.0 / 3, MRR10: (0.5 + 0.5) / 3, Queries: 3, Unanswered: 1,
	}
	for name, v := range map[string][2]float64{
		"nDCG@10": {got.NDCG10, want.NDCG10}, "Recall@100": {got.Recall100, want.Recall100}, "MRR@10": {got.MRR10, want.MRR10},
	} {
		if math.Abs(v[0]-v[1]) > 1e-12 {
			t.Errorf("%s: got %v, want %v", name, v[0], v[1])
		}
	}
	if got.Queries != want.Queries || got.Unanswered != want.Unanswered {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNothingJudgedIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := eval.Score(eval.Qrels{"q": {"a": 0}}, nil); !errors.Is(err, eval.ErrNoJudgment) {
		t.Errorf("got %v, want ErrNoJudgment", err)
	}
}

// TestScoresAgreeWithTheReferenceScript scores the worked case and a run over real judgments with both.
func TestScoresAgreeWithTheReferenceScript(t *testing.T) {
	t.Parallel()
	shared := filepath.Join("..", "..", "..", "..", "..", "shared", "eval")
	script := filepath.Join(shared, "score.py")
	if _, err := os.Stat(script); err != nil {
		t.Skipf("the reference script is not beside this checkout (%v): TestScoresOfTheWorkedCase still holds its case", err)
	}
	qrels, run := worked()
	compare(t, script, writeQrels(t, qrels), qrels, run)
	path := filepath.Join(shared, "nfcorpus", "qrels.tsv")
	set, err := eval.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, script, path, set.Qrels, pseudoRun(set))
}

// pseudoRun answers with some judged and some unjudged documents, with many equal scores.
func pseudoRun(s *eval.Set) eval.Run {
	run := eval.Run{}
	for i, q := range s.Queries {
		n := 0
		for doc, grade := range s.Qrels[q.ID] {
			if h := len(doc) + len(q.ID) + int(doc[len(doc)-1]); h%3 != 0 {
				run[q.ID] = append(run[q.ID], eval.Hit{Doc: doc, Score: float64(h%5+grade) / 7})
			}
			n++
		}
		for j := range i % 30 {
			run[q.ID] = append(run[q.ID], eval.Hit{Doc: "unjudged-" + string(rune('a'+j)), Score: float64(j%6) / 7})
		}
	}
	return run
}

func writeQrels(t *testing.T, qrels eval.Qrels) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("query-id\tcorpus-id\tscore\n")
	for q, judged := range qrels {
		for d, grade := range judged {
			b.WriteString(strings.Join([]string{q, d, json.Number(itoa(grade)).String()}, "\t") + "\n")
		}
	}
	path := filepath.Join(t.TempDir(), "qrels.tsv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func itoa(n int) string {
	b, _ := json.Marshal(n) // cannot fail
	return string(b)
}

func compare(t *testing.T, script, qrelsPath string, qrels eval.Qrels, run eval.Run) {
	t.Helper()
	got, err := eval.Score(qrels, run)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := eval.WriteRun(&file, run, "test"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", script, "--json", qrelsPath, "-")
	cmd.Stdin = &file
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("score.py: %v", err)
	}
	var want struct {
		Queries, Unanswered int
		Measures            map[string]float64
	}
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]float64{"nDCG@10": got.NDCG10, "Recall@100": got.Recall100, "MRR@10": got.MRR10} {
		if math.Abs(v-want.Measures[name]) > 1e-9 {
			t.Errorf("%s: %s: got %v, want %v", qrelsPath, name, v, want.Measures[name])
		}
	}
	if got.Queries != want.Queries || got.Unanswered != want.Unanswered {
		t.Errorf("%s: got %+v, want %+v", qrelsPath, got, want)
	}
}

// writeSet makes a small set, its corpus compressed.
func writeSet(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var corpus bytes.Buffer
	z := gzip.NewWriter(&corpus)
	_, err := z.Write([]byte(`{"_id":"d1","title":"Weir","text":"a low dam"}
{"_id":"d2","title":"","text":"a river crossing"}
{"_id":"d3","title":"","text":" - "}
{"_id":"d4","title":"Lake","text":"still water"}
`))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"corpus.jsonl.gz": corpus.String(),
		"queries.jsonl": `{"_id":"q1","text":"dam"}
{"_id":"q2","text":"river"}
{"_id":"q3","text":"` + strings.Repeat("long ", 1000) + `"}
{"_id":"q4","text":"unjudged"}
`,
		"qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td4\t1\nq3\td2\t1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDefaultNameHoldsTheCorpus(t *testing.T) {
	t.Parallel()
	a, err := eval.Open(writeSet(t, filepath.Join(t.TempDir(), "My Set (zh) "+strings.Repeat("x", 80))))
	if err != nil {
		t.Fatal(err)
	}
	for _, chunked := range []bool{false, true} {
		if err := messages.ValidateName("kb", a.KBName(chunked)); err != nil {
			t.Errorf("%s: %v", a.KBName(chunked), err)
		}
	}
	if !strings.HasPrefix(a.KBName(false), "my-set-zh-xxx") || a.KBName(false) == a.KBName(true) {
		t.Errorf("got %s and %s, want names of the folder that differ", a.KBName(false), a.KBName(true))
	}
	b, err := eval.Open(writeSet(t, filepath.Join(t.TempDir(), "other")))
	if err != nil {
		t.Fatal(err)
	}
	if a.Hash != b.Hash || a.Docs != 4 || a.Empty != 1 {
		t.Errorf("got %s/%d/%d and %s, want equal hashes, 4 documents, 1 empty", a.Hash, a.Docs, a.Empty, b.Hash)
	}
}

func TestSetIsPublishedOnceAndScored(t *testing.T) {
	t.Parallel()
	_, connect := testkit.NATS(t)
	fake := testweir.Start(t, connect())
	nc := connect()
	client := bus.Client{NC: nc}
	ask := func(ctx context.Context, scope, op string, in, out any) error {
		return client.Call(ctx, messages.RPCSubject(testweir.Tenant, scope, op), nil, in, out)
	}
	set, err := eval.Open(writeSet(t, filepath.Join(t.TempDir(), "tiny")))
	if err != nil {
		t.Fatal(err)
	}
	target := eval.Target{NC: nc, Tenant: testweir.Tenant, KB: set.KBName(false), Ask: ask}
	in, err := eval.Ingest(t.Context(), set, target)
	if err != nil {
		t.Fatal(err)
	}
	if in.Skipped || len(in.Failed) != 1 || in.Failed[0].DocID != "d3" || in.Failed[0].Error.Code != messages.CodeEmptyDocument {
		t.Errorf("got %+v, want d3 failed as empty", in)
	}
	if in, err = eval.Ingest(t.Context(), set, target); err != nil || !in.Skipped || fake.Submits() != 4 {
		t.Errorf("again: got %+v, %v, %d submits, want it skipped", in, err, fake.Submits())
	}
	answers, err := eval.Ask(t.Context(), set, eval.Hybrid, 0, 3, func(ctx context.Context, in messages.RetrieveRequest) (out messages.RetrieveReply, err error) {
		return out, ask(ctx, target.KB, messages.OpRetrieve, in, &out)
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.NewReport(set, target.KB, eval.Hybrid, answers)
	if err != nil {
		t.Fatal(err)
	}
	if r.Queries != 3 || r.Unanswered != 1 || len(r.Refused) != 1 || r.Refused[0] != "q3" || math.Abs(r.MRR10-1.0/3) > 1e-9 {
		t.Errorf("got %+v, want q1 right, q2 wrong, q3 refused for its length", r)
	}
	target.Chunked = true
	if _, err := eval.Ingest(t.Context(), set, target); err == nil || !strings.Contains(err.Error(), "strategy whole") {
		t.Errorf("other chunking: got %v, want it refused", err)
	}
}

func TestOverloadIsWaitedFor(t *testing.T) {
	t.Parallel()
	set := &eval.Set{Queries: []eval.Query{{ID: "q", Text: "x"}}, Qrels: eval.Qrels{"q": {"d": 1}}}
	calls := 0
	a, err := eval.Ask(t.Context(), set, eval.Sparse, 0, 1, func(context.Context, messages.RetrieveRequest) (messages.RetrieveReply, error) {
		if calls++; calls < 3 {
			return messages.RetrieveReply{}, messages.Errorf(messages.CodeOverloaded, "busy")
		}
		return messages.RetrieveReply{Results: []messages.RetrievedChunk{{DocID: "d", ChunkID: 2, Score: 2}, {DocID: "d", Score: 1}, {DocID: "e", Score: 0.5}}}, nil
	})
	if err != nil || calls != 3 || len(a.Run["q"]) != 2 || a.Run["q"][0].Score != 2 || a.P95 <= 0 {
		t.Errorf("got %+v, %v after %d calls, want two folded hits after 3", a, err, calls)
	}
	_, err = eval.Ask(t.Context(), set, eval.Sparse, 0, 1, func(context.Context, messages.RetrieveRequest) (messages.RetrieveReply, error) {
		return messages.RetrieveReply{}, messages.Errorf(messages.CodeUnavailable, "down")
	})
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeUnavailable {
		t.Errorf("got %v, want UNAVAILABLE to end it", err)
	}
}

func TestRequestsOfTheModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode eval.Mode
		n    int
		want string
	}{
		{eval.Sparse, 0, `{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":100},"rerankingConfiguration":{"numberOfResults":100}}`},
		{eval.Vector, 0, `{"searchType":["DENSE_VECTOR"],"denseVectorSearchConfiguration":{"numberOfResults":100},"rerankingConfiguration":{"numberOfResults":100}}`},
		{eval.Hybrid, 0, `{"searchType":["DENSE_VECTOR","FULL_TEXT"],"denseVectorSearchConfiguration":{"numberOfResults":20},"fullTextSearchConfiguration":{"numberOfResults":20},"rerankingConfiguration":{"numberOfResults":100}}`},
		{eval.Hybrid, 50, `{"searchType":["DENSE_VECTOR","FULL_TEXT"],"denseVectorSearchConfiguration":{"numberOfResults":50},"fullTextSearchConfiguration":{"numberOfResults":50},"rerankingConfiguration":{"numberOfResults":100}}`},
	} {
		in, err := eval.Request(c.mode, "q", c.n)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(in.Configuration); string(got) != c.want {
			t.Errorf("%s %d: got %s, want %s", c.mode, c.n, got, c.want)
		}
	}
	if _, err := eval.Request("both", "q", 0); err == nil {
		t.Error("unknown mode: got no error")
	}
}

func TestTableIsMarkdown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := eval.Table(&out, []eval.Report{{Set: "scifact", Mode: eval.Sparse, Documents: 5183, Queries: 150, NDCG10: 0.68475, Recall100: 1, MRR10: 0.5, P50Millis: 1.25, P95Millis: 10}})
	if err != nil {
		t.Fatal(err)
	}
	want := `| set     | mode   | documents | queries | nDCG@10 | Recall@100 |  MRR@10 |  p50 ms |  p95 ms |
| ---     | ---    |       --: |     --: |     --: |        --: |     --: |     --: |     --: |
| scifact | sparse |      5183 |     150 |  0.6847 |     1.0000 |  0.5000 |     1.2 |    10.0 |
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestBrokenFilesNameTheLine(t *testing.T) {
	t.Parallel()
	for file, c := range map[string][2]string{
		"qrels.tsv":     {"q1\td1\n", "qrels.tsv:1: want 3"},
		"queries.jsonl": {"{\"text\":\"x\"}\n", "queries.jsonl:1: query id"},
		"corpus.jsonl":  {"{\"_id\":\"a\"}\n{\"_id\":", "corpus.jsonl:2:"},
	} {
		dir := writeSet(t, filepath.Join(t.TempDir(), "set"))
		if err := os.WriteFile(filepath.Join(dir, file), []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := eval.Open(dir); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got %v, want %q", file, err, c[1])
		}
	}
	if _, err := eval.Open(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: got %v, want not exist", err)
	}
}

func TestRunFilesHoldTheirOrder(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := eval.WriteRun(&out, eval.Run{"q2": {{"a", 0.1}}, "q1": {{"b", 2}, {"c", 1e-9}}}, "weir-hybrid"); err != nil {
		t.Fatal(err)
	}
	want := "q1 Q0 b 1 2 weir-hybrid\nq1 Q0 c 2 1e-09 weir-hybrid\nq2 Q0 a 1 0.1 weir-hybrid\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := eval.WriteRun(&out, eval.Run{"q": {{"a b", 1}}}, "x"); err == nil {
		t.Error("a document id with a space: got no error")
	}
}
