package embedding

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kinds of failure, to be told apart with errors.Is. Any other error of this package is a bad
// argument or the caller's own cancelled context.
var (
	// ErrUnavailable is an outage: no connection, a timeout, a 5xx answer. Trying later helps.
	ErrUnavailable = errors.New("embedding provider unavailable")
	// ErrThrottled is a rate limit (429). Trying after RetryAfter helps.
	ErrThrottled = errors.New("embedding provider throttles")
	// ErrTooLarge says the request, not a text, is over a limit. A smaller batch helps.
	ErrTooLarge = errors.New("embedding request too large")
	// ErrRejected says the provider will never accept this input.
	ErrRejected = errors.New("embedding provider rejects the text")
	// ErrDimension says the vectors have not the length the space demands.
	ErrDimension = errors.New("embedding dimension mismatch")
	// ErrUnauthorized is a misconfiguration: key, address, model name or plan. An operator helps;
	// until then it is an outage for every text alike.
	ErrUnauthorized = errors.New("embedding provider refuses the configuration")
	// ErrBadAnswer is an answer that cannot be used: not JSON, wrong count, a vector that is zero
	// or not finite, an internal error that only this input provokes. Trying again may help.
	ErrBadAnswer = errors.New("embedding provider sent a bad answer")
)

// Error is a failure of a provider.
type Error struct {
	Kind       error         // one of the kinds above
	Status     int           // HTTP status, 0 when there was no answer
	RetryAfter time.Duration // what the provider asked for, 0 when it did not
	Message    string        // the provider's words, at most 300 bytes
	Err        error         // cause, may be nil
}

// Error says kind, status and the provider's words.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind.Error())
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	} else if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// RetryAfter is how long the provider asked to wait, 0 when err does not say.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

const maxMessageBytes = 300

// clip shortens a provider's message and makes it one line of valid UTF-8.
func clip(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > maxMessageBytes {
		s = strings.ToValidUTF8(s[:maxMessageBytes-3], "") + "..."
	}
	return s
}

// quoteBytes is the shortest run that counts as a quotation of a text.
const quoteBytes = 24

// withoutQuote replaces a message that quotes the text: document text stays out of errors.
func withoutQuote(message, text string) string {
	for i := 0; i+quoteBytes <= len(message); i++ {
		if strings.Contains(text, message[i:i+quoteBytes]) {
			return "(the provider's message quotes the text and is left out)"
		}
	}
	if len(text) < quoteBytes && len(text) > 3 && strings.Contains(message, text) {
		return "(the provider's message quotes the text and is left out)"
	}
	return message
}
