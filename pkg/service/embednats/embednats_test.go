package embednats_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/service/embednats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg embednats.Config) *embednats.Server {
	t.Helper()
	s, err := embednats.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func TestAPasswordIsAskedFor(t *testing.T) {
	t.Parallel()
	s := start(t, embednats.Config{Dir: t.TempDir(), Port: -1, User: "weir", Password: "p@ss/word"})
	if nc, err := nats.Connect("nats://127.0.0.1:" + strconv.Itoa(s.Port())); err == nil {
		nc.Close()
		t.Error("a client without password got in")
	}
	for name, connect := range map[string]func() (*nats.Conn, error){
		"by url":     func() (*nats.Conn, error) { return nats.Connect(s.URL()) },
		"in process": func() (*nats.Conn, error) { return nats.Connect("", s.InProcess()) },
	} {
		nc, err := connect()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		nc.Close()
	}
}

func TestAPortInUseIsAnErrorWhenItWasAskedFor(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if s, err := embednats.Start(t.Context(), embednats.Config{Dir: t.TempDir(), Port: port}); err == nil {
		s.Stop()
		t.Error("started on a port in use")
	}
}

func TestMessagesSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embednats.Config{Dir: dir, Port: -1})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	s.Stop()

	again := start(t, embednats.Config{Dir: dir, DontListen: true})
	nc2, err := nats.Connect("", again.InProcess())
	if err != nil {
		t.Fatal(err)
	}
	defer nc2.Close()
	js2, err := jetstream.New(nc2)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js2.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 1 {
		t.Errorf("messages: got %d, want 1", got)
	}
}
