package bus

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// host is one of a stage and an endpoint, and a channel that is closed when it is ready.
func (e *env) host(handle Handler, subject string) (Host, <-chan struct{}) {
	e.t.Helper()
	r, err := NewRunner(e.js, e.pub, handle, SubscriberConfig{Stage: parseStage(), Workers: 1, DrainTimeout: testkit.Patience})
	if err != nil {
		e.t.Fatal(err)
	}
	ready := make(chan struct{})
	return Host{
		Runners: []*Runner{r}, Requests: e.nc, Info: ServiceInfo{Name: "weir-test", Version: "1.0.0"}, DrainTimeout: testkit.Patience,
		Endpoints: []Endpoint{{Name: "echo", Subject: subject, Handler: func(context.Context, Request) (any, error) { return "there", nil }}},
		Ready:     func() { close(ready) },
	}, ready
}

// hostEnds waits for the end of Run.
func hostEnds(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(testkit.Patience):
		t.Fatal("it does not end")
		return nil
	}
}

// hostRuns runs a host until it is ready. stop stops it and returns how it ended.
func hostRuns(t *testing.T, h Host, ready <-chan struct{}) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctxOf(t))
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	}
	return func() error {
		cancel()
		return hostEnds(t, done)
	}
}

func TestAHostIsReadyWhenAllIsServedAndStopsCleanly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	runs := newTally()
	h, ready := e.host(func(_ context.Context, d Delivery) ([]Message, error) {
		runs.add(d.ID)
		return nil, nil
	}, "test.echo")
	stop := hostRuns(t, h, ready)
	var got string
	if err := (Client{NC: e.connect(), RetryFor: testkit.Patience}).Call(ctxOf(t), "test.echo", nil, nil, &got); err != nil || got != "there" {
		t.Errorf("got %q (%v)", got, err)
	}
	e.publish("t", "kb", "m", 3)
	eventually(t, "all messages are handled", func() bool { return runs.keys() == 3 })
	if err := stop(); err != nil {
		t.Errorf("got %v, want a clean stop", err)
	}
}

func TestAHostEndsWithWhatCannotBeServed(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	idle := func(context.Context, Delivery) ([]Message, error) { return nil, nil }
	h, ready := e.host(idle, "not a subject")
	done := make(chan error, 1)
	go func() { done <- h.Run(ctxOf(t)) }()
	if err := hostEnds(t, done); err == nil {
		t.Error("an endpoint on no subject: got no error")
	}
	if err := e.js.DeleteConsumer(ctxOf(t), messages.StreamParse, "weir-parse-5"); err != nil {
		t.Fatal(err)
	}
	h, _ = e.host(idle, "test.echo")
	go func() { done <- h.Run(ctxOf(t)) }()
	if err := hostEnds(t, done); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("without a consumer: got %v", err)
	}
	select {
	case <-ready:
		t.Error("it was ready")
	default:
	}
}

func TestAHostThatIsStoppedWhileStartingStopsCleanly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	h, _ := e.host(func(context.Context, Delivery) ([]Message, error) { return nil, nil }, "test.echo")
	ctx, stop := context.WithCancel(ctxOf(t))
	stop()
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	if err := hostEnds(t, done); err != nil {
		t.Errorf("got %v", err)
	}
}

// losingProxy is a way to the server on which the first connection is lost at its second ping: the first is of the
// handshake, the second of a flush.
func losingProxy(t *testing.T, server string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // ends the loop
	go func() {
		for first := true; ; first = false {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			both := func() { _, _ = client.Close(), upstream.Close() }
			go func() { _, _ = io.Copy(client, upstream); both() }()
			go func() {
				defer both()
				in, pings := bufio.NewReader(client), 0
				for {
					line, err := in.ReadBytes('\n')
					if string(line) == "PING\r\n" {
						pings++
					}
					if err != nil || first && pings == 2 {
						return
					}
					if _, err := upstream.Write(line); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

func TestAHostOutlastsAConnectionThatIsLostWhileItStarts(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	h, ready := e.host(func(context.Context, Delivery) ([]Message, error) { return nil, nil }, "test.echo")
	h.Requests = connect(t, losingProxy(t, e.srv.Addr().String()))
	stop := hostRuns(t, h, ready)
	if n := h.Requests.Stats().Reconnects; n == 0 {
		t.Error("the connection was not lost")
	}
	var got string
	if err := (Client{NC: e.connect()}).Call(ctxOf(t), "test.echo", nil, nil, &got); err != nil || got != "there" {
		t.Errorf("got %q (%v)", got, err)
	}
	if err := stop(); err != nil {
		t.Errorf("got %v, want a clean stop", err)
	}
}
