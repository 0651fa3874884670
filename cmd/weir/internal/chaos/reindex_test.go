package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// reindexDocs is how many documents are built anew; WEIR_REINDEX_DOCS replaces it.
const reindexDocs = 120

func reindexDocsOf(t *testing.T) int {
	t.Helper()
	text := os.Getenv("WEIR_REINDEX_DOCS")
	if text == "" {
		return reindexDocs
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("WEIR_REINDEX_DOCS: %q is no number of documents", text)
	}
	return n
}

// Whoever dies at whatever moment of a reindex, the second after the generation is made and the flip among them, the
// rows are those of an undisturbed one.
func TestAReindexWhoseProcessesAreKilledLeavesTheSameRows(t *testing.T) {
	bin, pg, docs := build(t), startPostgres(t), reindexDocsOf(t)
	var want []string
	t.Run("undisturbed", func(t *testing.T) {
		r := newReindex(t, bin, pg, "reindex_undisturbed", docs)
		r.run(func(string) {})
		want = r.rows()
		r.switchEndpoint()
	})
	if t.Failed() {
		return
	}
	t.Run("killed", func(t *testing.T) {
		r := newReindex(t, bin, pg, "reindex_killed", docs)
		seed := seedOf(t)
		r.rng = rand.New(rand.NewPCG(seed, seed+1))
		r.run(r.disturb)
		if d := difference(r.rows(), want); d != "" {
			t.Errorf("what the killed reindex left differs from the undisturbed one: %s", d)
		}
		if r.kills != kills {
			t.Errorf("%d kills, want %d", r.kills, kills)
		}
	})
}

// reindex is a world and the job that builds its knowledge base anew.
type reindex struct {
	*world
	docs     int
	patience time.Duration
	job      int64
	rng      *rand.Rand
	kills    int
}

func newReindex(t *testing.T, bin string, pg *postgres, database string, docs int) *reindex {
	t.Helper()
	r := &reindex{world: newWorld(t, bin, pg, database), docs: docs, patience: testkit.Patience + time.Duration(docs)*100*time.Millisecond}
	all := make([]submit, docs)
	for i := range all {
		all[i] = publish(i, 0)
	}
	r.send(all)
	r.wait("every document Ready", `SELECT $1 - count(*) FILTER (WHERE status = 'Ready') FROM documents`, docs)
	return r
}

// Moments of a reindex at which something may die.
const (
	justStarted = "the second after the generation is made"
	underWay    = "under way"
	nearlyDone  = "nearly done"
	atFlip      = "the flip"
)

// run starts the job, waits until everything is built, approves it and waits until it is done, and tells at each
// moment.
func (r *reindex) run(at func(moment string)) {
	r.t.Helper()
	prefix, overlap := "again: ", 0
	j := r.ask(messages.OpJobStart, messages.StartJob{
		KnowledgeBaseName: kb, Embedding: &messages.Embedding{PassagePrefix: &prefix}, Chunking: &messages.Chunking{Size: 200, Overlap: &overlap},
		Manual: true, RateLimit: float64(r.docs) / 6,
	})
	r.job = j.ID
	at(justStarted)
	at(underWay)
	r.wait("a few builds left", `SELECT CASE WHEN count(*) FILTER (WHERE state = 'done') >= $1 THEN 0 ELSE 1 END FROM document_builds`, r.docs*9/10)
	at(nearlyDone)
	r.wait("everything built", `SELECT count(*) FROM jobs WHERE state <> 'waiting'`)
	r.ask(messages.OpJobApprove, messages.ApproveJob{ID: r.job})
	at(atFlip)
	r.wait("switched", `SELECT count(*) FROM jobs WHERE state <> 'done'`)
	r.wait("nothing staged", `SELECT (SELECT count(*) FROM staged_chunks) + (SELECT count(*) FROM staged_vectors)`)
}

// ask makes a request about jobs until somebody answers. What was done already is no error.
func (r *reindex) ask(op string, in any) messages.JobInfo {
	r.t.Helper()
	var out messages.JobInfo
	testkit.EventuallyWithin(r.t, r.patience, func() (err error) {
		out, err = call[messages.JobInfo](r.world, messages.TenantScope, op, in)
		if e, ok := messages.AsError(err); ok && e.Code == messages.CodeJobConflict {
			return nil
		}
		return err
	})
	return out
}

// wait waits until a query that counts what is wrong counts nothing, whoever is dead meanwhile.
func (r *reindex) wait(what, wrong string, args ...any) {
	r.t.Helper()
	started := time.Now()
	testkit.EventuallyWithin(r.t, r.patience, func() error {
		if err := r.healthy(); err != nil {
			r.t.Fatal(err)
		}
		var n int
		if err := r.pool.QueryRow(r.t.Context(), wrong, args...).Scan(&n); err != nil {
			return err
		}
		if n != 0 {
			return fmt.Errorf("%s: %d are not", what, n)
		}
		return nil
	})
	r.t.Logf("%s after %s", what, time.Since(started).Round(time.Millisecond))
}

// disturb kills whom the moment is about. In the middle that is everybody, and some twice.
func (r *reindex) disturb(moment string) {
	switch moment {
	case justStarted:
		r.strike("indexer", time.Second)
	case nearlyDone:
		r.strike("indexer", 300*time.Millisecond)
	case atFlip:
		r.strike("indexer", 60*time.Millisecond)
	case underWay:
		queue := []string{"postgres", "nats", "ingester", "embedder", "indexer"}
		for len(queue) < kills-3 {
			queue = append(queue, queue[r.rng.IntN(5)])
		}
		r.rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
		for _, name := range queue {
			r.strike(name, 700*time.Millisecond)
		}
	}
}

// strike kills a part at a random moment within the time given and starts it again.
func (r *reindex) strike(name string, within time.Duration) {
	r.t.Helper()
	r.pause(within)
	r.parts[name].kill()
	r.kills++
	r.pause(300 * time.Millisecond)
	r.parts[name].start()
	r.t.Logf("killed %s and started it again", name)
}

// pause lets a random time pass: when something dies is what this test is about.
func (r *reindex) pause(most time.Duration) {
	time.Sleep(time.Duration(r.rng.Int64N(int64(most)))) // the moment is drawn, not waited for
}

// rows is what the world holds, both generations, their builds and the job, free of ids.
func (r *reindex) rows() []string {
	r.t.Helper()
	lines := r.state()
	lines = append(lines, r.lines(`SELECT format('build %s/%s: %s, %s chunks', d.doc_id, b.version, b.state, b.chunks)
		FROM document_builds b JOIN documents d ON d.key = b.document_key`)...)
	lines = append(lines, r.lines(`SELECT format('generation %s: %s %s', state, space->>'passagePrefix', chunking) FROM generations`)...)
	lines = append(lines, r.lines(`SELECT format('job %s, %s, %s of %s done, %s failed, %s skipped', state, phase, counts->>'done', counts->>'total', counts->>'failed', skipped) FROM jobs`)...)
	slices.Sort(lines)
	if len(lines) < 4*r.docs {
		r.t.Errorf("only %d lines of state", len(lines))
	}
	return lines
}

// switchEndpoint has another server answer for the same model: nothing is embedded again for it.
func (r *reindex) switchEndpoint() {
	r.t.Helper()
	other := fakeserver.New(fakeserver.Options{Dims: dims})
	server := httptest.NewServer(other)
	r.t.Cleanup(server.Close)
	p, ok := r.parts["embedder"].(*process)
	if !ok {
		r.t.Fatal("the embedder is no process")
	}
	p.stop()
	for i, arg := range p.args {
		if arg == "--embedding-base-url" {
			p.args[i+1] = server.URL + "/v1"
		}
	}
	p.start()
	j := r.ask(messages.OpJobStart, messages.StartJob{KnowledgeBaseName: kb})
	r.wait("built anew", `SELECT count(*) FROM jobs WHERE id = $1 AND state <> 'done'`, j.ID)
	edited := publish(0, 1) // one section of many
	r.send([]submit{edited})
	r.wait("the edit is Ready", `SELECT count(*) FROM documents WHERE doc_id = $1 AND live_version < 2`, docID(0))
	if n := other.Texts(); n == 0 || n > 5 {
		r.t.Errorf("the other server embedded %d texts after a job of everything and an edit of one section, want 1 to 5", n)
	}
}
