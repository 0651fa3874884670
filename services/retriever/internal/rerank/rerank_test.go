package rerank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
)

// saying answers every request alike.
func saying(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// kind is what sort of error it is; "" for none.
func kind(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func TestAnswersThatAreWrong(t *testing.T) {
	for name, body := range map[string]string{
		"an index too high":        `{"results":[{"index":4,"relevance_score":1}]}`,
		"an index below zero":      `{"results":[{"index":-1,"relevance_score":1}]}`,
		"an index twice":           `{"results":[{"index":1,"relevance_score":1},{"index":1,"relevance_score":0.5}]}`,
		"an index twice in a list": `[{"index":1,"score":1},{"index":1,"score":0.5}]`,
		"no index":                 `{"results":[{"relevance_score":1}]}`,
		"an index of text":         `{"results":[{"index":"1","relevance_score":1}]}`,
		"half an index":            `{"results":[{"index":0.5,"relevance_score":1}]}`,
		"no score":                 `{"results":[{"index":1}]}`,
		"a score of null":          `{"results":[{"index":1,"relevance_score":null}]}`,
		"NaN":                      `{"results":[{"index":1,"relevance_score":NaN}]}`,
		"beyond all numbers":       `{"results":[{"index":1,"relevance_score":1e999}]}`,
		"no results":               `{"results":[]}`,
		"an empty list":            `[]`,
		"another form":             `{"data":[{"index":0,"score":1}]}`,
		"an error with status 200": `{"error":"out of memory","error_type":"backend"}`,
		"null":                     `null`,
		"nothing":                  ``,
		"no JSON":                  `<html>secret text</html>`,
		"cut":                      `{"results":[{"index":0,"relevance_sc`,
		"two values":               `[{"index":0,"score":1}] [{"index":0,"score":1}]`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, service.RerankProvider{}, saying(200, body))
			_, err := f.models.Rerank(t.Context(), tyres)
			if kind(err) != Invalid {
				t.Errorf("got %v, want %s", err, Invalid)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the answer: %v", err)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]Kind{
		400: Refused, 401: Refused, 404: Refused, 413: Refused, 422: Refused, 424: Refused, 429: Busy, 500: Failed, 503: Failed, 204: Refused, 307: Refused,
	} {
		var calls atomic.Int32
		f := newFake(t, service.RerankProvider{APIKey: "k3y"}, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Retry-After", "0")
			saying(status, `{"error":"secret text","error_type":"Validation"}`)(w, nil)
		})
		_, err := f.models.Rerank(t.Context(), tyres)
		var e *Error
		if !errors.As(err, &e) || e.Kind != want || e.Status != status {
			t.Errorf("status %d: got %v, want %s", status, err, want)
			continue
		}
		for _, text := range []string{e.Error(), e.Short()} {
			if strings.Contains(text, "secret") || strings.Contains(text, "k3y") || strings.Contains(text, f.URL) || !strings.Contains(text, "local") {
				t.Errorf("status %d: the error says %q", status, text)
			}
		}
		if n, again := calls.Load(), status == 429 || status == 503; again != (n == 2) || !again && n != 1 {
			t.Errorf("status %d: %d calls", status, n)
		}
	}
}

const good = `{"results":[{"index":0,"relevance_score":0.5}]}`

func TestASecondTry(t *testing.T) {
	for name, c := range map[string]struct {
		after string
		calls int32
	}{
		"at once": {"0", 2}, "in its own time": {"", 2}, "not after an hour": {"3600", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			f := newFake(t, service.RerankProvider{}, func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) == 1 {
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				saying(200, good)(w, nil)
			})
			got, err := f.models.Rerank(t.Context(), tyres)
			if (err == nil) != (c.calls == 2) || calls.Load() != c.calls {
				t.Errorf("got %+v, %v after %d calls", got, err, calls.Load())
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	f := newFake(t, service.RerankProvider{}, saying(200, good))
	f.Server.Close()
	_, err := f.models.Rerank(t.Context(), tyres)
	if kind(err) != Unreachable || strings.Contains(err.Error(), "/v1/rerank") {
		t.Errorf("got %v", err)
	}
	if _, err := f.models.Rerank(t.Context(), Query{Provider: "other", Documents: []string{"x"}}); kind(err) != Refused {
		t.Errorf("another provider: got %v", err)
	}
	if got, err := f.models.Rerank(t.Context(), Query{Provider: "local"}); err != nil || len(got.Scores) != 0 {
		t.Errorf("no documents: got %v, %v, want no call", got, err)
	}
}

// stuck answers when the test ends.
func stuck(t *testing.T) http.HandlerFunc {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the end of a connection noticed
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}
}

func TestTime(t *testing.T) { // D-26
	short, long := service.Duration(50*time.Millisecond), service.Duration(time.Hour)
	for name, c := range map[string]struct {
		timeout  service.Duration
		deadline time.Duration
		noTime   bool
	}{
		"the provider's limit":                 {short, time.Hour, false},
		"the provider's limit and no deadline": {short, 0, false},
		"the request's deadline":               {long, 200 * time.Millisecond, true},
		"too late to begin":                    {long, 5 * time.Millisecond, true},
		"past it":                              {long, -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, service.RerankProvider{Timeout: c.timeout}, stuck(t))
			ctx := t.Context()
			if c.deadline != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			_, err := f.models.Rerank(ctx, tyres)
			if errors.Is(err, ErrNoTime) != c.noTime || !c.noTime && kind(err) != TimedOut {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTimeIsLeftForTheReply(t *testing.T) {
	for _, c := range []struct {
		left, timeout, most time.Duration
		late                bool
	}{
		{time.Hour, time.Minute, time.Minute, false},
		{time.Minute, time.Hour, time.Minute - 100*time.Millisecond, true},
		{200 * time.Millisecond, time.Hour, 150 * time.Millisecond, true},
		{12 * time.Millisecond, time.Hour, 0, true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.left)
		room, late := budget(ctx, c.timeout)
		cancel()
		if late != c.late || room > c.most || c.most > 150*time.Millisecond && room < c.most-10*time.Second {
			t.Errorf("%s left, a limit of %s: got %s, %v, want %s", c.left, c.timeout, room, late, c.most)
		}
	}
}

func TestCancelled(t *testing.T) {
	entered := make(chan struct{}, 1)
	wait := stuck(t)
	f := newFake(t, service.RerankProvider{}, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		wait(w, r)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.models.Rerank(ctx, tyres)
		done <- err
	}()
	within(t, entered)
	cause := errors.New("a sibling failed")
	cancel(cause)
	if err := within(t, done); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func within[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(testkit.Patience):
		t.Fatal("nothing came")
	}
	return v
}

func TestAnswerWithoutEnd(t *testing.T) {
	f := newFake(t, service.RerankProvider{}, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(" ", 64<<10))); err != nil {
				return
			}
		}
	})
	if _, err := f.models.Rerank(t.Context(), tyres); kind(err) != TooLong {
		t.Errorf("got %v, want %s", err, TooLong)
	}
}

// echo scores each text by its length and notes what it was sent.
type echo struct {
	mu    sync.Mutex
	sizes []int
	texts []string
	now   atomic.Int32
	most  atomic.Int32
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := e.now.Add(1)
	defer e.now.Add(-1)
	for m := e.most.Load(); n > m && !e.most.CompareAndSwap(m, n); m = e.most.Load() {
	}
	var in struct{ Documents []string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(400)
		return
	}
	e.mu.Lock()
	e.sizes, e.texts = append(e.sizes, len(in.Documents)), append(e.texts, in.Documents...)
	e.mu.Unlock()
	var results []string
	for i, d := range in.Documents {
		results = append(results, fmt.Sprintf(`{"index":%d,"relevance_score":%d}`, i, len(d)))
	}
	fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
}

func TestBatches(t *testing.T) {
	e := &echo{}
	f := newFake(t, service.RerankProvider{BatchDocuments: 3, InFlight: 2}, e.ServeHTTP)
	q := Query{Provider: "local", Text: "x"}
	for i := range 20 {
		q.Documents = append(q.Documents, strings.Repeat("x", i+1))
	}
	got, err := f.models.Rerank(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got.Scores {
		if !s.Known || s.Value != float64(i+1) {
			t.Errorf("text %d: got %+v", i, s)
		}
	}
	slices.Sort(e.sizes)
	if !slices.Equal(e.sizes, []int{2, 3, 3, 3, 3, 3, 3}) || e.most.Load() > 2 {
		t.Errorf("batches %v, %d at once", e.sizes, e.most.Load())
	}
}

func TestBounds(t *testing.T) {
	e := &echo{}
	f := newFake(t, service.RerankProvider{MaxDocuments: 2, MaxDocumentBytes: 5}, e.ServeHTTP)
	got, err := f.models.Rerank(t.Context(), Query{Provider: "local", Text: "x", Documents: []string{"abcdé", "12345"}})
	if err != nil || got.Cut != 1 || !slices.Equal(e.texts, []string{"abcd", "12345"}) {
		t.Errorf("got %+v, %v, sent %q", got, err, e.texts)
	}
	if _, err := f.models.Rerank(t.Context(), Query{Provider: "local", Text: "x", Documents: make([]string, 3)}); kind(err) != Refused {
		t.Errorf("three documents: got %v", err)
	}
	if n := f.models.MaxDocuments("local"); n != 2 {
		t.Errorf("most documents: got %d", n)
	}
}

func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if _, err := New(service.RerankProviders{{Name: "local", APIKeyFile: file}}, nil); err == nil {
		t.Error("a missing key file passes")
	}
	if err := os.WriteFile(file, []byte("fr0mfile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var sent atomic.Value
	f := newFake(t, service.RerankProvider{APIKeyFile: file}, func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		saying(200, good)(w, nil)
	})
	if _, err := f.models.Rerank(t.Context(), tyres); err != nil || sent.Load() != "Bearer fr0mfile" {
		t.Errorf("sent %v, %v", sent.Load(), err)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{good, `[{"index":0,"score":1}]`, `{"results":[{"index":1,"relevance_score":-1e308}]}`, `[`, `null`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		scores := make([]Score, max(0, min(n, 100)))
		if err := read(data, scores); err == nil && !slices.ContainsFunc(scores, func(s Score) bool { return s.Known }) {
			t.Error("an answer without scores passes")
		}
	})
}

type brokenTransport struct{}

func (brokenTransport) RoundTrip(*http.Request) (*http.Response, error) { panic("broken") }

// A panic is no answer that came too late: it must come out as what it is.
func TestAPanicFailsThatRerankOnly(t *testing.T) {
	f := newFake(t, service.RerankProvider{BatchDocuments: 1}, saying(200, good))
	f.models.http.Transport = brokenTransport{}
	_, err := f.models.Rerank(t.Context(), tyres)
	if told, _ := messages.AsError(err); told == nil || told.Code != messages.CodeInternal || kind(err) != "" {
		t.Errorf("got %v, want INTERNAL", err)
	}
	f.models.http.Transport = http.DefaultTransport
	if _, err := f.models.Rerank(t.Context(), tyres); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
