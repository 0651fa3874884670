package chaos_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// events reads the whole event stream.
func (w *world) events() []messages.Event {
	w.t.Helper()
	ctx := w.t.Context()
	stream, err := w.js.Stream(ctx, messages.StreamEvents)
	if err != nil {
		w.t.Fatal(err)
	}
	left := stream.CachedInfo().State.Msgs
	cons, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		w.t.Fatal(err)
	}
	out := make([]messages.Event, 0, left)
	for left > 0 {
		batch, err := cons.FetchNoWait(int(min(left, 500))) //nolint:gosec // at most 500
		if err != nil {
			w.t.Fatal(err)
		}
		for m := range batch.Messages() {
			var e messages.Event
			if err := json.Unmarshal(m.Data(), &e); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, e)
			left--
		}
		if err := batch.Error(); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

// testBinary is the file of this test program.
func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
