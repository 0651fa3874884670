package reconcile_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/indexer/internal/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const grace = time.Minute

// bench is a reconciler over a real bus, and one version that waits for the vector of its only chunk.
type bench struct {
	t    *testing.T
	js   jetstream.JetStream
	pub  *bus.Publisher
	rec  *reconcile.Reconciler
	ref  messages.Ref
	now  time.Time
	runs int // raised
	open pgstore.OpenVersion
}

var (
	_ reconcile.Store    = (*bench)(nil)
	_ reconcile.Finisher = (*bench)(nil)
)

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	_, connect := testkit.NATS(t)
	js := testkit.JetStream(t, connect())
	if _, err := bus.Provision(t.Context(), js, messages.Streams(), messages.Stages(), bus.Settings{}); err != nil {
		t.Fatal(err)
	}
	pub, err := bus.NewPublisher(js.Conn(), bus.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, js: js, pub: pub, now: time.Unix(1_700_000_000, 0), ref: messages.Ref{
		Tenant: "acme", KB: "docs", KBID: 1, Generation: 1, DocID: "lost", DocKey: 1, Version: 1,
	}}
	one := 1
	b.open = pgstore.OpenVersion{Status: messages.StatusIndexing, Expected: &one, Staged: 1, HasVectors: true}
	b.rec = reconcile.New(b, b, pub, js, slog.New(slog.DiscardHandler), grace)
	return b
}

func (b *bench) OpenVersions(context.Context, int64, time.Duration, int) ([]pgstore.OpenVersion, error) {
	b.open.Ref = b.ref
	return []pgstore.OpenVersion{b.open}, nil
}

func (b *bench) OpenBuilds(context.Context, int64, time.Duration, int) ([]pgstore.OpenVersion, error) {
	return nil, nil
}

func (b *bench) EmbedWork(_ context.Context, ref messages.Ref) ([]messages.EmbedWork, error) {
	return []messages.EmbedWork{{Ref: ref, Parts: 1, Chunks: []messages.EmbedChunk{{Text: "text"}}}}, nil
}

func (b *bench) RaiseRun(context.Context, messages.Ref) (int, error) {
	b.runs++
	b.ref.Run++
	return b.ref.Run, nil
}

func (b *bench) Finish(context.Context, messages.Ref, int) ([]bus.Message, error) {
	b.t.Error("a version that lacks a vector was finished")
	return nil, nil
}

// look lets the grace time pass and the reconciler look.
func (b *bench) look() {
	b.t.Helper()
	b.now = b.now.Add(grace)
	if err := b.rec.Pass(b.t.Context(), b.now); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) publish(stage, msgType string, ref messages.Ref) uint64 {
	b.t.Helper()
	msg, err := bus.Work(stage, msgType, ref, 0, ref)
	if err != nil {
		b.t.Fatal(err)
	}
	acks, err := b.pub.PublishAck(b.t.Context(), msg)
	if err != nil {
		b.t.Fatal(err)
	}
	return acks[0].Sequence
}

// remove takes a message off its stream, as an acknowledgement does.
func (b *bench) remove(stream string, seq uint64) {
	b.t.Helper()
	s, err := b.js.Stream(b.t.Context(), stream)
	if err == nil {
		err = s.DeleteMsg(b.t.Context(), seq)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// embedded publishes the version's embed message and has it acknowledged.
func (b *bench) embedded() {
	b.t.Helper()
	b.remove(messages.StreamEmbed, b.publish(messages.StageEmbed, messages.TypeEmbed, b.ref))
}

// other is the index message of another document of the knowledge base.
func (b *bench) other(key int64) uint64 {
	ref := b.ref
	ref.DocID, ref.DocKey = "other", key
	ref.Version = key
	return b.publish(messages.StageIndex, messages.TypeIndex, ref)
}

func TestALostMessageIsPublishedUnderANewID(t *testing.T) {
	b := newBench(t)
	b.embedded()
	b.look()
	if b.look(); b.runs != 1 {
		t.Errorf("runs raised: got %d, want 1", b.runs)
	}
	for range 3 { // it waits in the stream now
		b.look()
	}
	if b.runs != 1 {
		t.Errorf("runs raised while the message waits: got %d, want 1", b.runs)
	}
}

// A version that failed and is taken up again keeps what was staged, but nothing of it is committed before it is parsed.
func TestAPendingVersionIsParsedHoweverMuchOfItIsStaged(t *testing.T) {
	for name, change := range map[string]func(*pgstore.OpenVersion){
		"some vectors are missing": func(*pgstore.OpenVersion) {},
		"complete":                 func(v *pgstore.OpenVersion) { v.Vectors = 1 },
		"its chunks are lost":      func(v *pgstore.OpenVersion) { v.Staged = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.open.Status = messages.StatusPending
			change(&b.open)
			b.look()
			b.look()
			s, err := b.js.Stream(t.Context(), messages.StreamParse)
			if err != nil {
				t.Fatal(err)
			}
			if n := s.CachedInfo().State.Msgs; n != 1 {
				t.Errorf("messages to parse: got %d, want 1", n)
			}
		})
	}
}

func TestAMessageThatWaitsIsNotLost(t *testing.T) {
	b := newBench(t)
	b.publish(messages.StageEmbed, messages.TypeEmbed, b.ref)
	for range 4 {
		b.look()
	}
	if b.runs != 0 {
		t.Errorf("runs raised while the embed message waits: got %d, want none", b.runs)
	}
}

func TestVectorsThatWaitBehindOthersAreNotLost(t *testing.T) {
	b := newBench(t)
	b.embedded()
	first := b.other(2)
	b.publish(messages.StageIndex, messages.TypeIndex, b.ref)
	for key := range int64(4) {
		b.look()
		b.other(10 + key)
	}
	if b.runs != 0 {
		t.Errorf("runs raised while the vectors wait: got %d, want none", b.runs)
	}
	b.remove(messages.StreamIndex, first)
	if b.look(); b.runs != 0 {
		t.Errorf("runs raised while the vectors wait at the head: got %d, want none", b.runs)
	}
}

// A knowledge base that is fed without a pause has index messages at every moment: what is lost must be
// found all the same.
func TestSteadyTrafficDoesNotHideALoss(t *testing.T) {
	b := newBench(t)
	b.embedded()
	before := b.other(2)
	for key := range int64(5) {
		b.look()
		next := b.other(10 + key)
		b.remove(messages.StreamIndex, before)
		before = next
	}
	if b.runs != 1 {
		t.Errorf("runs raised: got %d, want 1", b.runs)
	}
}

func TestARecreatedStreamForgetsWhatWasKnownOfIt(t *testing.T) {
	b := newBench(t)
	b.embedded()
	for key := range int64(20) {
		b.other(100 + key)
	}
	b.look()
	b.look() // knows how far the index stream was
	if err := b.js.DeleteStream(t.Context(), messages.StreamIndex); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Provision(t.Context(), b.js, messages.Streams(), messages.Stages(), bus.Settings{}); err != nil {
		t.Fatal(err)
	}
	before := b.other(2)
	for key := range int64(5) {
		b.look()
		next := b.other(10 + key)
		b.remove(messages.StreamIndex, before)
		before = next
	}
	if b.runs != 1 {
		t.Errorf("runs raised: got %d, want 1", b.runs)
	}
}
