package embedding

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
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

// doer passes requests on, bounds the answer's length and keeps for the caller what the OpenAI library drops or is slow
// to read.
type doer struct {
	http    *http.Client
	max     int64
	buffers sync.Pool // of *bytes.Buffer, for answers
}

// exchange is what the doer keeps of an answer.
type exchange struct {
	texts   int                // whose vectors are asked for in base64
	header  http.Header        // the library drops them on errors and on base64 answers
	vectors []openai.Embedding // taken out of the answer; nil when they are in it still
}

type exchangeKey struct{}

// withExchange returns a context under which the doer keeps what it learns of the answer, and takes the vectors of so
// many texts out of it.
func withExchange(ctx context.Context, texts int) (context.Context, *exchange) {
	x := &exchange{texts: texts}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

func (d *doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.http.Do(req)
	if err != nil {
		if cause := context.Cause(req.Context()); errors.Is(cause, errRequestTimeout) {
			return nil, cause
		}
		return nil, err
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: d.max}
	if x, ok := req.Context().Value(exchangeKey{}).(*exchange); ok {
		x.header = res.Header
		if x.texts > 0 && res.StatusCode == http.StatusOK {
			d.take(res, x)
		}
	}
	return res, nil
}

// maxAhead bounds the room made on an answer's word about its length.
const maxAhead = 4 << 20

// take reads the answer and takes the vectors out of it. What it does not know is left to the library, as is what went
// wrong while reading.
func (d *doer) take(res *http.Response, x *exchange) {
	buf, ok := d.buffers.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	buf.Reset()
	buf.Grow(int(min(max(res.ContentLength, 0), maxAhead)) + bytes.MinRead)
	_, err := buf.ReadFrom(res.Body)
	if err != nil {
		res.Body = readCloser{io.MultiReader(buf, failing{err}), res.Body}
		return
	}
	vectors, rest, ok := cutVectors(buf.Bytes(), x.texts)
	if !ok {
		res.Body = readCloser{buf, res.Body} // which keeps the buffer
		return
	}
	x.vectors = vectors
	d.buffers.Put(buf)
	res.Body = readCloser{bytes.NewReader(rest), res.Body}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// failing is a reader of nothing but an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// boundedBody fails, rather than ends, when there is more than the limit. Closing reads a short
// rest, such as a line feed after the JSON, so that the connection can be used again.
type boundedBody struct {
	io.ReadCloser
	left int64 // negative once there was more
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errAnswerTooLong
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, errAnswerTooLong
	}
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
