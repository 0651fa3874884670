package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestEveryMessageOnceThoughWorkOutlastsTheAckWait(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{AckWait: time.Second})
	var seen atomic.Pointer[tally]
	e.run(SubscriberConfig{Workers: 3}, func(_ context.Context, d Delivery) ([]Message, error) {
		if strings.HasSuffix(d.ID, "-7") {
			time.Sleep(2500 * time.Millisecond) // longer than the ack wait
		} else {
			time.Sleep(100 * time.Millisecond) // part of the case: a slow handler
		}
		seen.Load().add(d.ID)
		return nil, nil
	})
	unlessStalled(t, func(round string) error {
		now := newTally()
		seen.Store(now)
		e.publish("t", "kb", round, 40)
		eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 && now.keys() >= 40 })
		if now.total() != 40 {
			return fmt.Errorf("%d runs of 40 messages", now.total())
		}
		return nil
	})
}

// unlessStalled plays rounds until one is as it should be: a machine that stands still for an ack wait makes the server
// deliver again what is in hand, and that is no fault.
func unlessStalled(t *testing.T, play func(round string) error) {
	t.Helper()
	n := 0
	testkit.Eventually(t, func() error {
		n++
		return play(fmt.Sprint("round", n))
	})
}

func TestDeliveryTellsWhereTheMessageLay(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	body := Message{
		Subject: messages.WorkSubject(messages.StageParse, "acme", "docs"), ID: "id-1", Body: []byte("x"),
		Header: Header{"doc": "d", "Nats-TTL": "5s"},
	}
	acks, err := e.pub.PublishAck(ctxOf(t), body)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan Delivery, 1)
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		got <- d
		return nil, nil
	})
	d := <-got
	if d.Tenant != "acme" || d.KB != "docs" || d.ID != "id-1" || d.Delivered != 1 || string(d.Body) != "x" {
		t.Errorf("delivery %+v", d)
	}
	if len(d.Header) != 1 || d.Header["doc"] != "d" {
		t.Errorf("headers %v, want doc alone", d.Header)
	}
	if a := acks[0]; a.Stream != d.Stream || a.Sequence != d.Sequence || !a.Created.Equal(d.StreamCreated) || a.Created.IsZero() {
		t.Errorf("ack %+v and delivery %+v name different messages", a, d)
	}
}

func TestPermanentErrorIsDeadLetteredAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "bad", 5)
	runs := newTally()
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		runs.add(d.ID)
		return nil, messages.Invalid("text", "is empty\nreally")
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	letters := e.deadLetters()
	if runs.total() != 5 || len(letters) != 5 {
		t.Fatalf("%d runs, %d dead letters, want 5 and 5", runs.total(), len(letters))
	}
	m := letters[0]
	want := map[string]string{
		messages.HeaderDeadCode: "VALIDATION_ERROR", messages.HeaderDeadReason: "is empty really",
		messages.HeaderDeadField: "text", messages.HeaderDeadStage: "parse",
		messages.HeaderDeadStream: messages.StreamParse, messages.HeaderDeadTries: "1",
	}
	for k, v := range want {
		if got := natsCarrier(m.Header).Get(k); got != v {
			t.Errorf("%s is %q, want %q", k, got, v)
		}
	}
	if m.Subject != "weir.dlq.parse.t.kb" || string(m.Data) != "bad" {
		t.Errorf("dead letter %s %q", m.Subject, m.Data)
	}
}

func TestRetryableErrorIsDeadLetteredAfterItsTries(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 3)
	runs := newTally()
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		if n := runs.add(d.ID); d.ID == "m-2" && n == 3 {
			return nil, nil
		}
		return nil, errors.New("flaky")
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	letters := e.deadLetters()
	if runs.total() != 9 || len(letters) != 2 {
		t.Fatalf("%d runs, %d dead letters, want 9 and 2", runs.total(), len(letters))
	}
	if code := natsCarrier(letters[0].Header).Get(messages.HeaderDeadCode); code != string(messages.CodeDeliveriesExhausted) {
		t.Errorf("code %s", code)
	}
}

func TestNackIsNoHotLoop(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 1)
	st := parseStage()
	st.MaxTries, st.BackoffMin, st.BackoffMax = 1000, 100*time.Millisecond, 200*time.Millisecond
	var runs atomic.Int64
	e.run(SubscriberConfig{Stage: st}, func(context.Context, Delivery) ([]Message, error) {
		runs.Add(1)
		return nil, errors.New("no")
	})
	eventually(t, "five runs", func() bool { return runs.Load() >= 5 })
	started, before := time.Now(), runs.Load()
	eventually(t, "five more runs", func() bool { return runs.Load() >= before+5 })
	if took := time.Since(started); took < 350*time.Millisecond {
		t.Errorf("five redeliveries in %v", took)
	}
}

func TestPanicFailsThatMessageOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 10)
	runs := newTally()
	log := &logged{}
	e.run(SubscriberConfig{Telemetry: Telemetry{Log: log.logger()}}, func(_ context.Context, d Delivery) ([]Message, error) {
		runs.add(d.ID)
		switch d.ID {
		case "m-4":
			breaks()
		case "m-7": // on a goroutine of the handler's
			var g guard.Group
			g.Go(func() error { breaks(); return nil })
			return []Message{{}}, fmt.Errorf("work together: %w", g.Wait())
		}
		return nil, nil
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	letters := e.deadLetters()
	if runs.total() != 10 || len(letters) != 2 {
		t.Fatalf("%d runs, %d dead letters, want 10 and 2", runs.total(), len(letters))
	}
	for _, letter := range letters {
		h := natsCarrier(letter.Header)
		if code, why := h.Get(messages.HeaderDeadCode), h.Get(messages.HeaderDeadReason); code != "INTERNAL" || why != "the handler panicked" {
			t.Errorf("got %s, %q, want INTERNAL and nothing of what the panic said", code, why)
		}
	}
	if n := strings.Count(log.String(), "bus.breaks"); n != 2 {
		t.Errorf("the stacks of %d panics are in the log, want 2", n)
	}
}

// breaks panics.
func breaks() {
	var p *Delivery
	_ = p.Subject
}

func TestOutputsAreStoredBeforeTheAck(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 20)
	var failed atomic.Bool
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		out := []Message{
			{Subject: messages.WorkSubject(messages.StageEmbed, d.Tenant, d.KB), ID: d.ID + "/0", Body: []byte("a")},
			{Subject: messages.WorkSubject(messages.StageEmbed, d.Tenant, d.KB), ID: d.ID + "/1", Body: []byte("b")},
		}
		if d.ID == "m-3" && !failed.Swap(true) {
			out[1].Subject = "weir.work.nowhere *" // cannot be published: the first one is not lost, nor doubled
		}
		return out, nil
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	if n := e.depth(messages.StreamEmbed); n != 40 {
		t.Errorf("%d outputs, want 40", n)
	}
}

func TestOutageBurnsNoDelivery(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{AckWait: time.Second})
	var down atomic.Bool
	var runs, worst atomic.Int64
	e.run(SubscriberConfig{Workers: 2}, func(_ context.Context, d Delivery) ([]Message, error) {
		runs.Add(1)
		worst.Store(max(worst.Load(), int64(d.Delivered)))
		if down.Load() {
			return nil, Pause(errors.New("provider is down"), 100*time.Millisecond)
		}
		return nil, nil
	})
	unlessStalled(t, func(round string) error {
		down.Store(true)
		runs.Store(0)
		worst.Store(0)
		e.publish("t", "kb", round, 6)
		eventually(t, "more runs than tries", func() bool { return runs.Load() > 20 })
		if d := e.depth(messages.StreamParse); d != 6 {
			t.Errorf("%d messages left during the outage, want 6", d)
		}
		down.Store(false)
		eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
		if n := worst.Load(); n != 1 {
			return fmt.Errorf("delivered up to %d times", n)
		}
		return nil
	})
	if n := len(e.deadLetters()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

func TestStopDuringAnOutageHandsBackAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 2)
	var runs atomic.Int64
	r := e.run(SubscriberConfig{}, func(context.Context, Delivery) ([]Message, error) {
		runs.Add(1)
		return nil, Pause(errors.New("down"), 10*testkit.Patience)
	})
	eventually(t, "a run", func() bool { return runs.Load() > 0 })
	if err := r.halt(t); err != nil { // long before the pause ends
		t.Error(err)
	}
	eventually(t, "all handed back", func() bool { return e.depth(messages.StreamParse) == 2 })
	again := make(chan Delivery, 2)
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		again <- d
		return nil, nil
	})
	for range 2 {
		select {
		case <-again:
		case <-time.After(testkit.Patience):
			t.Fatal("a message is stranded")
		}
	}
}

func TestHandlerOutOfTimeIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 1)
	st := parseStage()
	st.Timeout = 300 * time.Millisecond
	causes := make(chan error, 10)
	var runs atomic.Int64
	e.run(SubscriberConfig{Stage: st}, func(ctx context.Context, _ Delivery) ([]Message, error) {
		if runs.Add(1) == 2 {
			return nil, nil
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	if err := <-causes; !errors.Is(err, ErrHandlerTimeout) {
		t.Errorf("cause %v", err)
	}
	if runs.Load() != 2 || len(e.deadLetters()) != 0 {
		t.Errorf("%d runs, %d dead letters", runs.Load(), len(e.deadLetters()))
	}
}

func TestHandlerThatIgnoresItsDeadlineLosesTheMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{AckWait: time.Second})
	e.publish("t", "kb", "m", 1)
	st := parseStage()
	st.Timeout = 200 * time.Millisecond
	var runs atomic.Int64
	hung := make(chan struct{})
	defer close(hung)
	e.run(SubscriberConfig{Stage: st, Workers: 2}, func(context.Context, Delivery) ([]Message, error) {
		if runs.Add(1) == 1 {
			<-hung
		}
		return nil, nil
	})
	eventually(t, "another worker did it", func() bool { return e.depth(messages.StreamParse) == 0 })
	if runs.Load() < 2 {
		t.Errorf("%d runs", runs.Load())
	}
}

func TestDeadLetterThatCannotBeStoredKeepsTheMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	if err := e.js.DeleteStream(ctxOf(t), messages.StreamDead); err != nil {
		t.Fatal(err)
	}
	e.publish("t", "kb", "m", 1)
	e.pub = e.publisher(PublisherConfig{RetryFor: 200 * time.Millisecond})
	var runs atomic.Int64
	r := e.run(SubscriberConfig{}, func(context.Context, Delivery) ([]Message, error) {
		runs.Add(1)
		return nil, messages.Errorf(messages.CodeNoText, "nothing")
	})
	_ = r
	eventually(t, "a run", func() bool { return runs.Load() > 0 })
	if _, err := Provision(ctxOf(t), e.js, messages.Streams(), messages.Stages(), Settings{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dead letter", func() bool { return e.depth(messages.StreamDead) == 1 })
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
}

func TestDeadStageNeverDeadLetters(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	_, err := e.pub.PublishAck(ctxOf(t), Message{Subject: messages.DeadSubject("parse", "_", "_"), ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	st := messages.StageNamed(messages.StageDead)
	st.BackoffMin, st.BackoffMax, st.MaxTries = 10*time.Millisecond, 20*time.Millisecond, 2
	var runs atomic.Int64
	e.run(SubscriberConfig{Stage: st}, func(context.Context, Delivery) ([]Message, error) {
		if runs.Add(1) > 4 {
			return nil, nil
		}
		return nil, messages.Errorf(messages.CodeInternal, "no")
	})
	eventually(t, "done in the end", func() bool { return e.depth(messages.StreamDead) == 0 })
	if runs.Load() != 5 {
		t.Errorf("%d runs", runs.Load())
	}
}

func TestMessageThatNeverGetsAnAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 1)
	st := parseStage()
	c, err := e.js.Consumer(ctxOf(t), st.Stream, st.Durable(messages.Lane("t", "kb")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range st.MaxTries * DeliveryFactor { // as if each worker had died
		m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			t.Fatal(i, err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	var runs atomic.Int64
	e.run(SubscriberConfig{Stage: st}, func(context.Context, Delivery) ([]Message, error) {
		runs.Add(1)
		return nil, nil
	})
	eventually(t, "dead letter", func() bool { return e.depth(messages.StreamDead) == 1 })
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
}

func TestBadHeadersBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	subject := messages.WorkSubject(messages.StageParse, "t", "kb")
	bad := []nats.Header{
		{"doc": {"a", "b"}},
		{"tenant": {"other"}},
		{"kb": {"other"}},
		{"doc": {"\xff\xfe"}},
	}
	many := nats.Header{}
	for i := range maxHeaders + 1 {
		many[string(rune('a'+i%26))+string(rune('a'+i/26))] = []string{"v"}
	}
	for _, h := range append(bad, many) {
		if _, err := e.js.PublishMsg(ctxOf(t), &nats.Msg{Subject: subject, Header: h, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	e.publish("t", "kb", "good", 3)
	runs := newTally()
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		runs.add(d.ID)
		return nil, nil
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	if runs.total() != 3 || e.depth(messages.StreamDead) != 5 {
		t.Errorf("%d runs, %d dead letters, want 3 and 5", runs.total(), e.depth(messages.StreamDead))
	}
	// The dead-letter stage must be able to read them all.
	dead := newTally()
	e.run(SubscriberConfig{Stage: messages.StageNamed(messages.StageDead)}, func(_ context.Context, d Delivery) ([]Message, error) {
		dead.add(d.ID)
		return nil, nil
	})
	eventually(t, "dead letters are read", func() bool { return e.depth(messages.StreamDead) == 0 })
	if dead.keys() != 5 {
		t.Errorf("%d dead letters reached their stage", dead.keys())
	}
}

func TestAStageStoppedBeforeItBeganEndsCleanly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	for range 3 {
		r := e.run(SubscriberConfig{}, func(context.Context, Delivery) ([]Message, error) { return nil, nil })
		if err := r.halt(t); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	}
}

// A run whose time is over may take a moment to find that it met an outage: that counts as one all the same.
func TestAnOutageFoundAfterTheTimeIsOverBurnsNoDelivery(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 1)
	st := parseStage()
	st.Timeout = 100 * time.Millisecond
	var worst atomic.Int64
	var runs atomic.Int64
	e.run(SubscriberConfig{Stage: st}, func(ctx context.Context, d Delivery) ([]Message, error) {
		worst.Store(max(worst.Load(), int64(d.Delivered)))
		if runs.Add(1) > 2 {
			return nil, nil
		}
		<-ctx.Done()
		time.Sleep(3 * watchEvery) // part of the case: the time of the run has been seen to be over
		return nil, Pause(ctx.Err(), 10*time.Millisecond)
	})
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	if runs.Load() != 3 || worst.Load() != 1 {
		t.Errorf("%d runs in %d deliveries, want 3 in one", runs.Load(), worst.Load())
	}
}

// A dead letter bears headers of its own besides its message's: however many those are, its stage can read it.
func TestDeadLettersOfMessagesWithManyHeadersAreRead(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	many, long := Header{}, Header{}
	for i := range maxHeaders - 1 { // the message id is one more
		many[fmt.Sprintf("h%d", i)] = "v"
	}
	for i := range 60 {
		long[fmt.Sprintf("h%d", i)] = strings.Repeat("v", 1080)
	}
	for i, h := range []Header{many, long} {
		h[messages.HeaderDocID], h[messages.HeaderTenant], h[messages.HeaderDeadTruncated] = "doc", "t", "5"
		for _, key := range []string{"h0", "h1", "h2"} {
			delete(h, key)
		}
		_, err := e.pub.PublishAck(ctxOf(t), Message{Subject: messages.WorkSubject(messages.StageParse, "t", "kb"), ID: fmt.Sprint(i), Header: h, Body: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := messages.Invalid(strings.Repeat("f", 1000), strings.Repeat("r", 2000))
	e.run(SubscriberConfig{}, func(context.Context, Delivery) ([]Message, error) { return nil, refused })
	eventually(t, "two dead letters", func() bool { return e.depth(messages.StreamDead) == 2 })
	got := make(chan Delivery, 2)
	e.run(SubscriberConfig{Stage: messages.StageNamed(messages.StageDead)}, func(_ context.Context, d Delivery) ([]Message, error) {
		got <- d
		return nil, nil
	})
	for range 2 {
		select {
		case d := <-got:
			for _, key := range []string{messages.HeaderDocID, messages.HeaderTenant, messages.HeaderDeadCode, messages.HeaderDeadMsgID} {
				if d.Header[key] == "" {
					t.Errorf("%s is missing", key)
				}
			}
			if size, cut := d.Header[messages.HeaderDeadTruncated]; cut {
				t.Errorf("cut from %s, which its message said and not the bus", size)
			}
		case <-time.After(testkit.Patience):
			t.Fatal("a dead letter is not read")
		}
	}
}
