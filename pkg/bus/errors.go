package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// Errors that callers may test for.
var (
	// ErrBackpressure: the stream is full or at a quota. Nothing was lost; try later.
	ErrBackpressure = errors.New("stream is full")
	// ErrPermission: the account may not publish or subscribe there.
	ErrPermission = errors.New("permission denied")
	// ErrConsumerMissing: a stream or consumer was removed while in use and did not come back.
	ErrConsumerMissing = errors.New("stream or consumer is missing")
	// ErrTopology: a stream or consumer is absent or differs from what this version needs.
	ErrTopology = errors.New("streams are not up to date")
	// ErrNoEnvelope: what answered a request is no service of Weir.
	ErrNoEnvelope = errors.New("the reply is no envelope")
	// ErrStopping is the cause of a handler's context when the drain time is over.
	ErrStopping = errors.New("stopping")
	// ErrHandlerTimeout is the cause of a handler's context when its time is over.
	ErrHandlerTimeout = errors.New("handler ran out of time")
)

// pauseError is what Pause returns.
type pauseError struct {
	err   error
	after time.Duration
}

func (e *pauseError) Error() string { return fmt.Sprintf("paused: %v", e.err) }
func (e *pauseError) Unwrap() error { return e.err }

// Pause marks err as an outage of something every message of the stage needs, such as the database
// or the embedding provider. The stage stops fetching for retryAfter, or for a growing time when that
// is zero or less, and then tries the message again; no delivery is burnt.
func Pause(err error, retryAfter time.Duration) error {
	if err == nil {
		return nil
	}
	return &pauseError{err: err, after: retryAfter}
}

// Paused reports whether err is an outage and how long to wait, zero when unknown.
func Paused(err error) (time.Duration, bool) {
	var p *pauseError
	if errors.As(err, &p) {
		return p.after, true
	}
	return 0, errors.Is(err, ErrBackpressure)
}

type class int

const (
	classOK class = iota
	classStopping
	classPause
	classPermanent
	classRetry
)

// classify says what an outcome means for the message. A pause outranks a permanent error inside it.
func classify(err error) class {
	if err == nil {
		return classOK
	}
	if errors.Is(err, ErrStopping) {
		return classStopping
	}
	if _, ok := Paused(err); ok {
		return classPause
	}
	if _, ok := messages.AsError(err); ok {
		return classPermanent
	}
	return classRetry
}

// transient are the publish errors after which the message may or may not be stored.
var transient = []error{
	nats.ErrTimeout, nats.ErrDisconnected, nats.ErrNoResponders, nats.ErrConnectionReconnecting,
	nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, nats.ErrNoServers,
	jetstream.ErrAsyncPublishTimeout, jetstream.ErrNoStreamResponse, jetstream.ErrTooManyStalledMsgs,
	jetstream.ErrInvalidJSAck, jetstream.ErrJetStreamPublisherClosed, context.DeadlineExceeded,
}

// JetStream error codes of a refusal for lack of room.
const (
	errCodeInsufficientResources = jetstream.ErrorCode(10023)
	errCodeStorageExceeded       = jetstream.ErrorCode(10047)
	errCodeMemoryExceeded        = jetstream.ErrorCode(10028)
	errCodeAccountResources      = jetstream.ErrorCode(10002)
	errCodeStoreFailed           = jetstream.ErrorCode(10077)
)

// publishError sorts the error of one publish: retry tells that the same id should be tried again.
func publishError(err error) (retry bool, out error) {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		if fullStream(api) {
			return false, fmt.Errorf("%w: %s", ErrBackpressure, api.Description)
		}
		return api.Code >= 500, err
	}
	return slices.ContainsFunc(transient, func(t error) bool { return errors.Is(err, t) }), err
}

// fullStream tells a full stream or quota from disk trouble, which shares its code.
func fullStream(api *jetstream.APIError) bool {
	switch api.ErrorCode {
	case errCodeInsufficientResources, errCodeStorageExceeded, errCodeMemoryExceeded, errCodeAccountResources:
		return true
	case errCodeStoreFailed:
		return strings.Contains(api.Description, "maximum ")
	}
	return false
}

// denied reports that the server refused this connection the subject: the violation arrives apart
// from the publish or request, which itself only times out.
func denied(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return err != nil && errors.Is(err, nats.ErrPermissionViolation) &&
		strings.Contains(strings.ToLower(err.Error()), `"`+strings.ToLower(subject)+`"`)
}

// errorType is a bounded name of an error for spans and metrics.
func errorType(err error) string {
	if e, ok := messages.AsError(err); ok {
		return string(e.Code)
	}
	switch classify(err) {
	case classPause:
		return "paused"
	case classStopping:
		return "stopping"
	}
	return "failed"
}
