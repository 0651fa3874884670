package indexer_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/indexer/internal/lines"
)

// recorder remembers what is published, while it works.
type recorder struct {
	broken bool

	mu   sync.Mutex
	sent []bus.Message // read it when nobody publishes any more
}

var errBusAway = errors.New("the bus is away")

func (p *recorder) PublishAck(_ context.Context, msgs ...bus.Message) ([]bus.Ack, error) {
	if p.broken {
		return nil, errBusAway
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, msgs...)
	return make([]bus.Ack, len(msgs)), nil
}

// told is status, document and submit of what was published since it was asked last.
func (p *recorder) told(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, e := range eventsOf(t, p.sent) {
		out = append(out, fmt.Sprint(e.Status, " ", e.DocID, " v", e.Version))
	}
	p.sent = nil
	slices.Sort(out)
	return out
}

func (l *lab) submission(doc, text string) pgstore.Submission {
	l.seq++
	return pgstore.Submission{
		KB: l.kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("js/1/%d", l.seq), SubmitID: fmt.Sprintf("m%d", l.seq),
		Order:  pgstore.Order{At: time.Unix(1_700_000_000, int64(l.seq)), Seq: l.seq}, //nolint:gosec // small
		OSSKey: doc, ContentType: "text/plain", Metadata: json.RawMessage(`{}`),
		Blob: pgstore.Blob{SHA256: sha256.Sum256([]byte(text)), SizeBytes: int64(len(text))}, Content: []byte(text),
	}
}

// split has a file accepted and these lines of it taken in, each with its id as its text.
func (l *lab) split(file string, docs ...string) messages.Ref {
	l.t.Helper()
	sub := l.submission(file, fmt.Sprint(docs))
	sub.Split = true
	a, err := l.store.AcceptSubmit(l.t.Context(), sub)
	if err != nil {
		l.t.Fatal(err)
	}
	ref := l.ref(file, a)
	if v, err := l.store.BeginParse(l.t.Context(), ref); err != nil || !v.Split {
		l.t.Fatalf("got %+v (%v), want a version to be split", v, err)
	}
	order, n := sub.Order, messages.Lines{Total: len(docs), Accepted: len(docs)}
	for i, doc := range docs {
		line := l.submission(doc, doc)
		line.Order, line.Line = order, pgstore.Line{Parent: ref.DocKey, Version: ref.Version, Number: i + 1}
		if _, err := l.store.AcceptLines(l.t.Context(), ref, []pgstore.Submission{line}); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.store.LinesTaken(l.t.Context(), ref, n, true); err != nil {
		l.t.Fatal(err)
	}
	return ref
}

func (l *lab) ref(doc string, a pgstore.Acceptance) messages.Ref {
	return messages.Ref{
		Tenant: l.kb.Tenant, KB: l.kb.Name, KBID: l.kb.ID, Generation: l.kb.Generation.ID,
		Subspace: messages.DefaultSubspace, DocID: doc, DocKey: a.DocKey, Version: a.Version,
	}
}

// lineEnds ends the open lines with these ids.
func (l *lab) lineEnds(status messages.DocumentStatus, docs ...string) {
	l.exec(`UPDATE documents SET status = $1 WHERE doc_id = ANY($2)`, status, docs)
}

func TestAFileEndsWithTheLastOfItsLines(t *testing.T) {
	l := newLab(t)
	pub := &recorder{}
	e := lines.New(l.store, pub, testkit.Logger(t))
	pass := func(want ...string) {
		t.Helper()
		if err := e.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := pub.told(t); !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	}
	ref := l.split("f", "a", "b", "c")
	pass()
	l.lineEnds(messages.StatusReady, "a", "c")
	pass()
	l.exec(`UPDATE document_versions v SET error = '{"code":"EMPTY_DOCUMENT","message":"m"}' FROM documents d WHERE d.key = v.document_key AND d.doc_id = 'b'`)
	l.lineEnds(messages.StatusFailed, "b")
	pub.broken = true
	for range 2 {
		if err := e.Pass(t.Context()); !errors.Is(err, errBusAway) {
			t.Fatalf("got %v, want the outage", err)
		}
	}
	pub.broken = false
	// A newer version comes before the end of the older is told: both are.
	l.split("f", "a", "d")
	pass("Deleted b v2", "Deleted c v2", "Ready f v1")
	l.lineEnds(messages.StatusReady, "a", "d")
	pass("Ready f v2")
	pass()
	if n := l.count("SELECT count(*) FROM documents WHERE parent_key = $1", ref.DocKey); n != 2 || l.count("SELECT count(*) FROM split_ends") != 0 {
		t.Errorf("the file has %d lines, want 2 and nothing left to tell", n)
	}
}

func TestADeleteOfAFileEndsWithItsLines(t *testing.T) {
	l := newLab(t)
	pub := &recorder{}
	e := lines.New(l.store, pub, testkit.Logger(t))
	ref := l.split("f", "a", "b")
	l.lineEnds(messages.StatusReady, "a", "b")
	if err := e.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	pub.told(t)
	l.seq++
	order := pgstore.Order{At: time.Unix(1_700_000_000, int64(l.seq)), Seq: l.seq} //nolint:gosec // small
	a, err := l.store.DeleteDocument(t.Context(), pgstore.Deletion{KB: l.kb, Subspace: messages.DefaultSubspace, DocID: "f", Source: "del", SubmitID: "del", Order: order})
	if err != nil || a.Status != messages.StatusDeleting {
		t.Fatalf("got %+v (%v), want Deleting", a, err)
	}
	pub.broken = true
	if err := e.Pass(t.Context()); !errors.Is(err, errBusAway) { // the lines are deleted, and not told
		t.Fatalf("got %v, want the outage", err)
	}
	if d := l.document("f"); d.Status != messages.StatusDeleting {
		t.Errorf("got %s, want Deleting until everything is told", d.Status)
	}
	pub.broken = false
	if err := e.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := pub.told(t), []string{"Deleted a v2", "Deleted b v2", "Deleted f v2"}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	if n := l.count("SELECT count(*) FROM documents WHERE status <> 'Deleted' OR parent_key = $1", ref.DocKey); n != 0 {
		t.Errorf("%d documents are left", n)
	}
	if err := e.Pass(t.Context()); err != nil || len(pub.sent) != 0 {
		t.Errorf("told again: %v (%v)", pub.told(t), err)
	}
}

func TestLinesGoWithADocumentThatIsSplitNoMore(t *testing.T) {
	l := newLab(t)
	pub := &recorder{}
	e := lines.New(l.store, pub, testkit.Logger(t))
	l.split("f", "a")
	l.lineEnds(messages.StatusReady, "a")
	l.submit("f", "not split")
	pass := func(want ...string) {
		t.Helper()
		if err := e.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := pub.told(t); !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	}
	pass()
	l.lineEnds(messages.StatusFailed, "f")
	pass() // a version that failed leaves what was there before
	l.seq++
	order := pgstore.Order{At: time.Unix(1_700_000_000, int64(l.seq)), Seq: l.seq} //nolint:gosec // small
	if _, err := l.store.DeleteDocument(t.Context(), pgstore.Deletion{KB: l.kb, Subspace: messages.DefaultSubspace, DocID: "f", Source: "del", SubmitID: "del", Order: order}); err != nil {
		t.Fatal(err)
	}
	pass("Deleted a v2")
	pass()
}

// A line that is taken in while its file is overtaken would be left behind for ever.
func TestNoLineIsTakenInOnceItsFileIsOvertaken(t *testing.T) {
	l := newLab(t)
	sub := l.submission("f", "one")
	sub.Split = true
	a, err := l.store.AcceptSubmit(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	ref := l.ref("f", a)
	line := l.submission("a", "a")
	line.Order, line.Line = sub.Order, pgstore.Line{Parent: a.DocKey, Version: a.Version, Number: 1}
	l.submit("f", "two")
	if _, err := l.store.AcceptLines(t.Context(), ref, []pgstore.Submission{line}); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
	if n := l.count("SELECT count(*) FROM documents WHERE doc_id = 'a'"); n != 0 {
		t.Error("the line is there")
	}
}

// The reconciler leaves a file alone that only waits for its lines, and finds one whose message was lost.
func TestAWaitingFileIsNotTakenForLost(t *testing.T) {
	l := newLab(t)
	l.split("waiting", "a")
	l.lineEnds(messages.StatusReady, "a")
	sub := l.submission("lost", "x")
	sub.Split = true
	if _, err := l.store.AcceptSubmit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	l.exec("UPDATE documents SET updated_at = now() - interval '1 hour'")
	open, err := l.store.OpenVersions(t.Context(), 0, time.Minute, 10)
	if err != nil || len(open) != 1 || open[0].Ref.DocID != "lost" {
		t.Errorf("got %+v (%v), want the lost one alone", open, err)
	}
}

// Superseded is the end of a delete that something newer comes before; delivered again, it says no other.
func TestADeleteOfAFileThatIsOvertakenHasOneEnd(t *testing.T) {
	l := newLab(t)
	pub := &recorder{}
	e := lines.New(l.store, pub, testkit.Logger(t))
	l.split("f", "a")
	l.lineEnds(messages.StatusReady, "a")
	if err := e.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	sub := l.submission("f", "")
	del := pgstore.Deletion{KB: l.kb, Subspace: sub.Subspace, DocID: "f", Source: sub.Source, SubmitID: "del", Order: sub.Order}
	for _, when := range []string{"at first", "again"} {
		a, err := l.store.DeleteDocument(t.Context(), del)
		if err != nil || a.Outcome != pgstore.Removed || a.Status != messages.StatusDeleting {
			t.Fatalf("%s: got %+v (%v), want Deleting", when, a, err)
		}
	}
	newer, err := l.store.AcceptSubmit(t.Context(), l.submission("f", "no lines any more"))
	if err != nil || len(newer.Overtaken) != 1 || newer.Overtaken[0].SubmitID != "del" {
		t.Fatalf("got %+v (%v), want the delete overtaken", newer, err)
	}
	a, err := l.store.DeleteDocument(t.Context(), del)
	if err != nil || !a.Again || a.Status != messages.StatusDeleting {
		t.Errorf("again: got %+v (%v), want Deleting as before", a, err)
	}
	pub.told(t)
	if err := e.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := pub.told(t), []string{"Deleted a v2"}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}
