package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

const (
	// lookEvery is the reconciler's period and grace in these tests.
	lookEvery = 400 * time.Millisecond
	// lossDocs is how many documents are on their way when something is lost.
	lossDocs = 24
)

// losing is a system with documents on their way.
type losing struct{ *system }

// startLosing publishes documents, some of which need several embed messages, to a system whose
// embedding server is told how to behave.
func startLosing(t *testing.T, fault *fakeserver.Fault) losing {
	t.Helper()
	l := losing{start(t, options{reconcile: lookEvery, embedding: 4})} // fewer in hand than there are documents
	l.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	l.fake.Always(fault)
	for i := range lossDocs {
		l.publish("docs", fmt.Sprintf("m%d", i), lossDoc(i))
	}
	return l
}

// lossDoc is of one chunk, or of so many that they need several messages.
func lossDoc(i int) messages.Submit {
	d := doc(i)
	if i%6 == 0 {
		d.ContentType, d.Text = "text/markdown", text(longText(i))
	}
	return d
}

// longSections is how many sections a long document has.
const longSections = 140

func longText(i int) string {
	var b strings.Builder
	for s := range longSections {
		fmt.Fprintf(&b, "# Section %d of %d\n\n%s\n\n", s, i, strings.Repeat(fmt.Sprintf("w%d ", s), 90))
	}
	return b.String()
}

// slow stretches the run: every answer of the embedding server takes a while.
func slow() *fakeserver.Fault { return &fakeserver.Fault{Delay: 150 * time.Millisecond} }

// busy pauses the embedder: the server asks for patience.
func busy() *fakeserver.Fault { return &fakeserver.Fault{Status: 429, RetryAfter: "1"} }

// until waits until a count has come to a number.
func (l losing) until(what string, want int, sql string) {
	l.t.Helper()
	testkit.Eventually(l.t, func() error {
		if got := l.count(sql); got != want {
			return fmt.Errorf("%s: got %d, want %d", what, got, want)
		}
		return nil
	})
}

func (l losing) untilAccepted() {
	l.t.Helper()
	l.until("accepted documents", lossDocs, `SELECT count(*) FROM documents WHERE version > 0`)
}

// untilStaged waits until every document waits for its vectors.
func (l losing) untilStaged() {
	l.t.Helper()
	l.until("staged documents", lossDocs, `SELECT count(*) FROM document_versions WHERE chunks IS NOT NULL`)
}

// check waits until every document is Ready, and fails when anything is wrong with what is live or left.
func (l losing) check() {
	l.t.Helper()
	l.until("Ready documents", lossDocs, `SELECT count(*) FROM documents WHERE status = 'Ready'`)
	l.until("staged rows", 0, `SELECT (SELECT count(*) FROM staged_chunks) + (SELECT count(*) FROM staged_vectors)`)
	got, want := l.count(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`), l.count(`SELECT sum(chunks) FROM document_versions`)
	if got != want || got < 100*lossDocs/6 {
		l.t.Errorf("chunks with vectors: got %d, want %d", got, want)
	}
	if n := l.count(`SELECT count(*) FROM dead_letters`); n != 0 {
		l.t.Errorf("%d dead letters, want none", n)
	}
}

// runs is how often work was published again under new ids.
func (l losing) runs() int {
	l.t.Helper()
	return l.count(`SELECT coalesce(sum(run), 0) FROM document_versions`)
}

func (l losing) purge(stream string) {
	l.t.Helper()
	s, err := l.js.Stream(l.t.Context(), stream)
	if err == nil {
		err = s.Purge(l.t.Context())
	}
	if err != nil {
		l.t.Fatalf("purge %s: %v", stream, err)
	}
}

func (l losing) stored(stream string) int {
	l.t.Helper()
	s, err := l.js.Stream(l.t.Context(), stream)
	if err != nil {
		l.t.Fatalf("look up %s: %v", stream, err)
	}
	return int(s.CachedInfo().State.Msgs) //nolint:gosec // a handful
}

func TestWipingEveryStreamCostsNoDocument(t *testing.T) {
	l := startLosing(t, busy())
	l.untilAccepted()
	for _, s := range messages.Streams() {
		if err := l.js.DeleteStream(t.Context(), s.Name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bus.Provision(t.Context(), l.js, messages.Streams(), messages.Stages(), bus.Settings{MaxBytes: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	if n := l.count(`SELECT count(*) FROM documents WHERE status = 'Ready'`); n != 0 {
		t.Fatalf("%d documents are Ready without vectors", n)
	}
	l.fake.Always(nil)
	l.check()
}

func TestLostEmbedMessagesArePublishedAgain(t *testing.T) {
	l := startLosing(t, busy())
	l.untilStaged()
	testkit.Eventually(t, func() error {
		if n := l.stored(messages.StreamEmbed); n < lossDocs {
			return fmt.Errorf("%d embed messages are stored, want at least %d", n, lossDocs)
		}
		return nil
	})
	l.purge(messages.StreamEmbed)
	l.fake.Always(nil)
	l.check()
	if l.runs() == 0 {
		t.Error("no run was raised: nothing was published again")
	}
}

func TestLostIndexMessagesArePublishedAgain(t *testing.T) {
	l := startLosing(t, busy())
	l.untilStaged()
	lane := messages.StageNamed(messages.StageIndex).Durable(messages.Lane(tenant, "docs"))
	if _, err := l.js.PauseConsumer(t.Context(), messages.StreamIndex, lane, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	l.fake.Always(nil)
	testkit.Eventually(t, func() error {
		if n := l.stored(messages.StreamEmbed); n > 0 {
			return fmt.Errorf("%d embed messages are left", n)
		}
		return nil
	})
	if n := l.stored(messages.StreamIndex); n == 0 {
		t.Fatal("no index message waits: the consumer is not paused")
	}
	l.purge(messages.StreamIndex)
	if _, err := l.js.ResumeConsumer(t.Context(), messages.StreamIndex, lane); err != nil {
		t.Fatal(err)
	}
	l.check()
	if l.runs() == 0 {
		t.Error("no run was raised: nothing was published again")
	}
}

func TestEmptiedStagingIsBuiltAnew(t *testing.T) {
	for name, statement := range map[string]string{
		"all of it, as a crash of Postgres does": `TRUNCATE staged_chunks, staged_vectors`,
		"the vectors":                            `TRUNCATE staged_vectors`,
	} {
		t.Run(name, func(t *testing.T) {
			l := startLosing(t, busy())
			l.untilStaged()
			// The last text of a long document is held, so the vectors of others of its texts stay staged.
			release := l.fake.hold(fmt.Sprintf("Section %d of %d", longSections-1, 0))
			defer release()
			l.fake.Always(nil)
			testkit.Eventually(t, func() error {
				if l.count(`SELECT count(*) FROM staged_vectors`) == 0 {
					return errors.New("no vector is staged")
				}
				return nil
			})
			if _, err := l.pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			release()
			l.check()
		})
	}
}

func TestABacklogIsNotTakenForLost(t *testing.T) {
	l := startLosing(t, busy())
	l.untilStaged()
	ctx, cancel := context.WithTimeout(t.Context(), 8*lookEvery)
	defer cancel()
	<-ctx.Done() // the reconciler looks several times, each past its grace
	if n := l.count(`SELECT count(*) FROM documents WHERE status = 'Ready'`); n > 0 {
		t.Fatalf("%d documents are Ready: there is no backlog", n)
	}
	l.fake.Always(nil)
	l.check()
	if n := l.runs(); n != 0 {
		t.Errorf("runs raised: got %d, want none", n)
	}
}
