package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func workMessages(prefix string, n, size int) []Message {
	out := make([]Message, n)
	for i := range out {
		out[i] = Message{
			Subject: messages.WorkSubject(messages.StageParse, "t", "kb"),
			ID:      fmt.Sprintf("%s-%d", prefix, i), Body: make([]byte, size),
		}
	}
	return out
}

func TestPublishStoresMoreThanItKeepsInFlight(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	p := e.publisher(PublisherConfig{MaxInFlight: 7, MaxInFlightBytes: 3000})
	msgs := workMessages("m", 200, 1000)
	acks, err := p.PublishAck(ctxOf(t), msgs...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.PublishAck(ctxOf(t), msgs...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range acks {
		if acks[i].Duplicate || !again[i].Duplicate || acks[i].Sequence != again[i].Sequence {
			t.Fatalf("message %d: %+v, then %+v", i, acks[i], again[i])
		}
	}
	if n := e.depth(messages.StreamParse); n != 200 {
		t.Errorf("%d stored, want 200", n)
	}
	if !p.count.TryAcquire(7) || !p.bytes.TryAcquire(3000) {
		t.Error("room in flight was not given back")
	}
}

func TestWatermillPublishKeepsIDAndSubject(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	plain := message.NewMessage("uuid-1", []byte("x"))
	own := Message{Subject: messages.WorkSubject(messages.StageEmbed, "t", "kb"), ID: "own", Header: Header{"doc": "d"}, Body: []byte("y")}
	topic := messages.WorkSubject(messages.StageParse, "t", "kb")
	for range 2 {
		if err := e.pub.Publish(topic, plain, own.Watermill()); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := e.depth(messages.StreamParse), e.depth(messages.StreamEmbed); a != 1 || b != 1 {
		t.Errorf("stored %d and %d, want 1 and 1", a, b)
	}
	if err := e.pub.Close(); err != nil || !e.nc.IsConnected() {
		t.Error("Close touched the connection")
	}
}

func TestFullStreamIsBackpressureNotLoss(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{MaxBytes: 64 << 10})
	ctx := ctxOf(t)
	_, err := e.pub.PublishAck(ctx, workMessages("m", 100, 1000)...)
	if !errors.Is(err, ErrBackpressure) || ctx.Err() != nil {
		t.Fatalf("error %v, want backpressure before the context ends", err)
	}
	full := e.depth(messages.StreamParse)
	if full == 0 || full == 100 {
		t.Fatalf("%d stored", full)
	}
	seen := newTally()
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		seen.add(d.ID)
		return nil, nil
	})
	eventually(t, "the rest fits", func() bool {
		_, err := e.pub.PublishAck(ctxOf(t), workMessages("m", 100, 1000)...)
		return err == nil
	})
	eventually(t, "all done", func() bool { return e.depth(messages.StreamParse) == 0 })
	if seen.keys() != 100 || seen.total() != 100 {
		t.Errorf("%d runs of %d messages, want 100 of 100", seen.total(), seen.keys())
	}
}

func TestBackpressureOfTheNextStagePausesThisOne(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	st := messages.Streams()
	for i := range st {
		if st[i].Name == messages.StreamEmbed {
			st[i].MaxBytes = 2000
		}
	}
	if _, err := Provision(ctxOf(t), e.js, st, nil, Settings{}); err != nil {
		t.Fatal(err)
	}
	e.publish("t", "kb", "m", 10)
	e.run(SubscriberConfig{Workers: 2}, func(_ context.Context, d Delivery) ([]Message, error) {
		return []Message{{Subject: messages.WorkSubject(messages.StageEmbed, "t", "kb"), ID: d.ID, Body: make([]byte, 500)}}, nil
	})
	eventually(t, "the next stream is full", func() bool { return e.depth(messages.StreamEmbed) >= 2 })
	outs := newTally()
	e.run(SubscriberConfig{Stage: messages.StageNamed(messages.StageEmbed)}, func(_ context.Context, d Delivery) ([]Message, error) {
		outs.add(d.ID)
		return nil, nil
	})
	eventually(t, "all through", func() bool { return outs.keys() == 10 })
	if n := e.depth(messages.StreamDead); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

func TestPublishGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	eventually(t, "the reason besides the deadline", func() bool { // a busy machine may not come to it in a second
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := e.pub.PublishAck(ctx, Message{Subject: "weir.nowhere", ID: "x"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want the deadline", err)
		}
		return errors.Is(err, jetstream.ErrNoStreamResponse)
	})
	for _, m := range []Message{{Subject: "weir.work.>", ID: "x"}, {Subject: "weir.work.parse.0.t.kb"}, {Subject: "a", ID: "x", Header: Header{"a b": "c"}}} {
		if _, err := e.pub.PublishAck(ctxOf(t), m); err == nil {
			t.Errorf("%+v was published", m)
		}
	}
	big := Message{Subject: "weir.work.parse.0.t.kb", ID: "big", Body: make([]byte, 300<<10)}
	if _, err := e.pub.PublishAck(ctxOf(t), big); err == nil {
		t.Error("a message over the stream's limit was stored")
	}
}

func TestATenantPublishesWithoutRightsOnStreams(t *testing.T) {
	t.Parallel()
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		Users: []*server.User{{Username: "operator", Password: "p"}, {Username: "tenant", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"weir.docs.submit.t.*"}},
		}}},
	}
	s := startServer(t, o)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	as := func(user string) *nats.Conn { return connect(t, s.ClientURL(), nats.UserInfo(user, "p")) }
	js := testkit.JetStream(t, as("operator"))
	if _, err := Provision(ctxOf(t), js, messages.Streams()[:1], nil, Settings{MaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(as("tenant"), PublisherConfig{NoCreated: true})
	if err != nil {
		t.Fatal(err)
	}
	acks, err := p.PublishAck(ctxOf(t), Message{Subject: "weir.docs.submit.t.kb", ID: "x"})
	if err != nil || len(acks) != 1 || acks[0].Sequence != 1 || !acks[0].Created.IsZero() {
		t.Errorf("got %+v, %v, want it stored first, at an unknown age of the stream", acks, err)
	}
}

func TestForbiddenSubjectIsPermissionDenied(t *testing.T) {
	t.Parallel()
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		Users: []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"weir.>"}},
		}}},
	}
	s := startServer(t, o)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	violations := make(chan error, 10)
	nc := connect(t, s.ClientURL(), nats.UserInfo("u", "p"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))
	p, err := NewPublisher(nc, PublisherConfig{AckTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.PublishAck(ctxOf(t), Message{Subject: "weir.docs.submit.t.kb", ID: "x"}); !errors.Is(err, ErrPermission) {
		t.Errorf("publish: %v", err)
	}
	ctx := ctxOf(t)
	if err := Call(ctx, nc, "weir.rpc.t.kb.retrieve", nil, nil, nil); !errors.Is(err, ErrPermission) || ctx.Err() != nil {
		t.Errorf("call: %v, want to be told before the context ends", err)
	}
	if err := <-violations; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("surfaced %v", err)
	}
}
