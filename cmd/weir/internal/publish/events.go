package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// Watch calls handle with the events of a knowledge base from now on, one at a time and in order, until stop
// is called; stop waits for the last call. Whatever is published after it returned is seen. A kb of "*"
// means every knowledge base of the tenant. It is an ordinary subscription, which a tenant may have:
// events while the connection is down are missed. A user who may not subscribe gets [bus.ErrPermission].
func Watch(nc *nats.Conn, tenant, kb string, handle func(messages.Event)) (stop func(), err error) {
	subject := strings.Join([]string{messages.SubjectEvents, tenant, kb, ">"}, ".")
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) {
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
	if err := nc.FlushTimeout(requestTimeout); err != nil {
		stop()
		return nil, fmt.Errorf("watch events: %w", err)
	}
	if refused(nc, subject) {
		stop()
		return nil, fmt.Errorf("watch events: %w: subscribe to %s", bus.ErrPermission, subject)
	}
	return stop, nil
}

// refused reports that the server has refused this connection the subject. It says so before it answers
// the flush that follows.
func refused(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}
