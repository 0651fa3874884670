package stage_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/stage"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick stands for everything around the handler, and answers at once, unless read or tell say otherwise. The
// stage over the real ones is tested in the service's package.
type quick struct {
	stage.Store
	stage.Splitter
	doc     parse.Document
	version pgstore.Version
	staged  pgstore.Staging
	read    func(context.Context) error
	tell    func(context.Context) error
}

func newQuick() *quick {
	nothing := func(context.Context) error { return nil }
	q := &quick{doc: benchDocument(), read: nothing, tell: nothing}
	content := []byte(q.doc.Text)
	q.version = pgstore.Version{
		OSSKey: "handbook-17", ContentType: "text/markdown", Content: content, Blob: pgstore.Blob{SizeBytes: int64(len(content))}, Begun: true,
		Generation: pgstore.Generation{
			ID: 4, Parser: "p1", Chunking: messages.Chunking{}.WithDefaults(), Analyzer: lexical.Default,
			Space: &messages.Space{Model: "fake", Dims: 384, Metric: "cosine", PassagePrefix: "passage: "},
		},
	}
	return q
}

func (q *quick) handler() *stage.Handler { return stage.New(q, q, q, q, 1, 1<<30) }

func (q *quick) BeginParse(context.Context, messages.Ref) (pgstore.Version, error) {
	return q.version, nil
}

func (q *quick) Stage(_ context.Context, st pgstore.Staging) (int, error) {
	q.staged = st
	return 0, nil
}

func (q *quick) Parse(ctx context.Context, _ worker.Input) (parse.Document, error) {
	return q.doc, q.read(ctx)
}

func (q *quick) PublishAck(ctx context.Context, _ ...bus.Message) ([]bus.Ack, error) {
	return nil, q.tell(ctx)
}

func parseWork(t testing.TB) []byte {
	t.Helper()
	ref := messages.Ref{Tenant: "acme", KB: "manuals", KBID: 17, Generation: 4, Subspace: messages.DefaultSubspace, DocID: "handbook-17", DocKey: 99, Version: 1}
	body, err := messages.Encode(messages.ParseWork{Ref: ref, SubmitID: "WEIR_DOCS:17", Source: "17/js/1764460800123456789/17"})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// untilDone waits for the end of the context and returns its error.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTheFirstFailureOfWorkAndAnnouncementCounts(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	fails := func(context.Context) error { return failed }
	for name, change := range map[string]func(*quick){
		"the work fails": func(q *quick) { q.read, q.tell = fails, untilDone },
		"the event":      func(q *quick) { q.read, q.tell = untilDone, fails },
	} {
		q := newQuick()
		change(q)
		if _, err := q.handler().Handle(t.Context(), parseWork(t)); !errors.Is(err, failed) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v", name, err, failed)
		}
	}
}

// Whoever runs the handler turns a panic into the failure of one message: it must come out where that is called.
func TestAPanicComesOutOfTheHandler(t *testing.T) {
	t.Parallel()
	q := newQuick()
	q.read = func(context.Context) error { panic("broken") }
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err := q.handler().Handle(t.Context(), parseWork(t))
	t.Errorf("returned %v", err)
}

// The announcement runs beside the work, on a goroutine of its own.
func TestAPanicOfTheAnnouncementIsAnError(t *testing.T) {
	t.Parallel()
	q := newQuick()
	q.tell = func(context.Context) error { panic("broken") }
	_, err := q.handler().Handle(t.Context(), parseWork(t))
	if told, _ := messages.AsError(err); told == nil || told.Code != messages.CodeInternal {
		t.Errorf("got %v, want INTERNAL", err)
	}
}

func TestChunksAreHashedAsTheModelSeesThem(t *testing.T) {
	t.Parallel()
	q := newQuick()
	out, err := q.handler().Handle(t.Context(), parseWork(t))
	if err != nil || len(out) != 1 {
		t.Fatal(len(out), err)
	}
	var w messages.EmbedWork
	if err := w.UnmarshalBinary(out[0].Body); err != nil {
		t.Fatal(err)
	}
	if len(w.Chunks) != benchSections || len(q.staged.Chunks) != benchSections {
		t.Fatalf("%d chunks to embed and %d staged, want %d", len(w.Chunks), len(q.staged.Chunks), benchSections)
	}
	for i, c := range w.Chunks {
		if hash := sha256.Sum256([]byte(c.Text)); string(c.Hash) != string(hash[:]) || q.staged.Chunks[i].Hash != hash {
			t.Errorf("chunk %d: hashes %x and %x, want %x", i, c.Hash, q.staged.Chunks[i].Hash, hash)
		}
	}
}
