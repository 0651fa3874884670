package bus

import (
	"context"
	"errors"
	"strings"
	"testing"

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
	cfg.MaxBytes, cfg.Description = 1<<20, "an operator's note"
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
	if !strings.Contains(changes[0], "max bytes 1048576") || !strings.Contains(changes[1], "weir-parse-5") {
		t.Errorf("changes %q", changes)
	}
	if s, err = e.js.Stream(ctx, messages.StreamEvents); err != nil || s.CachedInfo().Config.Description != "an operator's note" {
		t.Errorf("the operator's note is gone, %v", err)
	}
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
	eventually(t, 10e9, "all taken", func() bool { return e.depth(messages.StreamDocs) == 0 })
	if got.total() != 10 || got.keys() != 5 {
		t.Errorf("got %v", got.n)
	}
}
