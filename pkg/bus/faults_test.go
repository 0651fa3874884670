package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestFaultsLoseAndDoubleNothing(t *testing.T) {
	faults := map[string]func(*env){
		"connection cut": func(e *env) {
			if err := e.nc.ForceReconnect(); err != nil {
				e.t.Error(err)
			}
		},
		"server restart": func(e *env) {
			e.srv.Shutdown()
			e.srv.WaitForShutdown()
			e.srv = startServer(e.t, e.opts)
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, Settings{AckWait: 2 * time.Second})
			e.pub = e.publisher(PublisherConfig{AckTimeout: time.Second})
			const publishers, batches, size, breaks = 4, 25, 40, 4
			seen := newTally()
			e.run(SubscriberConfig{Workers: 8, WatchWait: time.Second}, func(_ context.Context, d Delivery) ([]Message, error) {
				seen.add(d.ID)
				return []Message{{Subject: messages.WorkSubject(messages.StageEmbed, "t", "kb"), ID: "out-" + d.ID}}, nil
			})
			var wg sync.WaitGroup
			for p := range publishers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for b := range batches {
						msgs := workMessages(fmt.Sprintf("m-%d-%d", p, b), size, 1000)
						if _, err := e.pub.PublishAck(ctxOf(t), msgs...); err != nil {
							t.Error(err)
						}
					}
				}()
			}
			for i := range breaks {
				at := (i + 1) * publishers * batches * size / (breaks + 2)
				eventually(t, "progress", func() bool { return seen.keys() > at })
				fault(e)
			}
			wg.Wait()
			const all = publishers * batches * size
			eventually(t, "all handled", func() bool {
				return seen.keys() == all && messagesIn(e.js, messages.StreamParse) == 0
			})
			if n := e.depth(messages.StreamEmbed); n != all {
				t.Errorf("%d outputs stored, want %d", n, all)
			}
			t.Logf("extra deliveries %d", seen.total()-seen.keys())
		})
	}
}

func TestAStageThatStartsDuringAnOutageWaitsForItsEnd(t *testing.T) {
	e := newEnv(t, Settings{})
	var err error
	if e.js, err = jetstream.New(e.nc, jetstream.WithDefaultTimeout(200*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	e.srv.Shutdown()
	e.srv.WaitForShutdown()
	seen, failures := newTally(), make(chan struct{}, 100)
	run := e.run(SubscriberConfig{Telemetry: Telemetry{Log: slog.New(countWarnings{failures})}}, func(_ context.Context, d Delivery) ([]Message, error) {
		seen.add(d.ID)
		return nil, nil
	})
	for range 2 { // tries that failed
		select {
		case <-failures:
		case err := <-run.err:
			t.Fatalf("the stage ended: %v", err)
		case <-time.After(testkit.Patience):
			t.Fatal("the stage does not look for its consumers")
		}
	}
	e.srv = startServer(t, e.opts)
	e.publish("t", "kb", "m", 1)
	eventually(t, "the message handled", func() bool { return seen.keys() == 1 })
}

// countWarnings is a log that tells of warnings.
type countWarnings struct{ c chan struct{} }

func (countWarnings) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (w countWarnings) Handle(context.Context, slog.Record) error {
	select {
	case w.c <- struct{}{}:
	default:
	}
	return nil
}

func (w countWarnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w countWarnings) WithGroup(string) slog.Handler      { return w }
