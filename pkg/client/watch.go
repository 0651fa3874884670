package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// flushTimeout bounds the round trip after which a subscription is known to stand.
const flushTimeout = 10 * time.Second

// Watch calls handle with the events of the knowledge base from now on, one at a time and in order, until
// stop is called; stop waits for the last call. Whatever is published after Watch returned is seen. It is an
// ordinary subscription, which a tenant may have: events while the connection is down are missed, and so
// are events when handle falls far behind. A user who may not subscribe gets ErrPermission.
func (k *KB) Watch(handle func(messages.Event)) (stop func(), err error) {
	if err := messages.ValidateName("knowledgeBaseName", k.name); err != nil {
		return nil, err
	}
	return k.c.watch(k.name, handle)
}

// Watch is KB.Watch for all knowledge bases of the tenant.
func (c *Client) Watch(handle func(messages.Event)) (stop func(), err error) {
	return c.watch("*", handle)
}

func (c *Client) watch(kb string, handle func(messages.Event)) (stop func(), err error) {
	subject := strings.Join([]string{messages.SubjectEvents, c.tenant, kb, ">"}, ".")
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		var e messages.Event
		if json.Unmarshal(m.Data, &e) == nil { // what is no event ends no submit
			handle(e)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch events: %w", err)
	}
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	stop = func() {
		_ = sub.Unsubscribe() // fails when the connection is closed, and the subscription with it
		<-closed
	}
	known, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := bus.Flush(known, c.nc); err != nil {
		stop()
		return nil, fmt.Errorf("watch events: %w", err)
	}
	if subscribeRefused(c.nc, subject) {
		stop()
		return nil, fmt.Errorf("watch events: %w: subscribe to %s", ErrPermission, subject)
	}
	return stop, nil
}

// subscribeRefused reports that the server has refused this connection the subject. It says so before it
// answers the flush that follows.
func subscribeRefused(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}
