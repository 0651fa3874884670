package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// events reads the events of a knowledge base, or of all with "*", as they are stored from now on.
type events struct {
	t    testing.TB
	s    *system
	cons jetstream.Consumer
	seen map[string][]messages.Event // by submit
	last map[string]string           // subject of a submit's last event
}

func (s *system) watch(kb string) *events {
	s.t.Helper()
	// Not an ordered one: those begin only with the first message that is asked for.
	cons, err := s.js.CreateConsumer(s.t.Context(), messages.StreamEvents, jetstream.ConsumerConfig{
		FilterSubject: s.eventsOf(kb), DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
		InactiveThreshold: 2 * testkit.Patience,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return &events{s.t, s, cons, map[string][]messages.Event{}, map[string]string{}}
}

func (s *system) eventsOf(kb string) string {
	return messages.SubjectEvents + "." + s.tenant + "." + kb + ".>"
}

// next takes in one more event; false when none came for a moment.
func (e *events) next() (messages.Event, bool) {
	e.t.Helper()
	var ev messages.Event
	msg, err := e.cons.Next(jetstream.FetchMaxWait(2 * time.Second))
	if err != nil {
		return ev, false
	}
	if err := json.Unmarshal(msg.Data(), &ev); err != nil {
		e.t.Fatal(err)
	}
	ev.SubmitID = strings.TrimPrefix(ev.SubmitID, e.s.msgID(""))
	if ev.Status.Terminal() {
		for _, have := range e.seen[ev.SubmitID] {
			if have.Status.Terminal() {
				e.t.Fatalf("submit %s has two terminal events: %+v and %+v", ev.SubmitID, have, ev)
			}
		}
	}
	e.seen[ev.SubmitID] = append(e.seen[ev.SubmitID], ev)
	e.last[ev.SubmitID] = msg.Subject()
	return ev, true
}

// terminal returns the next n terminal events by the submit they answer.
func (e *events) terminal(n int) map[string]messages.Event {
	e.t.Helper()
	out := map[string]messages.Event{}
	for deadline := time.Now().Add(testkit.Patience); len(out) < n; {
		if time.Now().After(deadline) {
			e.t.Fatalf("got %d terminal events, want %d: %v", len(out), n, out)
		}
		if ev, ok := e.next(); ok && ev.Status.Terminal() {
			out[ev.SubmitID] = ev
		}
	}
	return out
}

// end returns the terminal event of a submit, and waits for it.
func (e *events) end(id string) messages.Event {
	e.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; {
		for _, ev := range e.seen[id] {
			if ev.Status.Terminal() {
				return ev
			}
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("submit %s has no terminal event; it has %+v", id, e.seen[id])
		}
		e.next()
	}
}

// first waits until a submit has any event.
func (e *events) first(id string) {
	e.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); len(e.seen[id]) == 0; e.next() {
		if time.Now().After(deadline) {
			e.t.Fatalf("submit %s has no event", id)
		}
	}
}

// ready is end, which must be Ready.
func (e *events) ready(id string) messages.Event {
	e.t.Helper()
	ev := e.end(id)
	if ev.Status != messages.StatusReady {
		e.t.Fatalf("submit %s ended %s (%v), want Ready", id, ev.Status, ev.Error)
	}
	return ev
}

// statuses are those a submit went through so far, in order.
func (e *events) statuses(id string) string {
	out := ""
	for _, ev := range e.seen[id] {
		out += string(ev.Status) + " "
	}
	return out
}

// settled waits until every submit that was published has a terminal event, and checks that it has one.
// except are submits whose event the test caused to be told again.
func (s *system) settled(except ...string) {
	s.t.Helper()
	told := map[string]int{}
	testkit.Eventually(s.t, func() error {
		clear(told)
		for _, e := range s.history() {
			if e.Status.Terminal() {
				told[e.SubmitID]++
			}
		}
		for _, id := range *s.sent {
			if told[id] == 0 {
				return fmt.Errorf("submit %s has no terminal event", id)
			}
		}
		return nil
	})
	for _, id := range except {
		delete(told, id)
	}
	for _, id := range *s.sent {
		if told[id] > 1 {
			s.t.Errorf("submit %s has %d terminal events, want one", id, told[id])
		}
	}
}

// history is every event of the tenant that is stored.
func (s *system) history() []messages.Event {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), messages.StreamEvents)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := stream.Info(s.t.Context(), jetstream.WithSubjectFilter(s.eventsOf("*")))
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, count := range info.State.Subjects {
		n += int(count) //nolint:gosec // small
	}
	cons, err := s.js.OrderedConsumer(s.t.Context(), messages.StreamEvents, jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.eventsOf("*")}})
	if err != nil {
		s.t.Fatal(err)
	}
	out := make([]messages.Event, 0, n)
	for len(out) < n {
		batch, err := cons.Fetch(n-len(out), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			s.t.Fatal(err)
		}
		for msg := range batch.Messages() {
			var e messages.Event
			if err := json.Unmarshal(msg.Data(), &e); err != nil {
				s.t.Fatal(err)
			}
			e.SubmitID = strings.TrimPrefix(e.SubmitID, s.msgID(""))
			out = append(out, e)
		}
	}
	return out
}
