package rerank

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what went wrong with a call.
type Kind string

// Kinds of errors.
const (
	Unreachable Kind = "unreachable"    // no connection, or it broke
	TimedOut    Kind = "timed out"      // the provider's time limit
	Busy        Kind = "busy"           // 429
	Failed      Kind = "failed"         // 5xx
	Refused     Kind = "refused"        // any other status but 200, or a call that may not be made
	Invalid     Kind = "invalid answer" // not what the API promises
	TooLong     Kind = "answer too long"
)

// Error is a failure of a provider. It holds no text of documents, queries or answers.
type Error struct {
	Provider string
	Kind     Kind
	Status   int // of HTTP, 0 when there is none
	Err      error
	after    time.Duration // that the server asks to wait, -1: it says nothing
}

// Error says what failed.
func (e *Error) Error() string {
	out := fmt.Sprintf("rerank provider %s: %s", e.Provider, e.Kind)
	if e.Status != 0 {
		out += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Err != nil {
		out += ": " + e.Err.Error()
	}
	return out
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Short is what callers are told: neither address nor anything that the server said.
func (e *Error) Short() string {
	if e.Status != 0 {
		return fmt.Sprintf("the rerank provider %s: %s (status %d)", e.Provider, e.Kind, e.Status)
	}
	return fmt.Sprintf("the rerank provider %s: %s", e.Provider, e.Kind)
}

// Waits before the second try.
const (
	usualPause = 100 * time.Millisecond
	maxPause   = time.Second // a server that asks for more is not asked again
)

// pause is the wait before a second try, and whether one makes sense.
func pause(err error) (time.Duration, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return 0, false
	}
	again := e.Kind == Unreachable || e.Kind == Busy || e.Status == 502 || e.Status == 503 || e.Status == 504
	if e.after < 0 {
		return usualPause, again
	}
	return e.after, again && e.after <= maxPause
}
