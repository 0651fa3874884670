package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pullRequest asks a consumer for messages.
type pullRequest struct {
	Batch    int           `json:"batch"`
	MaxBytes int           `json:"max_bytes,omitempty"`
	NoWait   bool          `json:"no_wait,omitempty"`
	Expires  time.Duration `json:"expires,omitempty"`
}

func (r pullRequest) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // three integers and a bool
	}
	return b
}

// pullSubject is where requests for messages of a consumer go.
func pullSubject(js jetstream.JetStream, stream, durable string) string {
	prefix := "$JS.API."
	switch opts := js.Options(); {
	case opts.APIPrefix != "":
		prefix = strings.TrimSuffix(opts.APIPrefix, ".") + "."
	case opts.Domain != "":
		prefix = "$JS." + opts.Domain + ".API."
	}
	return prefix + "CONSUMER.MSG.NEXT." + stream + "." + durable
}

// Outcomes of a request for messages, besides messages.
var (
	errNoMessages = errors.New("no messages")
	errRang       = errors.New("a message is waiting")
	errExpired    = errors.New("request expired")
	errGone       = errors.New("consumer is gone")
)

// pullStatus tells whether a reply is a status instead of a message, and what it says: nil for a sign
// of life.
func pullStatus(m *nats.Msg) (status bool, err error) {
	code := natsCarrier(m.Header).Get("Status")
	if code == "" || len(m.Data) > 0 || strings.HasPrefix(m.Reply, "$JS.ACK.") {
		return false, nil
	}
	what := strings.ToLower(natsCarrier(m.Header).Get("Description"))
	switch {
	case code == "100":
		return true, nil
	case code == "404", code == "408" && strings.Contains(what, "requests pending"):
		return true, errNoMessages
	case code == "408":
		return true, errExpired
	case code == "409" && strings.Contains(what, "maxbytes"):
		return true, errRang
	case code == "409" && strings.Contains(what, "batch completed"):
		return true, errNoMessages
	case code == "409" && strings.Contains(what, "consumer deleted"), code == "503":
		return true, errGone
	}
	return true, fmt.Errorf("pull refused: %s %.100s", code, what)
}

// ring waits on a lane without taking a message: the server answers a one-byte request as soon as it
// has a message, because none fits. It returns nil when there is one, errExpired when none came.
func ring(ctx context.Context, nc *nats.Conn, subject string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait+time.Second)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, subject, pullRequest{Batch: 1, MaxBytes: 1, Expires: wait}.encode())
	if errors.Is(err, nats.ErrNoResponders) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("watch lane: %w", err)
	}
	isStatus, err := pullStatus(reply)
	if !isStatus { // no message is that small; should one be, it goes straight back
		return errors.Join(nakReply(nc, reply.Reply, 0), errors.New("watch lane: got a message"))
	}
	if errors.Is(err, errRang) {
		return nil
	}
	return err
}

// Answers to a delivery. They are asynchronous: a lost one means a redelivery.

func ackReply(nc *nats.Conn, reply string) error      { return nc.Publish(reply, []byte("+ACK")) }
func progressReply(nc *nats.Conn, reply string) error { return nc.Publish(reply, []byte("+WPI")) }

func nakReply(nc *nats.Conn, reply string, delay time.Duration) error {
	if delay <= 0 {
		return nc.Publish(reply, []byte("-NAK"))
	}
	return nc.Publish(reply, []byte(`-NAK {"delay": `+strconv.FormatInt(delay.Nanoseconds(), 10)+`}`))
}

func termReply(nc *nats.Conn, reply, reason string) error {
	return nc.Publish(reply, []byte("+TERM "+reason))
}
