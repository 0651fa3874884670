package embedder_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/embedder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a running embedder with its NATS server and embedding server.
type world struct {
	t    *testing.T
	fake *fakeserver.Server
	nc   *nats.Conn
	js   jetstream.JetStream
	pub  *bus.Publisher
}

// start runs an embedder against a fake server; change may alter its configuration.
func start(t *testing.T, opts fakeserver.Options, change func(*embedder.Config)) *world {
	t.Helper()
	w := prepare(t, opts)
	cfg := embedder.DefaultConfig()
	cfg.DrainTimeout = 2 * time.Second
	srv := httptest.NewServer(w.fake)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	cfg.BaseURL = srv.URL + "/v1"
	if change != nil {
		change(&cfg)
	}
	w.run(cfg)
	return w
}

func prepare(t *testing.T, opts fakeserver.Options) *world {
	t.Helper()
	_, connect := testkit.NATS(t)
	w := &world{t: t, fake: fakeserver.New(opts), nc: connect()}
	var err error
	w.js = testkit.JetStream(t, w.nc)
	if _, err = bus.Provision(t.Context(), w.js, messages.Streams(), messages.Stages(), bus.Settings{MemoryStorage: true}); err != nil {
		t.Fatal(err)
	}
	if w.pub, err = bus.NewPublisher(w.nc, bus.PublisherConfig{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// run starts the service, waits until it serves and stops it at the test's end.
func (w *world) run(cfg embedder.Config) {
	w.t.Helper()
	ready := make(chan struct{})
	stage := messages.StageNamed(messages.StageEmbed)
	stage.MaxTries, stage.BackoffMin, stage.BackoffMax = 3, 10*time.Millisecond, 50*time.Millisecond
	svc, err := embedder.New(cfg, embedder.Deps{
		Lent: service.Lent{JS: w.js, Logger: testkit.Logger(w.t), Ready: func() { close(ready) }}, Stage: &stage,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var runErr error
	wg.Go(func() { runErr = svc.Run(ctx) })
	w.t.Cleanup(func() {
		cancel()
		wg.Wait()
		if runErr != nil {
			w.t.Errorf("run ended with %v", runErr)
		}
	})
	select {
	case <-ready:
	case <-time.After(testkit.Patience):
		w.t.Fatal("the embedder does not get ready")
	}
}

func message(doc string, texts ...string) messages.EmbedWork {
	in := messages.EmbedWork{
		Ref:   messages.Ref{Tenant: "acme", KB: "docs", KBID: 7, Generation: 1, DocID: doc, DocKey: 9, Version: 1},
		Space: messages.Space(embedding.DefaultSpace()), Parts: 1,
	}
	for i, text := range texts {
		hash := embedding.Hash(text)
		in.Chunks = append(in.Chunks, messages.EmbedChunk{Ordinal: i, Hash: hash[:], Text: text})
	}
	return in
}

func (w *world) publish(all ...messages.EmbedWork) {
	w.t.Helper()
	for _, in := range all {
		body, err := messages.Encode(in)
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = w.pub.PublishAck(w.t.Context(), bus.Message{
			Subject: messages.WorkSubject(messages.StageEmbed, in.Tenant, in.KB), ID: in.Ref.MsgID(messages.StageEmbed, in.Part), Body: body,
			Header: bus.Header{
				messages.HeaderMsgType: messages.TypeEmbed, messages.HeaderTenant: in.Tenant, messages.HeaderKB: in.KB,
				messages.HeaderDoc: in.DocID, messages.HeaderVersion: "1",
			},
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// stored waits until a stream holds n messages and returns them.
func (w *world) stored(stream string, n int) []*jetstream.RawStreamMsg {
	w.t.Helper()
	s, err := w.js.Stream(w.t.Context(), stream)
	if err != nil {
		w.t.Fatal(err)
	}
	testkit.Eventually(w.t, func() error {
		info, err := s.Info(w.t.Context())
		if err == nil && info.State.Msgs != uint64(n) {
			err = fmt.Errorf("%s holds %d messages, want %d", stream, info.State.Msgs, n)
		}
		return err
	})
	out := make([]*jetstream.RawStreamMsg, 0, n)
	for seq := uint64(1); len(out) < n; seq++ {
		m, err := s.GetMsg(w.t.Context(), seq)
		if err != nil {
			w.t.Fatalf("message %d of %s: %v", seq, stream, err)
		}
		out = append(out, m)
	}
	return out
}

func answer(t *testing.T, m *jetstream.RawStreamMsg) messages.IndexWork {
	t.Helper()
	var out messages.IndexWork
	if err := out.UnmarshalBinary(m.Data); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOneIndexMessageForEachEmbedMessage(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{}, nil)
	in := message("guide/1", "passage: one", "passage: two", "passage: 三")
	in.Part, in.Parts = 4, 6
	w.publish(in, message("other", "passage: x"))
	var got []messages.IndexWork
	for _, m := range w.stored(messages.StreamIndex, 2) {
		if m.Subject != messages.WorkSubject(messages.StageIndex, "acme", "docs") || m.Header.Get(messages.HeaderMsgType) != messages.TypeIndex {
			t.Errorf("subject %s, type %s", m.Subject, m.Header.Get(messages.HeaderMsgType))
		}
		if out := answer(t, m); out.DocID == in.DocID {
			got = append(got, out)
			if id := m.Header.Get(messages.HeaderMsgID); id != in.Ref.MsgID(messages.StageIndex, 4) {
				t.Errorf("message id %s", id)
			}
		}
	}
	if len(got) != 1 || got[0].Ref != in.Ref || got[0].Part != 4 || got[0].Parts != 6 || len(got[0].Vectors) != 3 || got[0].Tokens == 0 {
		t.Fatalf("got %+v", got)
	}
	for i, v := range got[0].Vectors {
		if want := embedding.EncodeVector(embedding.Fake{}.Vector(in.Chunks[i].Text)); v.Ordinal != i || string(v.Vector) != string(want) {
			t.Errorf("vector %d is not the text's", i)
		}
	}
	w.stored(messages.StreamEmbed, 0)
}

func TestThrottledWorkIsDelayedNotCounted(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{}, nil)
	w.fake.Enqueue( // more refusals than a message has tries; the last one is longer than a message waits by itself
		fakeserver.Fault{Status: 429, RetryAfter: "0.1"}, fakeserver.Fault{Status: 429, RetryAfter: "0.1"},
		fakeserver.Fault{Status: 429, RetryAfter: "0.1"}, fakeserver.Fault{Status: 429, RetryAfter: "0.1"},
		fakeserver.Fault{Status: 429, RetryAfter: "2.5"})
	started := time.Now()
	w.publish(message("a", "passage: one"), message("b", "passage: two"))
	for _, m := range w.stored(messages.StreamIndex, 2) {
		answer(t, m)
	}
	if took := time.Since(started); took < 2500*time.Millisecond {
		t.Errorf("took %v, the server asked for 2.5 s and more", took)
	}
	w.stored(messages.StreamDead, 0)
}

func TestOutageBurnsNoTry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault fakeserver.Fault
		lasts time.Duration
	}{
		"500":             {fakeserver.Fault{Status: 500}, 3 * time.Second},
		"dropped":         {fakeserver.Fault{Drop: true}, time.Second},
		"key refused":     {fakeserver.Fault{Status: 401}, time.Second},
		"quota exhausted": {fakeserver.Fault{Status: 429, Code: "insufficient_quota"}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, fakeserver.Options{}, nil)
			before := w.fake.Requests()
			w.fake.Always(&c.fault)
			w.publish(message("a", "passage: one"), message("b", "passage: two"))
			end := time.Now().Add(c.lasts)
			testkit.Eventually(t, func() error {
				if n := w.fake.Requests() - before; n < 4 || time.Now().Before(end) {
					return fmt.Errorf("%d requests met the outage", n)
				}
				return nil
			})
			w.stored(messages.StreamEmbed, 2)
			w.fake.Always(nil)
			w.stored(messages.StreamIndex, 2)
			w.stored(messages.StreamDead, 0)
		})
	}
}

func TestPoisonedTextFailsItsMessageOnly(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{Poison: "poison"}, nil)
	w.publish(message("good", "passage: one", "passage: two"), message("bad", "passage: fine", "passage: poison", "passage: fine too"),
		message("also-good", "passage: three"))
	w.stored(messages.StreamIndex, 2)
	h := w.stored(messages.StreamDead, 1)[0].Header
	if got := h.Get(messages.HeaderDeadCode); got != string(messages.CodeEmbeddingRejected) {
		t.Errorf("code %s", got)
	}
	if got := h.Get(messages.HeaderDeadReason); !strings.Contains(got, "chunk 1") {
		t.Errorf("the reason %q does not name chunk 1", got)
	}
	if h.Get(messages.HeaderDeadStage) != messages.StageEmbed || h.Get(messages.HeaderDoc) != "bad" {
		t.Errorf("headers %v", h)
	}
}

func TestFragileTextIsTriedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{Fragile: "fragile"}, nil)
	w.publish(message("bad", "passage: fragile"), message("good", "passage: one"))
	w.stored(messages.StreamIndex, 1)
	h := w.stored(messages.StreamDead, 1)[0].Header
	if got := h.Get(messages.HeaderDeadCode); got != string(messages.CodeDeliveriesExhausted) {
		t.Errorf("code %s, reason %s", got, h.Get(messages.HeaderDeadReason))
	}
}

func TestWrongDimensionIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{Dims: 512}, func(c *embedder.Config) { c.Dims = 512 })
	w.publish(message("a", "passage: one")) // of a space of 384
	h := w.stored(messages.StreamDead, 1)[0].Header
	if got := h.Get(messages.HeaderDeadCode); got != string(messages.CodeDimensionMismatch) {
		t.Errorf("code %s", got)
	}
	w.stored(messages.StreamIndex, 0)
}

func TestBadMessagesAreDeadLetters(t *testing.T) {
	t.Parallel()
	w := start(t, fakeserver.Options{}, nil)
	stranger := message("a", "passage: one")
	stranger.KB = "others"
	body, _ := messages.Encode(stranger)
	for i, data := range [][]byte{[]byte("{"), body} {
		_, err := w.pub.PublishAck(t.Context(), bus.Message{
			Subject: messages.WorkSubject(messages.StageEmbed, "acme", "docs"), ID: fmt.Sprint(i), Body: data,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range w.stored(messages.StreamDead, 2) {
		if got := m.Header.Get(messages.HeaderDeadCode); got != string(messages.CodeValidation) {
			t.Errorf("code %s", got)
		}
	}
}

func TestRunRefusesAWrongDimension(t *testing.T) {
	t.Parallel()
	w := prepare(t, fakeserver.Options{Dims: 100})
	srv := httptest.NewServer(w.fake)
	defer srv.Close()
	cfg := embedder.DefaultConfig()
	cfg.BaseURL = srv.URL + "/v1"
	svc, err := embedder.New(cfg, embedder.Deps{Lent: service.Lent{JS: w.js}})
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "100") {
		t.Errorf("got %v, want the dimension named", err)
	}
}

func TestRunRefusesMissingStreams(t *testing.T) {
	t.Parallel()
	w := prepare(t, fakeserver.Options{})
	if err := w.js.DeleteStream(t.Context(), messages.StreamIndex); err != nil {
		t.Fatal(err)
	}
	cfg := embedder.DefaultConfig()
	cfg.BaseURL = "http://127.0.0.1:1/v1"
	svc, err := embedder.New(cfg, embedder.Deps{Lent: service.Lent{JS: w.js}})
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.Run(t.Context()); err == nil || !strings.Contains(err.Error(), messages.StreamIndex) {
		t.Errorf("got %v, want the stream named", err)
	}
}
