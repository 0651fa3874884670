package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

func TestGateGrowsOncePerOutageAndResets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	g := &gate{now: func() time.Time { return now }}
	first := g.pause(0)
	if first < pauseMin/2 || first > pauseMin {
		t.Errorf("first pause %v", first)
	}
	for range 20 { // the others that met the same outage
		if again := g.pause(0); again > first {
			t.Errorf("pause grew to %v while shut", again)
		}
	}
	var last time.Duration
	for range 12 {
		now = now.Add(last + time.Second*61)
		last = g.pause(0)
	}
	if last < pauseMax/2 || last > pauseMax {
		t.Errorf("after a long outage %v", last)
	}
	g.succeeded() // shut: a run that began before the outage proves nothing
	if g.level == 0 {
		t.Error("reset while shut")
	}
	now = now.Add(last)
	g.succeeded()
	if g.wait() != 0 || g.level != 0 {
		t.Errorf("not reset: %v %d", g.wait(), g.level)
	}
	if d := g.pause(7 * time.Second); d != 7*time.Second {
		t.Errorf("asked for 7 s, got %v", d)
	}
	if d := g.pause(24 * time.Hour); d != pauseCap {
		t.Errorf("asked for a day, got %v", d)
	}
}

func TestBackoffStaysInItsBounds(t *testing.T) {
	t.Parallel()
	for attempt := range 200 {
		d := backoff(attempt, 10*time.Millisecond, 3*time.Second)
		if d < 5*time.Millisecond || d > 3*time.Second {
			t.Errorf("attempt %d: %v", attempt, d)
		}
	}
	if d := backoff(60, time.Second, 2*time.Second); d < time.Second {
		t.Errorf("late attempt %v", d)
	}
}

func TestTriesAreBounded(t *testing.T) {
	t.Parallel()
	tr := newTries()
	for seq := range uint64(3 * maxCounted) {
		tr.failed(seq)
		if seq%2 == 0 {
			tr.done(seq)
		}
	}
	if len(tr.count) > maxCounted || len(tr.order) > maxCounted {
		t.Errorf("holds %d and %d", len(tr.count), len(tr.order))
	}
	if tr.failed(3*maxCounted-1) != 2 {
		t.Error("a recent failure is forgotten")
	}
}

func TestErrorClasses(t *testing.T) {
	t.Parallel()
	perm := messages.Errorf(messages.CodeNoText, "x")
	for _, c := range []struct {
		err  error
		want class
	}{
		{nil, classOK},
		{perm, classPermanent},
		{fmt.Errorf("parse: %w", perm), classPermanent},
		{Pause(perm, 0), classPause},
		{fmt.Errorf("publish: %w", ErrBackpressure), classPause},
		{fmt.Errorf("%w: %w", ErrStopping, perm), classStopping},
		{ErrHandlerTimeout, classRetry},
		{context.Canceled, classRetry},
		{errors.New("anything"), classRetry},
	} {
		if got := classify(c.err); got != c.want {
			t.Errorf("%v: class %d, want %d", c.err, got, c.want)
		}
	}
	if Pause(nil, time.Second) != nil {
		t.Error("an outage without an error")
	}
}

func TestPublishErrors(t *testing.T) {
	t.Parallel()
	api := func(code int, e jetstream.ErrorCode, what string) error {
		return &jetstream.APIError{Code: code, ErrorCode: e, Description: what}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nats.ErrTimeout, "retry"},
		{nats.ErrDisconnected, "retry"},
		{jetstream.ErrNoStreamResponse, "retry"},
		{jetstream.ErrAsyncPublishTimeout, "retry"},
		{nats.ErrMaxPayload, "final"},
		{nats.ErrConnectionClosed, "final"},
		{api(400, 10054, "message size exceeds maximum allowed"), "final"},
		{api(503, 10077, "maximum messages per subject exceeded"), "full"},
		{api(503, 10077, "maximum bytes exceeded"), "full"},
		{api(503, 10077, "no space left on device"), "retry"},
		{api(503, 10023, "insufficient resources"), "full"},
		{api(500, 10047, "insufficient storage resources available"), "full"},
		{api(503, 10008, "JetStream system temporarily unavailable"), "retry"},
	} {
		retry, err := publishError(c.err)
		got := "final"
		switch {
		case retry:
			got = "retry"
		case errors.Is(err, ErrBackpressure):
			got = "full"
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// FuzzHeaders: whatever arrives is accepted as single valid values or refused with a typed error, and
// what was accepted can be published again.
func FuzzHeaders(f *testing.F) {
	f.Add("NATS/1.0\r\ndoc: a\r\nNats-Msg-Id: x\r\n\r\n")
	f.Add("NATS/1.0\r\ndoc: a\r\ndoc: b\r\n\r\n")
	f.Add("NATS/1.0 503\r\n\r\n")
	f.Add("NATS/1.0\r\n: \r\n\r\n")
	f.Add("NATS/1.0\r\nWeir-Title: %E6%96%87\r\nkb: \xff\r\ntraceparent: 00-0-0-0\r\n\r\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, raw string) {
		wire, err := nats.DecodeHeadersMsg([]byte(raw))
		if err != nil {
			wire = nats.Header{raw: {raw}, "x": nil}
		}
		pullStatus(&nats.Msg{Header: wire})
		h, id, err := decodeHeader(wire, headerLimitsOf(""))
		if err != nil {
			if _, ok := messages.AsError(err); !ok || h != nil {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for k := range h {
			if strings.HasPrefix(k, serverPrefix) {
				t.Fatalf("server header %q kept", k)
			}
		}
		if id == "" || !validValue(id) {
			id = "id"
		}
		m, err := encode(Message{Subject: "a", ID: id, Header: h}, nats.Header{})
		if err != nil {
			t.Fatalf("accepted headers %q cannot be published: %v", h, err)
		}
		back, backID, err := decodeHeader(m.Header, headerLimitsOf(""))
		if err != nil || backID != id || len(back) != len(h) {
			t.Fatalf("%q came back as %q, %v", h, back, err)
		}
	})
}

func TestLanesAreNotLookedAtWhileTheirConsumersAreLookedFor(t *testing.T) {
	t.Parallel()
	d := &dispatcher{s: &Subscriber{gate: newGate()}, lanes: []*lane{{}}}
	d.lanes[0].rest(-time.Second)
	if wait := d.untilWake(); wait != time.Millisecond {
		t.Errorf("a look in %v, want it at once", wait)
	}
	d.recovering = true
	if wait := d.untilWake(); wait != 0 {
		t.Errorf("a look in %v, want none", wait)
	}
}
