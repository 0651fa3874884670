package bus

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
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
				eventually(t, 40*time.Second, "progress", func() bool { return seen.keys() > at })
				fault(e)
			}
			wg.Wait()
			const all = publishers * batches * size
			eventually(t, 40*time.Second, "all handled", func() bool {
				return seen.keys() == all && messagesIn(e.js, messages.StreamParse) == 0
			})
			if n := messagesIn(e.js, messages.StreamEmbed); n != all {
				t.Errorf("%d outputs stored, want %d", n, all)
			}
			t.Logf("extra deliveries %d", seen.total()-seen.keys())
		})
	}
}
