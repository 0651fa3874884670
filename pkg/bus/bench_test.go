package bus

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// BenchmarkDocument takes documents of 13 KB through the four stages by handlers that only hand on, in groups
// as the services do: what is left is what the bus and its server cost. A document is seven stored messages,
// four of which are handled. Processor time tells on a busy machine what the clock cannot.
func BenchmarkDocument(b *testing.B) {
	e := newBenchEnv(b)
	ready := make(chan struct{}, 1024)
	for _, s := range benchStages() {
		e.runBench(s, ready)
	}
	body := make([]byte, 13_000)
	begin := usedCPU()
	b.ResetTimer()
	for i := range b.N {
		msg := &nats.Msg{Subject: messages.SubmitSubject("acme", "bench"), Data: body}
		if _, err := e.js.PublishMsgAsync(msg, jetstream.WithMsgID(fmt.Sprintf("submit-%d", i)), jetstream.WithStallWait(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	for range b.N {
		<-ready
	}
	b.StopTimer()
	b.ReportMetric(float64((usedCPU()-begin).Microseconds())/float64(b.N), "cpu-µs/doc")
}

// benchStage hands messages on: events first, then work of so many bytes for the next stage.
type benchStage struct {
	name, status, next string
	workers, bytes     int
	gather             time.Duration
}

func benchStages() []benchStage {
	return []benchStage{
		{messages.StageIntake, "Pending", messages.StageParse, 64, 300, 2 * time.Millisecond},
		{messages.StageParse, "Indexing", messages.StageEmbed, 16, 13_000, 2 * time.Millisecond},
		{messages.StageEmbed, "", messages.StageIndex, 32, 15_000, 2 * time.Millisecond},
		{messages.StageIndex, "Ready", "", 256, 0, 20 * time.Millisecond},
	}
}

func newBenchEnv(b *testing.B) *env {
	b.Helper()
	o := &server.Options{
		DontListen: true, JetStream: true, StoreDir: filepath.Join(b.TempDir(), "js"), NoLog: true, NoSigs: true,
		SyncInterval: 2 * time.Second, JetStreamMaxStore: 1 << 42,
	}
	e := &env{t: b, opts: o, srv: startServer(b, o)}
	b.Cleanup(func() {
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	})
	e.js, e.pub = e.benchConn()
	if _, err := Provision(ctxOf(b), e.js, messages.Streams(), messages.Stages(), Settings{}); err != nil {
		b.Fatal(err)
	}
	return e
}

// benchConn returns a connection without a socket, as all services in one process have.
func (e *env) benchConn() (jetstream.JetStream, *Publisher) {
	e.t.Helper()
	nc := connect(e.t, "", nats.InProcessServer(e.srv))
	js, err := jetstream.New(nc)
	if err != nil {
		e.t.Fatal(err)
	}
	pub, err := NewPublisher(nc, PublisherConfig{NoCreated: true})
	if err != nil {
		e.t.Fatal(err)
	}
	return js, pub
}

func (e *env) runBench(s benchStage, ready chan<- struct{}) {
	js, _ := e.benchConn()
	_, pub := e.benchConn()
	body, group := make([]byte, s.bytes), &gathering{wait: s.gather}
	r, err := NewRunner(js, pub, func(_ context.Context, d Delivery) ([]Message, error) {
		<-group.join()
		out := s.messages(d, body)
		if s.next == "" {
			ready <- struct{}{}
		}
		return out, nil
	}, SubscriberConfig{Stage: messages.StageNamed(s.name), Workers: s.workers})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("stage %s: %v", s.name, err)
		}
	})
	<-r.Running()
}

func (s benchStage) messages(d Delivery, body []byte) []Message {
	id := fmt.Sprintf("acme/1/2//doc-%d", d.Sequence)
	var out []Message
	if s.status != "" {
		out = append(out, Message{
			Subject: messages.EventSubject("acme", "bench", fmt.Sprintf("doc-%d", d.Sequence), messages.DocumentStatus(s.status)), ID: id + s.status,
			Header: Header{messages.HeaderMsgType: messages.TypeEvent}, Body: make([]byte, 300),
		})
	}
	if s.next != "" {
		out = append(out, Message{
			Subject: messages.WorkSubject(s.next, "acme", "bench"), ID: id + "/1/" + s.next + "/0/0",
			Header: Header{
				messages.HeaderMsgType: "weir.work.v1", messages.HeaderTenant: "acme", messages.HeaderKB: "bench",
				messages.HeaderKBID: "1", messages.HeaderDoc: "doc", messages.HeaderVersion: "1",
			},
			Body: body,
		})
	}
	return out
}

// gathering lets go together who joins within a time of the first.
type gathering struct {
	wait time.Duration

	mu   sync.Mutex
	open chan struct{}
}

func (g *gathering) join() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		return g.open
	}
	open := make(chan struct{})
	g.open = open
	time.AfterFunc(g.wait, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open = nil
		close(open)
	})
	return open
}

// usedCPU is the processor time of this process.
func usedCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
