package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// consume starts a bare subscriber whose messages are acknowledged after work.
func consume(t *testing.T, e *env, cfg SubscriberConfig, work func(*message.Message)) (*Subscriber, context.CancelFunc, *sync.WaitGroup) {
	t.Helper()
	cfg.Stage = parseStage()
	s, err := NewSubscriber(e.js, e.pub, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out, err := s.Subscribe(ctx, cfg.Stage.Name)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for w := range out {
			wg.Add(1)
			go func() {
				defer wg.Done()
				work(w)
				w.Ack()
			}()
		}
	}()
	return s, cancel, &wg
}

func TestCancelAndCloseStrandNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "close"} {
		t.Run(how, func(t *testing.T) {
			e := newEnv(t, Settings{})
			e.publish("t", "kb", "m", 200)
			var runs atomic.Int64
			s, cancel, wg := consume(t, e, SubscriberConfig{Workers: 5}, func(*message.Message) {
				runs.Add(1)
				time.Sleep(100 * time.Millisecond) // part of the case: a slow handler
			})
			eventually(t, "some runs", func() bool { return runs.Load() >= 12 })
			if how == "cancel" {
				cancel()
			} else if err := s.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			// The server has the acknowledgements, and takes them in by and by.
			eventually(t, "no acknowledgement is lost", func() bool { return e.depth(messages.StreamParse) == 200-int(runs.Load()) })
			if err := s.Err(); err != nil {
				t.Error(err)
			}
			rest := newTally()
			e.run(SubscriberConfig{Workers: 16}, func(_ context.Context, d Delivery) ([]Message, error) {
				rest.add(d.ID)
				return nil, nil
			})
			// Well under the ack wait of 30 s: nothing waits for it.
			eventually(t, "the rest", func() bool { return e.depth(messages.StreamParse) == 0 })
			if rest.total() != 200-int(runs.Load()) {
				t.Errorf("%d runs of the rest", rest.total())
			}
		})
	}
}

func TestDrainTimeoutHandsRunningMessagesBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	e.publish("t", "kb", "m", 1)
	started := make(chan struct{})
	causes := make(chan error, 1)
	r := e.run(SubscriberConfig{DrainTimeout: 200 * time.Millisecond}, func(ctx context.Context, _ Delivery) ([]Message, error) {
		close(started)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	<-started
	if err := r.halt(t); err != nil {
		t.Error(err)
	}
	if err := <-causes; !errors.Is(err, ErrStopping) {
		t.Errorf("cause %v", err)
	}
	got := make(chan Delivery, 1)
	e.run(SubscriberConfig{}, func(_ context.Context, d Delivery) ([]Message, error) {
		got <- d
		return nil, nil
	})
	select {
	case <-got:
	case <-time.After(testkit.Patience):
		t.Fatal("the message is stranded")
	}
}

func TestWatchingALaneTakesNoMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	lane := messages.Lane("t", "kb")
	st := parseStage()
	subject := pullSubject(e.js, st.Stream, st.Durable(lane))
	if err := ring(ctxOf(t), e.nc, subject, 200*time.Millisecond); !errors.Is(err, errExpired) {
		t.Fatalf("empty lane: %v", err)
	}
	rang := make(chan error, 1)
	go func() { rang <- ring(ctxOf(t), e.nc, subject, 10*time.Second) }()
	eventually(t, "watched", func() bool {
		c, err := e.js.Consumer(ctxOf(t), st.Stream, st.Durable(lane))
		return err == nil && c.CachedInfo().NumWaiting == 1
	})
	e.publish("t", "kb", "m", 1)
	if err := <-rang; err != nil {
		t.Fatalf("lane with a message: %v", err)
	}
	for range 3 {
		if err := ring(ctxOf(t), e.nc, subject, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	c, err := e.js.Consumer(ctxOf(t), st.Stream, st.Durable(lane))
	if err != nil {
		t.Fatal(err)
	}
	for want := uint64(1); want <= 2; want++ { // the bell must not count as a delivery, nor after a nak
		m, err := c.Next(jetstream.FetchMaxWait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		meta, err := m.Metadata()
		if err != nil || meta.NumDelivered != want {
			t.Fatalf("delivery %+v, want number %d", meta, want)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := ring(ctxOf(t), e.nc, subject, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTwoProcessesShareTheLanes(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	const share = 20
	a, b := make(chan struct{}), make(chan struct{}) // closed when one has had its share
	seen := newTally()
	work := func(own, other chan struct{}) Handler {
		var n atomic.Int64
		return func(_ context.Context, d Delivery) ([]Message, error) {
			seen.add(d.ID)
			switch k := n.Add(1); {
			case k == share:
				close(own)
			case k > share: // who is fast waits for the other, which so must get something
				<-other
			}
			return nil, nil
		}
	}
	st := parseStage()
	st.Timeout = 2 * testkit.Patience
	e.run(SubscriberConfig{Stage: st, Workers: 2}, work(a, b))
	e.run(SubscriberConfig{Stage: st, Workers: 2}, work(b, a))
	for i := range 8 {
		e.publish("t", fmt.Sprintf("kb%d", i), fmt.Sprintf("m%d", i), 25)
	}
	eventually(t, "stream is empty", func() bool { return e.depth(messages.StreamParse) == 0 })
	if seen.total() != 200 || seen.keys() != 200 {
		t.Errorf("%d runs of %d messages", seen.total(), seen.keys())
	}
}

func TestRemovedStreamComesBackWithHelp(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	got := make(chan Delivery, 10)
	e.run(SubscriberConfig{
		WatchWait: 500 * time.Millisecond,
		OnMissing: func(ctx context.Context) error {
			_, err := Provision(ctx, e.js, messages.Streams(), messages.Stages(), Settings{})
			return err
		},
	}, func(_ context.Context, d Delivery) ([]Message, error) {
		got <- d
		return nil, nil
	})
	e.publish("t", "kb", "m", 1)
	first := <-got
	if err := e.js.DeleteStream(ctxOf(t), messages.StreamParse); err != nil {
		t.Fatal(err)
	}
	acks := e.publish("t", "kb", "m", 1) // waits for the stream
	select {
	case second := <-got:
		if second.Sequence != first.Sequence || !second.StreamCreated.After(first.StreamCreated) {
			t.Errorf("first %v %d, second %v %d", first.StreamCreated, first.Sequence, second.StreamCreated, second.Sequence)
		}
		if acks[0].Sequence != second.Sequence {
			t.Errorf("acknowledged as %d", acks[0].Sequence)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("nothing came")
	}
}

func TestRemovedConsumerEndsTheStage(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	r := e.run(SubscriberConfig{MissingGrace: 300 * time.Millisecond}, func(context.Context, Delivery) ([]Message, error) { return nil, nil })
	st := parseStage()
	eventually(t, "running", func() bool {
		c, err := e.js.Consumer(ctxOf(t), st.Stream, st.Durable(3))
		return err == nil && c.CachedInfo().NumWaiting == 1
	})
	if err := e.js.DeleteConsumer(ctxOf(t), st.Stream, st.Durable(3)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-r.err:
		r.err <- err
		if !errors.Is(err, ErrConsumerMissing) || !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Errorf("error %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the stage runs on")
	}
}

func TestSmallKnowledgeBaseIsNotStarved(t *testing.T) {
	for _, workers := range []int{4, 64} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) { notStarved(t, workers) })
	}
}

func notStarved(t *testing.T, workers int) {
	e := newEnv(t, Settings{})
	small := "small"
	for i := 0; messages.Lane("t", small) == messages.Lane("t", "heavy"); i++ {
		small = fmt.Sprintf("small%d", i)
	}
	const work = 20 * time.Millisecond
	var others atomic.Int64
	handled := make(chan int64, 1)
	var still sync.RWMutex // held while no small message waits: a slow test must not find the backlog done
	still.Lock()
	defer still.Unlock()
	st := parseStage()
	st.Timeout = 2 * testkit.Patience
	e.run(SubscriberConfig{Stage: st, Workers: workers}, func(_ context.Context, d Delivery) ([]Message, error) {
		if d.KB == small {
			handled <- others.Load()
			return nil, nil
		}
		still.RLock()
		defer still.RUnlock()
		time.Sleep(work) // part of the case: a slow handler
		others.Add(1)
		return nil, nil
	})
	backlog := 250 * workers
	e.publish("t", "heavy", "h", backlog)
	var passed []int64 // how many of the others went first
	for i := range 10 {
		e.publish("t", small, fmt.Sprint("s", i), 1)
		before := others.Load()
		still.Unlock()
		passed = append(passed, <-handled-before)
		still.Lock()
	}
	if e.depth(messages.StreamParse) == 0 {
		t.Fatal("the heavy knowledge base was done before the measurement")
	}
	t.Logf("beside %d waiting messages, so many went before each of the ten: %v", backlog, passed)
	slices.Sort(passed)
	if median := passed[len(passed)/2]; median > int64(backlog)/10 {
		t.Errorf("in the median %d of %d waiting messages went first", median, backlog)
	}
}

// Of messages so large that few fit into one request for many, the rest comes with the next requests.
func TestLargeMessagesComeAFewAtATime(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	const n = 24
	msgs := make([]Message, n)
	for i := range msgs {
		msgs[i] = Message{Subject: messages.SubmitSubject("t", "kb"), ID: fmt.Sprint(i), Body: make([]byte, e.nc.MaxPayload()-1000)}
	}
	if _, err := e.pub.PublishAck(ctxOf(t), msgs...); err != nil {
		t.Fatal(err)
	}
	seen, warnings := newTally(), make(chan struct{}, 100)
	e.run(SubscriberConfig{
		Stage: messages.StageNamed(messages.StageIntake), Workers: 16, Telemetry: Telemetry{Log: slog.New(countWarnings{warnings})},
	}, func(_ context.Context, d Delivery) ([]Message, error) {
		seen.add(d.ID)
		return nil, nil
	})
	eventually(t, "all handled", func() bool { return e.depth(messages.StreamDocs) == 0 })
	if seen.keys() != n || seen.total() != n || len(warnings) > 0 {
		t.Errorf("%d runs of %d messages, %d warnings, want %d of %d and none", seen.total(), seen.keys(), len(warnings), n, n)
	}
}

func TestNoStallWhileMessagesWait(t *testing.T) {
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			e := newEnv(t, Settings{})
			const n = 4000
			e.publish("t", "kb", "m", n)
			var done atomic.Int64
			// Who watches a lane that has messages would not notice within the test.
			e.run(SubscriberConfig{Workers: workers, WatchWait: 10 * testkit.Patience}, func(context.Context, Delivery) ([]Message, error) {
				done.Add(1)
				return nil, nil
			})
			started := time.Now()
			eventually(t, "all done", func() bool { return done.Load() == n })
			t.Logf("%.0f messages a second", n/time.Since(started).Seconds())
		})
	}
}
