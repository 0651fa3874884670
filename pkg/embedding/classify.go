package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// errRequestTimeout marks the client's own limit, as opposed to the caller's deadline.
var errRequestTimeout = errors.New("no answer within the request timeout")

// classify sorts an error of a request into the kinds. The caller's own cancellation stays what it is.
func classify(ctx context.Context, err error, header http.Header) error {
	if ctx.Err() != nil {
		return fmt.Errorf("embed: %w", context.Cause(ctx))
	}
	if api, ok := errors.AsType[*openai.APIError](err); ok {
		return ofStatus(api.HTTPStatusCode, api.Message, fmt.Sprint(api.Code)+" "+api.Type, header)
	}
	if req, ok := errors.AsType[*openai.RequestError](err); ok {
		return ofStatus(req.HTTPStatusCode, bodyMessage(req.Body), "", header)
	}
	if errors.Is(err, errAnswerTooLong) || isJSONError(err) {
		return &Error{Kind: ErrBadAnswer, Message: clip(err.Error())}
	}
	if withURL, ok := errors.AsType[*url.Error](err); ok { // the address may hold a token, and may be nobody's business
		err = withURL.Err
	}
	return &Error{Kind: ErrUnavailable, Message: clip(err.Error()), Err: err}
}

// isJSONError reports an answer that is not the JSON we know. A body that ends early is the
// network's fault and not meant.
func isJSONError(err error) bool {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, types := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || types || strings.Contains(err.Error(), "illegal base64")
}

// bodyMessage finds the words in an error body that is not OpenAI's: {"error": "..."},
// {"message": "..."}, {"detail": "..."}, else the body itself.
func bodyMessage(body []byte) string {
	var fields map[string]any
	if json.Unmarshal(body, &fields) == nil {
		for _, key := range []string{"error", "message", "detail"} {
			if s, ok := fields[key].(string); ok {
				return s
			}
		}
	}
	return string(body)
}

// ofStatus is the error of an answer with a failure status. code holds the provider's machine-readable
// words, when it has any.
func ofStatus(status int, message, code string, header http.Header) error {
	return &Error{
		Kind: kindOf(status, strings.ToLower(message), strings.ToLower(code)), Status: status,
		RetryAfter: retryAfter(header, time.Now()), Message: clip(message),
	}
}

func kindOf(status int, message, code string) error {
	switch {
	case status == http.StatusTooManyRequests && strings.Contains(code, "insufficient_quota"):
		return ErrUnauthorized
	case status == http.StatusTooManyRequests:
		return ErrThrottled
	case status == http.StatusRequestEntityTooLarge:
		return ErrTooLarge
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusFailedDependency:
		return ErrUnavailable
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return kindOfBadRequest(message, code)
	case status >= 400 && status < 500:
		return ErrUnauthorized
	default:
		return ErrUnavailable
	}
}

func kindOfBadRequest(message, code string) error {
	if containsAny(code, "model_not_found", "invalid_api_key") || containsAny(message, modelWords()...) {
		return ErrUnauthorized
	}
	if containsAny(message, tooLargeWords()...) {
		return ErrTooLarge
	}
	return ErrRejected
}

// modelWords are wordings of a request for a model the server does not have.
func modelWords() []string {
	return []string{"model not found", "model does not exist", "unknown model", "no such model", "not a valid model"}
}

// tooLargeWords are wordings of servers whose batch limit was passed.
func tooLargeWords() []string {
	return []string{
		"batch size", "batch is too large", "batch too large", "too many inputs", "too many items",
		"array too long", "array is too long", "maximum number of inputs", "max_client_batch_size",
		"request too large", "payload too large", "input array", "at most", "should not be larger than",
		"max tokens per request", "maximum tokens per request", "max_tokens_per_request",
		"maximum context length", "too many tokens",
	}
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// maxRetryAfter bounds what a provider may ask for: a mistaken date must not stop the work for days.
const maxRetryAfter = 10 * time.Minute

// retryAfter reads the header in its forms: milliseconds, seconds, a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = seconds(ms / 1000)
	} else if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			d = seconds(s)
		} else if at, err := http.ParseTime(v); err == nil {
			d = at.Sub(now)
		}
	}
	return min(max(d, 0), maxRetryAfter)
}

// seconds guards the conversion: NaN and huge values become the bounds.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
}
