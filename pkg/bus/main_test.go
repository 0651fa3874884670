package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(memberEnv); spec != "" {
		os.Exit(serveMember(spec))
	}
	goleak.VerifyTestMain(m)
}

// env is a server with every stream and a connection to it.
type env struct {
	t    testing.TB
	opts *server.Options
	srv  *server.Server
	nc   *nats.Conn
	js   jetstream.JetStream
	pub  *Publisher
}

func startServer(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(testkit.Patience) {
		t.Fatal("server does not start")
	}
	return s
}

// newEnv starts a server with all streams. Where a test sets no ack wait, it outlasts every other wait: a message
// that is stranded does not come by itself.
func newEnv(t testing.TB, set Settings) *env {
	t.Helper()
	if set.AckWait == 0 {
		set.AckWait = 10 * testkit.Patience
	}
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "js"), NoLog: true, NoSigs: true}
	e := &env{t: t, opts: o, srv: startServer(t, o)}
	t.Cleanup(func() {
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	})
	e.opts.Port = e.srv.Addr().(*net.TCPAddr).Port
	e.nc = e.connect()
	e.js = testkit.JetStream(t, e.nc)
	if _, err := Provision(ctxOf(t), e.js, messages.Streams(), messages.Stages(), set); err != nil {
		t.Fatal(err)
	}
	e.pub = e.publisher(PublisherConfig{})
	return e
}

func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (e *env) connect() *nats.Conn {
	e.t.Helper()
	return connect(e.t, fmt.Sprintf("nats://127.0.0.1:%d", e.opts.Port))
}

// connect returns a connection like those of services, with other options besides.
func connect(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := service.OpenNATS(ctxOf(t), service.NATSConfig{URL: service.SecretURL(url), Name: "test", Wait: 30 * time.Second, Options: opts}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func (e *env) publisher(cfg PublisherConfig) *Publisher {
	e.t.Helper()
	p, err := NewPublisher(e.nc, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return p
}

// publish stores messages of ids first, first+1, … for the stage parse.
func (e *env) publish(tenant, kb, prefix string, n int) []Ack {
	e.t.Helper()
	msgs := make([]Message, n)
	for i := range msgs {
		msgs[i] = Message{
			Subject: messages.WorkSubject(messages.StageParse, tenant, kb),
			ID:      fmt.Sprintf("%s-%d", prefix, i), Body: []byte(prefix),
		}
	}
	acks, err := e.pub.PublishAck(ctxOf(e.t), msgs...)
	if err != nil {
		e.t.Fatal(err)
	}
	return acks
}

// parseStage is the stage parse with short times.
func parseStage() messages.Stage {
	st := messages.StageNamed(messages.StageParse)
	st.MaxTries, st.Timeout = 3, 10*time.Second
	st.BackoffMin, st.BackoffMax = 20*time.Millisecond, 100*time.Millisecond
	return st
}

// running is a runner under way.
type running struct {
	stop context.CancelFunc
	err  chan error
}

func (e *env) run(cfg SubscriberConfig, h Handler) *running {
	e.t.Helper()
	if cfg.Stage.Name == "" {
		cfg.Stage = parseStage()
	}
	r, err := NewRunner(e.js, e.pub, h, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{stop: cancel, err: make(chan error, 1)}
	go func() { run.err <- r.Run(ctx) }()
	e.t.Cleanup(func() { run.halt(e.t) })
	return run
}

// halt stops the runner and returns its error; a second call is harmless.
func (r *running) halt(t testing.TB) error {
	t.Helper()
	r.stop()
	select {
	case err := <-r.err:
		r.err <- err
		return err
	case <-time.After(testkit.Patience):
		t.Fatal("the runner does not stop")
		return nil
	}
}

// eventually waits until cond is true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Eventually(t, func() error {
		if !cond() {
			return errors.New(what)
		}
		return nil
	})
}

// depth is how many messages a stream holds.
func (e *env) depth(stream string) int {
	e.t.Helper()
	s, err := e.js.Stream(ctxOf(e.t), stream)
	if err != nil {
		e.t.Fatal(err)
	}
	return int(s.CachedInfo().State.Msgs)
}

// deadLetters returns what the dead-letter stream holds.
func (e *env) deadLetters() []*jetstream.RawStreamMsg {
	e.t.Helper()
	s, err := e.js.Stream(ctxOf(e.t), messages.StreamDead)
	if err != nil {
		e.t.Fatal(err)
	}
	var out []*jetstream.RawStreamMsg
	state := s.CachedInfo().State
	for seq := state.FirstSeq; state.Msgs > 0 && seq <= state.LastSeq; seq++ {
		if m, err := s.GetMsg(ctxOf(e.t), seq); err == nil {
			out = append(out, m)
		}
	}
	return out
}

// tally counts by key.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

func (t *tally) add(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[key]++
	return t.n[key]
}

func (t *tally) keys() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.n)
}

func (t *tally) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, v := range t.n {
		n += v
	}
	return n
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
