package bus

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestAnswersOfStreams(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]Ack{
		`{"stream":"WEIR_PARSE","seq":12}`:                                  {Stream: "WEIR_PARSE", Sequence: 12},
		`{"stream":"WEIR_PARSE","seq":12,"duplicate": true}`:                {Stream: "WEIR_PARSE", Sequence: 12, Duplicate: true},
		`{"stream":"WEIR_PARSE","domain":"hub","seq":18446744073709551615}`: {Stream: "WEIR_PARSE", Sequence: 1<<64 - 1},
		` { "seq": 1, "stream": "A" }`:                                      {Stream: "A", Sequence: 1},
	} {
		if got, err := decodeAck(&nats.Msg{Data: []byte(data)}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	for data, want := range map[string]error{
		``: jetstream.ErrInvalidJSAck, `{}`: jetstream.ErrInvalidJSAck, `{"stream":"","seq":1}`: jetstream.ErrInvalidJSAck,
		`{"stream":"A","seq":99999999999999999999}`: jetstream.ErrInvalidJSAck,
	} {
		if got, err := decodeAck(&nats.Msg{Data: []byte(data)}); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	var api *jetstream.APIError
	_, err := decodeAck(&nats.Msg{Data: []byte(`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"A","seq":0}`)})
	if !errors.As(err, &api) || !fullStream(api) {
		t.Errorf("full stream: %v", err)
	}
}

// Whatever is read without a decoder means the same to one.
func FuzzPlainAck(f *testing.F) {
	f.Add([]byte(`{"stream":"WEIR_PARSE","seq":12}`))
	f.Add([]byte(`{"stream":"A","seq":12,"seq":13}`))
	f.Add([]byte(`{"stream":"A","seq":012}`))
	f.Add([]byte(`{"stream":"A\u0041","seq":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := plainAck(data)
		if !ok {
			return
		}
		var want struct {
			Stream string `json:"stream"`
			Seq    uint64 `json:"seq"`
		}
		if err := json.Unmarshal(data, &want); err != nil || want.Stream != got.Stream || want.Seq != got.Sequence {
			t.Fatalf("%q: %+v, a decoder says %+v, %v", data, got, want, err)
		}
	})
}

// A lost connection is told at once to who waits, and what was published before may be published again.
func TestALostConnectionIsNoLongWait(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	a := newAnswers(e.nc)
	silent, err := e.nc.SubscribeSync("weir.silent")
	if err != nil {
		t.Fatal(err)
	}
	to := make(chan answer, 2)
	if _, err := a.publish(nats.NewMsg("weir.silent"), 7, to); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.NextMsg(testkit.Patience); err != nil {
		t.Fatal(err)
	}
	if err := e.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-to:
		if got.index != 7 || !errors.Is(got.err, nats.ErrDisconnected) {
			t.Errorf("got %+v", got)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("nothing was said")
	}
	eventually(t, "connected again", e.nc.IsConnected)
	if _, err := a.publish(&nats.Msg{Subject: messages.WorkSubject(messages.StageParse, "t", "kb")}, 8, to); err != nil {
		t.Fatal(err)
	}
	if got := <-to; got.index != 8 || got.err != nil || got.ack.Sequence != 1 {
		t.Errorf("got %+v", got)
	}
}

// A stream that does not answer in time is asked again, and a late answer to the first time harms nothing.
func TestAPublishWithoutAnswerIsRepeated(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	p := e.publisher(PublisherConfig{AckTimeout: 50 * time.Millisecond, NoCreated: true})
	asked := make(chan *nats.Msg, 64)
	if _, err := e.nc.ChanSubscribe("weir.slow", asked); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		acks, err := p.PublishAck(ctxOf(t), Message{Subject: "weir.slow", ID: "x"})
		if err == nil && acks[0] != (Ack{Stream: "S", Sequence: 2}) {
			err = errors.New("the answer of another time")
		}
		done <- err
	}()
	first, second := <-asked, <-asked
	if first.Reply == second.Reply || first.Header.Get(messages.HeaderMsgID) != "x" || second.Header.Get(messages.HeaderMsgID) != "x" {
		t.Errorf("asked %v under %s, then %v under %s", first.Header, first.Reply, second.Header, second.Reply)
	}
	if err := e.nc.Publish(first.Reply, []byte(`{"stream":"S","seq":1}`)); err != nil {
		t.Fatal(err)
	}
	for m := second; ; m = <-asked { // until one is in time
		if err := m.Respond([]byte(`{"stream":"S","seq":2}`)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		case again := <-asked:
			asked <- again
		}
	}
}

// Every message of a batch has its time, also one that is sent when others have waited in vain.
func TestEachPublishOfABatchIsRepeatedInTime(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Settings{})
	p := e.publisher(PublisherConfig{AckTimeout: 50 * time.Millisecond, MaxInFlight: 1, NoCreated: true})
	asked := newTally()
	if _, err := e.nc.Subscribe("weir.slow", func(m *nats.Msg) {
		if asked.add(m.Header.Get(messages.HeaderMsgID)) > 1 { // the first time is lost
			_ = m.Respond([]byte(`{"stream":"S","seq":1}`))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PublishAck(ctxOf(t), Message{Subject: "weir.slow", ID: "a"}, Message{Subject: "weir.slow", ID: "b"}); err != nil {
		t.Errorf("asked %v: %v", asked.n, err)
	}
}
