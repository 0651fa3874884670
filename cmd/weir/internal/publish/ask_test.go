package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

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
	if !s.ReadyForConnections(10 * time.Second) {
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

// answerWith serves documents_get.
func answerWith(t *testing.T, nc *nats.Conn, answer func() (any, error)) {
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
	err = svc.AddEndpoint(bus.Endpoint{
		Name: messages.OpDocGet, Subject: messages.RPCSubject("t", "*", messages.OpDocGet),
		Handler: func(context.Context, bus.Request) (any, error) { return answer() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestAMissedEventIsMadeUpForByTheStateOfTheDocument(t *testing.T) {
	t.Parallel()
	operator, tenant := tenantServer(t, true)
	began := time.Now()
	ready := func(version int64, submitted time.Time) messages.DocumentInfo {
		return messages.DocumentInfo{DocID: "d", Status: messages.StatusReady, Version: version, SubmittedAt: submitted}
	}
	missing := messages.Errorf(messages.CodeDocumentNotFound, "is not there")
	var info messages.DocumentInfo
	var failure error
	answerWith(t, operator, func() (any, error) { return info, failure })
	for _, c := range []struct {
		name string
		seen int64 // version that an event told
		info messages.DocumentInfo
		err  error
		want messages.DocumentStatus // empty: still open
	}{
		{"the version of the event is ready", 3, ready(3, began.Add(-time.Hour)), nil, messages.StatusReady},
		{"a newer version is there", 3, ready(4, began), nil, messages.StatusSuperseded},
		{"an older state answers", 3, ready(2, began), nil, ""},
		{"it was deleted", 3, messages.DocumentInfo{}, missing, messages.StatusDeleted},
		{"still indexing", 3, messages.DocumentInfo{Status: messages.StatusIndexing, Version: 3}, nil, ""},
		{"submitted after ours was sent", 0, ready(7, began.Add(time.Second)), nil, messages.StatusReady},
		{"only an old version, and no look at the stream", 0, ready(7, began.Add(-time.Minute)), nil, ""},
		{"nothing, and no look at the stream", 0, messages.DocumentInfo{}, missing, ""},
	} {
		var results []Result
		p, err := New(tenant, Config{Tenant: "t", KB: "kb", OnResult: func(r Result) { results = append(results, r) }})
		if err != nil {
			t.Fatal(err)
		}
		p.blind = true // the refusal itself is tested below
		info, failure = c.info, c.err
		s := p.track.add("id", Item{Submit: messages.Submit{DocID: "d"}})
		s.began, s.seq, s.version = began, 1, c.seen
		p.askFor(t.Context(), *s)
		got := messages.DocumentStatus("")
		if len(results) > 0 {
			got = results[0].Status
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestARefusedLookAtTheStreamIsToldOnce(t *testing.T) {
	t.Parallel()
	_, tenant := tenantServer(t, true)
	var notes []string
	p, err := New(tenant, Config{Tenant: "t", KB: "kb", OnNote: func(n string) { notes = append(notes, n) }})
	if err != nil {
		t.Fatal(err)
	}
	if p.taken(t.Context(), 1) || p.taken(t.Context(), 2) || len(notes) != 1 {
		t.Errorf("got notes %q, want one", notes)
	}
}

func TestRefusedEventsAreAPermission(t *testing.T) {
	t.Parallel()
	operator, tenant := tenantServer(t, false)
	if _, err := Watch(tenant, "t", "kb", func(messages.Event) {}); !errors.Is(err, bus.ErrPermission) {
		t.Errorf("got %v, want permission denied", err)
	}
	stop, err := Watch(operator, "t", "kb", func(messages.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	stop()
}
