package bus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

func TestProvisionTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	changes, err := Provision(ctxOf(t), e.js, messages.Streams(), messages.Stages(), Settings{})
	if err != nil || len(changes) != 0 {
		t.Errorf("changes %q, error %v", changes, err)
	}
	if err := Check(ctxOf(t), e.js, messages.Streams(), messages.Stages()); err != nil {
		t.Error(err)
	}
}

func TestProvisionRepairsAndTells(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	ctx := ctxOf(t)
	s, err := e.js.Stream(ctx, messages.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Duplicates, cfg.Description = time.Minute, "an operator's note"
	if _, err := e.js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	if err := e.js.DeleteConsumer(ctx, messages.StreamParse, "weir-parse-5"); err != nil {
		t.Fatal(err)
	}
	changes, err := Provision(ctx, e.js, messages.Streams(), messages.Stages(), Settings{})
	if err != nil || len(changes) != 2 {
		t.Fatalf("changes %q, error %v", changes, err)
	}
	if !strings.Contains(changes[0], "duplicates 1m0s") || !strings.Contains(changes[1], "weir-parse-5") {
		t.Errorf("changes %q", changes)
	}
	if s, err = e.js.Stream(ctx, messages.StreamEvents); err != nil || s.CachedInfo().Config.Description != "an operator's note" {
		t.Errorf("the operator's note is gone, %v", err)
	}
}

func TestProvisionKeepsWhatAnOperatorChose(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	ctx := ctxOf(t)
	change := func(stream string, edit func(*jetstream.StreamConfig)) {
		t.Helper()
		cfg := e.config(stream)
		edit(&cfg)
		if _, err := e.js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	change(messages.StreamEvents, func(c *jetstream.StreamConfig) { c.MaxBytes, c.MaxAge = 2<<20, 48*time.Hour })
	change(messages.StreamDocs, func(c *jetstream.StreamConfig) { c.MaxBytes = -1 })
	consumer, err := e.js.Consumer(ctx, messages.StreamParse, "weir-parse-5")
	if err != nil {
		t.Fatal(err)
	}
	chosen := consumer.CachedInfo().Config
	chosen.AckWait, chosen.MaxAckPending = 12*time.Second, 100
	if _, err := e.js.UpdateConsumer(ctx, messages.StreamParse, chosen); err != nil {
		t.Fatal(err)
	}
	changes, err := Provision(ctx, e.js, messages.Streams(), messages.Stages(), Settings{})
	if err != nil || len(changes) != 0 {
		t.Errorf("got %q, %v, want nothing changed", changes, err)
	}
	// What the caller asks for wins.
	set := Settings{MaxBytes: 32 << 20, AckWait: 14 * time.Second}
	if _, err := Provision(ctx, e.js, messages.Streams(), messages.Stages(), set); err != nil {
		t.Fatal(err)
	}
	if docs, events := e.config(messages.StreamDocs).MaxBytes, e.config(messages.StreamEvents).MaxBytes; docs != 32<<20 || events != 2<<20 {
		t.Errorf("max bytes: got docs %d, events %d, want %d and that of before, %d", docs, events, 32<<20, 2<<20)
	}
	if consumer, err = e.js.Consumer(ctx, messages.StreamParse, "weir-parse-5"); err != nil {
		t.Fatal(err)
	}
	if got := consumer.CachedInfo().Config; got.AckWait != 14*time.Second || got.MaxAckPending != 100 {
		t.Errorf("consumer: got ack wait %s, %d pending, want 14s and 100", got.AckWait, got.MaxAckPending)
	}
}

func TestReplicasAreKeptUnlessOthersAreAskedFor(t *testing.T) {
	t.Parallel()
	s := messages.Streams()[0]
	three := streamConfig(jetstream.StreamConfig{}, s, Settings{Replicas: 3})
	for _, c := range []struct {
		name string
		base jetstream.StreamConfig
		set  Settings
		want int
	}{
		{"new", jetstream.StreamConfig{}, Settings{}, 1},
		{"new with three", jetstream.StreamConfig{}, Settings{Replicas: 3}, 3},
		{"three of before", three, Settings{}, 3},
		{"five for three", three, Settings{Replicas: 5}, 5},
		{"one for three", three, Settings{Replicas: 1}, 1},
	} {
		if got := streamConfig(c.base, s, c.set).Replicas; got != c.want {
			t.Errorf("%s: got %d replicas, want %d", c.name, got, c.want)
		}
	}
}

func (e *env) config(stream string) jetstream.StreamConfig {
	e.t.Helper()
	s, err := e.js.Stream(ctxOf(e.t), stream)
	if err != nil {
		e.t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func TestCheckNamesWhatIsMissingAndTheRemedy(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	ctx := ctxOf(t)
	check := func(what string) {
		t.Helper()
		err := Check(ctx, e.js, messages.Streams(), messages.Stages())
		if !errors.Is(err, ErrTopology) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "weir migrate") {
			t.Errorf("error %v, want one about %s", err, what)
		}
	}
	if err := e.js.DeleteConsumer(ctx, messages.StreamIndex, "weir-index-2"); err != nil {
		t.Fatal(err)
	}
	check("weir-index-2")
	s, err := e.js.Stream(ctx, messages.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.SubjectTransform = nil
	if _, err := e.js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	check(messages.StreamDocs)
	if err := e.js.DeleteStream(ctx, messages.StreamDocs); err != nil {
		t.Fatal(err)
	}
	check(messages.StreamDocs)
}

func TestSubmitsReachIntakeThroughTheirLane(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	for _, kb := range []string{"a", "b", "c", "d", "e"} {
		for _, subject := range []string{messages.SubmitSubject("t", kb), messages.DeleteSubject("t", kb)} {
			if _, err := e.js.Publish(ctxOf(t), subject, []byte("x"), jetstream.WithMsgID(subject)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := newTally()
	e.run(SubscriberConfig{Stage: messages.StageNamed(messages.StageIntake)}, func(_ context.Context, d Delivery) ([]Message, error) {
		got.add(d.Tenant + "/" + d.KB)
		return nil, nil
	})
	eventually(t, "all taken", func() bool { return e.depth(messages.StreamDocs) == 0 })
	if got.total() != 10 || got.keys() != 5 {
		t.Errorf("got %v", got.n)
	}
}
