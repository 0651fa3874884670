package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/messages"
)

const (
	// noRespondersFor is how long an absent service is waited for: one that restarts is back by then.
	noRespondersFor   = 5 * time.Second
	noRespondersPause = 200 * time.Millisecond
	// microError is the header of a NATS micro error reply.
	microError = "Nats-Service-Error"
)

// reply is the envelope of every answer.
type reply struct {
	Code      messages.Code   `json:"code"`
	Message   string          `json:"message"`
	Field     string          `json:"field,omitempty"`
	Stage     string          `json:"stage,omitempty"`
	RequestID string          `json:"requestId"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Request asks operation op of the knowledge base kb ("_" for the tenant, see messages.RPCSubject), with in as
// JSON body (nil: none), and decodes the data of the answer into out (nil: dropped; a *json.RawMessage gets
// it as it is). A refusal is a *messages.Error. An absent service is waited for for five seconds.
func (s *Session) Request(ctx context.Context, kb, op string, in, out any) error {
	nc, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	body, err := encode(in)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	subject := messages.RPCSubject(s.Tenant, kb, op)
	answer, err := ask(ctx, nc, subject, body)
	if err != nil {
		return err
	}
	return decode(subject, answer, out)
}

func encode(in any) ([]byte, error) {
	if in == nil {
		return nil, nil
	}
	return json.Marshal(in)
}

func ask(ctx context.Context, nc *nats.Conn, subject string, body []byte) (*nats.Msg, error) {
	giveUp := time.Now().Add(noRespondersFor)
	for {
		msg := nats.NewMsg(subject)
		msg.Data = body
		if deadline, ok := ctx.Deadline(); ok {
			msg.Header.Set(messages.HeaderDeadline, strconv.FormatInt(max(1, time.Until(deadline).Milliseconds()), 10))
		}
		answer, err := nc.RequestMsgWithContext(ctx, msg)
		if !errors.Is(err, nats.ErrNoResponders) {
			return answer, explain(subject, err)
		}
		if time.Now().After(giveUp) {
			return nil, fmt.Errorf("%w: no service answers %s; is it running? `weir status` tells for this machine: %w",
				ErrUnavailable, subject, err)
		}
		select {
		case <-ctx.Done():
			return nil, explain(subject, context.Cause(ctx))
		case <-time.After(noRespondersPause):
		}
	}
}

// explain says what a person can do about a failed request.
func explain(subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("no answer on %s in time (missing permissions look the same); a longer --timeout may help: %w", subject, err)
	}
	return fmt.Errorf("ask %s: %w", subject, err)
}

func decode(subject string, answer *nats.Msg, out any) error {
	var r reply
	dec := json.NewDecoder(bytes.NewReader(answer.Data))
	if err := dec.Decode(&r); err != nil || r.Code == "" {
		if text := answer.Header.Get(microError); text != "" {
			return fmt.Errorf("%s answers: %s", subject, text)
		}
		return fmt.Errorf("the answer on %s is not one of Weir", subject)
	}
	if r.Code != messages.CodeSuccess {
		return &messages.Error{Code: r.Code, Message: r.Message, Field: r.Field, Stage: r.Stage}
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*out = r.Data
		return nil
	}
	if len(r.Data) == 0 {
		return fmt.Errorf("the answer on %s has no data", subject)
	}
	if err := json.Unmarshal(r.Data, out); err != nil {
		return fmt.Errorf("decode the answer on %s: %w", subject, err)
	}
	return nil
}
