package embedding

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

var errAnswerTooLong = errors.New("answer is longer than the limit")

// NewHTTPClient returns a client for embedding servers: connections stay open between requests,
// none is shared with the rest of the process. Close its idle connections when done.
func NewHTTPClient(maxConnections int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		// Go sets TCP_NODELAY on every connection.
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          maxConnections,
		MaxIdleConnsPerHost:   maxConnections,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // vectors hardly shrink and the time is better spent otherwise
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
	}}
}

// doer passes requests on, bounds the answer's length and keeps its headers for the caller: the
// OpenAI library drops them on errors and on base64 answers.
type doer struct {
	http *http.Client
	max  int64
}

type headerKey struct{}

// withHeader returns a context under which the doer stores the answer's headers in the result.
func withHeader(ctx context.Context) (context.Context, *http.Header) {
	h := new(http.Header)
	return context.WithValue(ctx, headerKey{}, h), h
}

func (d *doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.http.Do(req)
	if err != nil {
		if cause := context.Cause(req.Context()); errors.Is(cause, errRequestTimeout) {
			return nil, cause
		}
		return nil, err
	}
	if h, ok := req.Context().Value(headerKey{}).(*http.Header); ok {
		*h = res.Header
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: d.max}
	return res, nil
}

// boundedBody fails, rather than ends, when there is more than the limit. Closing reads a short
// rest, such as a line feed after the JSON, so that the connection can be used again.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errAnswerTooLong
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

func (b *boundedBody) Close() error {
	_, _ = io.CopyN(io.Discard, b.ReadCloser, 4096) // best effort: only the reuse of the connection depends on it
	return b.ReadCloser.Close()
}

// Limits is what a provider says is left of its rate limits; -1 where it says nothing.
type Limits struct {
	RemainingRequests, RemainingTokens int
	ResetRequests, ResetTokens         time.Duration
}

func noLimits() Limits { return Limits{RemainingRequests: -1, RemainingTokens: -1} }

func limitsOf(h http.Header) Limits {
	return Limits{
		RemainingRequests: headerInt(h, "X-Ratelimit-Remaining-Requests"),
		RemainingTokens:   headerInt(h, "X-Ratelimit-Remaining-Tokens"),
		ResetRequests:     headerDuration(h, "X-Ratelimit-Reset-Requests"),
		ResetTokens:       headerDuration(h, "X-Ratelimit-Reset-Tokens"),
	}
}

func headerInt(h http.Header, key string) int {
	n, err := strconv.Atoi(h.Get(key))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// headerDuration reads "1m30s" or plain seconds; 0 when absent or unreadable.
func headerDuration(h http.Header, key string) time.Duration {
	v := h.Get(key)
	d, err := time.ParseDuration(v)
	if err != nil {
		s, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return 0
		}
		d = seconds(s)
	}
	return min(max(d, 0), maxRetryAfter)
}
