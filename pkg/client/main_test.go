package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testkit.UploadLeak()) }

// bench is a server with the streams, and a client of the tenant t.
type bench struct {
	t       *testing.T
	connect testkit.Connect
	nc      *nats.Conn // of the stand-ins for services
	js      jetstream.JetStream
	c       *Client
}

func newBench(t *testing.T, opts Options) *bench {
	t.Helper()
	_, connect := testkit.NATS(t)
	b := &bench{t: t, connect: connect, nc: connect()}
	b.js = testkit.JetStream(t, b.nc)
	if _, err := bus.Provision(t.Context(), b.js, messages.Streams(), messages.Stages(), bus.Settings{MemoryStorage: true}); err != nil {
		t.Fatal(err)
	}
	b.c = b.client(opts)
	return b
}

func (b *bench) client(opts Options) *Client {
	b.t.Helper()
	c, err := New(b.connect(), "t", opts)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// serve answers an operation of every scope of the tenant.
func serve(t *testing.T, nc *nats.Conn, op string, handle func(context.Context, bus.Request) (any, error)) {
	t.Helper()
	svc, err := bus.NewService(nc, bus.ServiceInfo{Name: "stand-in", Version: "0.0.1"}, bus.ServiceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := svc.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := svc.AddEndpoint(bus.Endpoint{Name: op, Subject: messages.RPCSubject("t", "*", op), Handler: handle}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// tenantServer has a user that may do what a tenant's publisher may: no look into streams.
func tenantServer(t *testing.T, events bool) (operator, tenant *nats.Conn) {
	t.Helper()
	listen := []string{"_INBOX.>"}
	if events {
		listen = append(listen, "weir.events.t.>")
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		Users: []*server.User{{Username: "operator", Password: "p"}, {Username: "tenant", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"weir.docs.submit.t.*", "weir.rpc.t.>"}},
			Subscribe: &server.SubjectPermission{Allow: listen},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not start")
	}
	as := func(user string) *nats.Conn {
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(user, "p"))
		if err != nil {
			t.Fatal(err)
		}
		closed := nc.StatusChanged(nats.CLOSED)
		t.Cleanup(func() { nc.Close(); <-closed })
		return nc
	}
	return as("operator"), as("tenant")
}

// within is a context that ends a test which waits for what does not come.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// wantCode checks that an error is of the service's kind.
func wantCode(t *testing.T, what string, err error, code messages.Code, field string) {
	t.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Errorf("%s: got %v, want %s of %q", what, err, code, field)
	}
}
