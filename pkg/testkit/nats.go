package testkit

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/service/embednats"
)

// plentyOfStore lets every stream reserve its maximum, whatever the disk of the test machine.
const plentyOfStore = 1 << 42

// Connect opens one more connection to a test's server. It is closed when the test ends.
type Connect func(opts ...nats.Option) *nats.Conn

// NATS starts a server without a socket, with JetStream in a directory of the test, and returns it with
// the way to connect. Both end with the test.
func NATS(t testing.TB) (*server.Server, Connect) {
	t.Helper()
	s := startNATS(t, embednats.Config{DontListen: true})
	return s.Raw(), func(opts ...nats.Option) *nats.Conn {
		t.Helper()
		return connect(t, "", append([]nats.Option{s.InProcess()}, opts...))
	}
}

// NATSListening is NATS on a free port of 127.0.0.1, for tests whose clients are processes of their
// own: the URL is ClientURL() of the server.
func NATSListening(t testing.TB) (*server.Server, Connect) {
	t.Helper()
	s := startNATS(t, embednats.Config{Port: server.RANDOM_PORT})
	return s.Raw(), func(opts ...nats.Option) *nats.Conn {
		t.Helper()
		return connect(t, s.URL(), opts)
	}
}

// JetStream returns a handle on a connection.
func JetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func startNATS(t testing.TB, cfg embednats.Config) *embednats.Server {
	t.Helper()
	cfg.Dir, cfg.MaxStoreBytes = t.TempDir(), plentyOfStore
	s, err := embednats.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func connect(t testing.TB, url string, opts []nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatalf("connect to test nats: %v", err)
	}
	t.Cleanup(func() {
		closed := nc.StatusChanged(nats.CLOSED)
		if nc.IsClosed() {
			return
		}
		nc.Close()
		<-closed
	})
	return nc
}
