// Package fakeserver serves the deterministic vectors of embedding.Fake over the OpenAI embeddings
// API, with scripted faults, for tests, benchmarks and chaos runs. It answers at once and keeps nothing.
package fakeserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
)

// Options describe the server. The zero value serves 384 dimensions without limits.
type Options struct {
	Dims     int           // default 384
	APIKey   string        // demanded as a bearer token when set
	Latency  time.Duration // of every answer
	MaxItems int           // more texts in a request: 400 "batch size", 0 for no limit
	MaxBytes int           // more bytes of text: 413, 0 for no limit
	// MaxTextBytes is the longest text, 0 for no limit: a longer one is a 400 about context length.
	MaxTextBytes int
	// Poison texts: a request with a text that contains it is a 400 that names no text.
	Poison string
	// Fragile texts: a request with a text that contains it is a 500.
	Fragile string
	// FloatsOnly ignores encoding_format, RefuseBase64 answers 400 to base64: both exist.
	FloatsOnly, RefuseBase64 bool
}

// Fault replaces the answer to one request.
type Fault struct {
	Status     int           // answer with this status
	RetryAfter string        // header of the answer, when not empty
	Message    string        // of the error body
	Code       string        // of the error body
	Delay      time.Duration // before the answer, which is a good one when Status is 0
	Dims       int           // vectors of another length
	Hang       bool          // no answer until the client leaves
	Drop       bool          // close the connection
	Body       string        // status 200 with this body
	Swap       bool          // the vectors in reverse order, with the right indexes
	Short      bool          // one vector is missing
	Zero       bool          // the first vector is zero
}

// Server is an http.Handler. Safe for concurrent use.
type Server struct {
	opts Options
	fake embedding.Fake

	mu       sync.Mutex
	script   []Fault
	always   *Fault
	requests int
	texts    int
	largest  int
}

// New returns a server.
func New(opts Options) *Server {
	if opts.Dims == 0 {
		opts.Dims = 384
	}
	return &Server{opts: opts, fake: embedding.Fake{Dims: opts.Dims}}
}

// Enqueue makes the next requests meet the faults, one each, in order.
func (s *Server) Enqueue(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, faults...)
}

// Always makes every request meet the fault once the script is used up; nil ends that.
func (s *Server) Always(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = f
}

// Requests is how many requests came in, Texts how many texts got a vector, Largest the most texts
// in one request that got vectors.
func (s *Server) Requests() int { s.mu.Lock(); defer s.mu.Unlock(); return s.requests }

// Texts is how many texts got a vector.
func (s *Server) Texts() int { s.mu.Lock(); defer s.mu.Unlock(); return s.texts }

// Largest is the most texts of a request that got vectors.
func (s *Server) Largest() int { s.mu.Lock(); defer s.mu.Unlock(); return s.largest }

// next counts the request and takes its fault.
func (s *Server) next() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if len(s.script) > 0 {
		f := s.script[0]
		s.script = s.script[1:]
		return f
	}
	if s.always != nil {
		return *s.always
	}
	return Fault{}
}

func (s *Server) served(texts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts += texts
	s.largest = max(s.largest, texts)
}

// request is the body of POST /v1/embeddings.
type request struct {
	Input          []string `json:"input"`
	Model          string   `json:"model"`
	EncodingFormat string   `json:"encoding_format"`
}

const maxRequestBytes = 64 << 20

// ServeHTTP answers POST /v1/embeddings and GET /health.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/health" || r.URL.Path == "/v1/health":
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	case r.URL.Path != "/v1/embeddings" && r.URL.Path != "/embeddings":
		fail(w, http.StatusNotFound, "no such page", "")
	case r.Method != http.MethodPost:
		fail(w, http.StatusMethodNotAllowed, "POST only", "")
	case s.opts.APIKey != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.APIKey:
		fail(w, http.StatusUnauthorized, "incorrect API key provided", "invalid_api_key")
	default:
		s.embeddings(w, r)
	}
}

func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	fault := s.next()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "request body too large", "")
		return
	}
	if !pause(r.Context(), s.opts.Latency+fault.Delay) || s.broken(w, r, fault) {
		return
	}
	var req request
	texts, err := decode(body, &req)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	if status, message := s.refuse(req, texts); status != 0 {
		fail(w, status, message, "")
		return
	}
	s.served(len(texts))
	s.answer(w, req, texts, fault)
}

// pause waits and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// broken plays faults without vectors; false when there is none.
func (s *Server) broken(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Body != "":
		_, _ = io.WriteString(w, f.Body)
	case f.Status != 0:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		fail(w, f.Status, f.Message, f.Code)
	default:
		return false
	}
	return true
}

// decode reads the body, whose input may be one string too.
func decode(body []byte, req *request) ([]string, error) {
	err := json.Unmarshal(body, req)
	if err != nil {
		var one struct{ Input string }
		if json.Unmarshal(body, &one) != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
		return []string{one.Input}, nil
	}
	if len(req.Input) == 0 {
		return nil, errors.New("input: must be a string or a list of strings, not empty")
	}
	return req.Input, nil
}

// refuse applies the limits; status 0 accepts.
func (s *Server) refuse(req request, texts []string) (status int, message string) {
	if s.opts.RefuseBase64 && req.EncodingFormat == "base64" {
		return http.StatusBadRequest, "encoding_format: only float is supported"
	}
	if s.opts.MaxItems > 0 && len(texts) > s.opts.MaxItems {
		return http.StatusBadRequest, fmt.Sprintf("batch size %d > maximum allowed batch size %d", len(texts), s.opts.MaxItems)
	}
	total := 0
	for _, t := range texts {
		total += len(t)
		if s.opts.MaxTextBytes > 0 && len(t) > s.opts.MaxTextBytes {
			return http.StatusBadRequest, fmt.Sprintf("this model's maximum context length is %d tokens", s.opts.MaxTextBytes/4)
		}
		if s.opts.Poison != "" && strings.Contains(t, s.opts.Poison) {
			return http.StatusBadRequest, "the input is invalid"
		}
		if s.opts.Fragile != "" && strings.Contains(t, s.opts.Fragile) {
			return http.StatusInternalServerError, "unsupported value: NaN"
		}
	}
	if s.opts.MaxBytes > 0 && total > s.opts.MaxBytes {
		return http.StatusRequestEntityTooLarge, "payload too large"
	}
	return 0, ""
}

// answer writes the vectors by hand: encoding/json would cost more than everything else.
func (s *Server) answer(w http.ResponseWriter, req request, texts []string, f Fault) {
	fake := s.fake
	if f.Dims > 0 {
		fake.Dims = f.Dims
	}
	tokens, n := 0, len(texts)
	for _, t := range texts {
		tokens += embedding.EstimateTokens(t)
	}
	if f.Short {
		n--
	}
	out := make([]byte, 0, 256+n*(fake.Dims*6+64))
	out = append(out, `{"object":"list","data":[`...)
	for k := range n {
		i := k
		if f.Swap {
			i = n - 1 - k
		}
		if k > 0 {
			out = append(out, ',')
		}
		v := fake.Vector(texts[i])
		if f.Zero && i == 0 {
			clear(v)
		}
		out = appendItem(out, i, v, req.EncodingFormat == "base64" && !s.opts.FloatsOnly)
	}
	out = append(out, `],"model":`...)
	model, _ := json.Marshal(req.Model) // a string always encodes
	out = append(out, model...)
	out = append(out, fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d}}`, tokens, tokens)...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = w.Write(out) // a client that left needs no answer
}

func appendItem(out []byte, index int, v []float32, base64Form bool) []byte {
	out = append(out, `{"object":"embedding","index":`...)
	out = strconv.AppendInt(out, int64(index), 10)
	out = append(out, `,"embedding":`...)
	if base64Form {
		out = append(out, '"')
		out = base64.StdEncoding.AppendEncode(out, embedding.EncodeVector(v))
		return append(out, '"', '}')
	}
	for i, x := range v {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		out = append(out, sep)
		if math.Trunc(float64(x)) == float64(x) {
			out = strconv.AppendInt(out, int64(x), 10)
		} else {
			out = strconv.AppendFloat(out, float64(x), 'g', -1, 32)
		}
	}
	return append(out, ']', '}')
}

func fail(w http.ResponseWriter, status int, message, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "code": code}}
	_ = json.NewEncoder(w).Encode(body) // a client that left needs no answer
}

// ListenAndServe serves at addr until ctx ends, then closes every connection. ready, when not nil, is
// called with the base URL once the server listens; an addr with port 0 takes any free one.
func ListenAndServe(ctx context.Context, addr string, opts Options, ready func(baseURL string)) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for fake embeddings: %w", err)
	}
	srv := &http.Server{Handler: New(opts), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // Serve reports what matters
	defer stop()
	if ready != nil {
		ready("http://" + l.Addr().String() + "/v1")
	}
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve fake embeddings: %w", err)
	}
	return nil
}
