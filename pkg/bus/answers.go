package bus

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// answers takes what the streams say to publishes on one connection, each asked for under a reply subject of
// its own. Safe for concurrent use.
type answers struct {
	nc     *nats.Conn
	prefix string // of reply subjects

	mu      sync.Mutex
	sub     *nats.Subscription
	last    uint64
	waiting map[uint64]asked
}

// asked is a publish whose answer goes to a channel that has room for it.
type asked struct {
	index int
	to    chan<- answer
}

// answer is what became of message index of a batch: ack, or err.
type answer struct {
	index int
	ack   Ack
	err   error
}

func newAnswers(nc *nats.Conn) *answers {
	return &answers{nc: nc, prefix: nc.NewInbox() + ".", waiting: map[uint64]asked{}}
}

// publish sends m and returns the number by which its answer can be forgotten. There is one answer: of the
// stream, or that the connection was lost, after which m may be stored or not.
func (a *answers) publish(m *nats.Msg, index int, to chan<- answer) (uint64, error) {
	n, err := a.expect(asked{index, to})
	if err != nil {
		return 0, err
	}
	m.Reply = a.prefix + strconv.FormatUint(n, 36)
	if err := a.nc.PublishMsg(m); err != nil {
		a.forget(n)
		return 0, err
	}
	return n, nil
}

func (a *answers) expect(q asked) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sub == nil {
		sub, err := a.nc.Subscribe(a.prefix+"*", a.receive)
		if err != nil {
			return 0, fmt.Errorf("subscribe to answers: %w", err)
		}
		a.sub = sub
		go a.watch(a.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED))
	}
	a.last++
	a.waiting[a.last] = q
	return a.last, nil
}

// forget has no answer come any more, except one that is on its channel already.
func (a *answers) forget(n uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, n)
}

func (a *answers) receive(m *nats.Msg) {
	n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, a.prefix), 36, 64)
	if err != nil {
		return // nobody asked for it
	}
	a.mu.Lock()
	q, ok := a.waiting[n]
	delete(a.waiting, n)
	a.mu.Unlock()
	if ok {
		ack, err := decodeAck(m)
		q.to <- answer{q.index, ack, err}
	}
}

// watch tells everybody who waits that the connection was lost, until it is closed.
func (a *answers) watch(status <-chan nats.Status) {
	for s := range status {
		lost := nats.ErrDisconnected
		if s == nats.CLOSED {
			lost = nats.ErrConnectionClosed
		}
		a.mu.Lock()
		for n, q := range a.waiting {
			q.to <- answer{index: q.index, err: lost}
			delete(a.waiting, n)
		}
		a.mu.Unlock()
		if s == nats.CLOSED {
			return
		}
	}
}

// decodeAck returns what a stream answered, or its error.
func decodeAck(m *nats.Msg) (Ack, error) {
	if len(m.Data) == 0 && natsCarrier(m.Header).Get("Status") == "503" {
		return Ack{}, jetstream.ErrNoStreamResponse
	}
	if ack, ok := plainAck(m.Data); ok {
		return ack, nil
	}
	var reply struct {
		Error     *jetstream.APIError `json:"error"`
		Stream    string              `json:"stream"`
		Seq       uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
	}
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return Ack{}, jetstream.ErrInvalidJSAck
	}
	if reply.Error != nil {
		return Ack{}, reply.Error
	}
	if reply.Stream == "" {
		return Ack{}, jetstream.ErrInvalidJSAck
	}
	return Ack{Stream: reply.Stream, Sequence: reply.Seq, Duplicate: reply.Duplicate}, nil
}

// plainAck reads the answer of nearly every publish, {"stream":"NAME","seq":N}, in the form that the server
// gives it; anything else is left to JSON.
func plainAck(data []byte) (Ack, bool) {
	rest, ok := strings.CutPrefix(string(data), `{"stream":"`)
	if !ok {
		return Ack{}, false
	}
	stream, rest, ok := strings.Cut(rest, `","seq":`)
	if !ok || !plainName(stream) {
		return Ack{}, false
	}
	digits, ok := strings.CutSuffix(rest, "}")
	if !ok || digits == "" || digits[0] < '1' || digits[0] > '9' {
		return Ack{}, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return Ack{}, false
	}
	return Ack{Stream: stream, Sequence: seq}, true
}

// plainName reports that name means the same in JSON.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return name != ""
}
