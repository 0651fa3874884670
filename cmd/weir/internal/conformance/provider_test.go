package conformance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
)

// dims is the length of all vectors.
const dims = 8

// embeddings serves the vectors of the fixtures over the OpenAI API. It misbehaves for texts that hold
// certain words, so that cases do not meet each other's faults.
type embeddings struct {
	fake embedding.Fake

	mu      sync.Mutex
	vectors map[string][]float32
	asked   map[string]int // how often each text was sent
	knobs   map[string]*knob
}

// knob is what happens to requests with a word in a text.
type knob struct {
	delay  time.Duration
	status int
	gate   chan struct{} // nil: open
}

// embeddingStep sets what happens to texts that hold a word, until a later step sets something else.
type embeddingStep struct {
	Word   string `json:"word"`
	Delay  string `json:"delay"`  // before the answer, as 200ms
	Status int    `json:"status"` // of the answer, in place of vectors
	Hold   bool   `json:"hold"`   // no answer until another step for this word
}

func newEmbeddings() *embeddings {
	return &embeddings{
		fake: embedding.Fake{Dims: dims}, vectors: map[string][]float32{}, asked: map[string]int{}, knobs: map[string]*knob{},
	}
}

// know adds vectors; a text has one throughout the suite.
func (e *embeddings) know(vectors map[string][]float64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for text, given := range vectors {
		if len(given) > dims {
			return fmt.Errorf("the vector of %q has %d dimensions, at most %d", text, len(given), dims)
		}
		v := make([]float32, dims)
		for i, x := range given {
			v[i] = float32(x)
		}
		if old, ok := e.vectors[text]; ok && !slices.Equal(old, v) {
			return fmt.Errorf("%q has two vectors", text)
		}
		e.vectors[text] = v
	}
	return nil
}

func (e *embeddings) set(s *embeddingStep) error {
	k := &knob{status: s.Status}
	if s.Delay != "" {
		var err error
		if k.delay, err = time.ParseDuration(s.Delay); err != nil {
			return err
		}
	}
	if s.Hold {
		k.gate = make(chan struct{})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if old := e.knobs[s.Word]; old != nil && old.gate != nil {
		close(old.gate)
	}
	e.knobs[s.Word] = k
	return nil
}

// release lets everything held go.
func (e *embeddings) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range e.knobs {
		if k.gate != nil {
			close(k.gate)
			k.gate = nil
		}
	}
}

// times is how often a text was sent.
func (e *embeddings) times(text string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[text]
}

func (e *embeddings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status := e.misbehave(r, in.Input); status != 0 {
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, `{"error":{"message":"as the case wants it","type":"invalid_request_error"}}`)
		return
	}
	type item struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	out := struct {
		Object string `json:"object"`
		Model  string `json:"model"`
		Data   []item `json:"data"`
	}{Object: "list", Model: in.Model}
	for i, text := range in.Input {
		out.Data = append(out.Data, item{"embedding", i, e.vector(text)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client left
}

// misbehave waits and gives the status that the texts want; 0 is none.
func (e *embeddings) misbehave(r *http.Request, texts []string) (status int) {
	var delay time.Duration
	var gates []chan struct{}
	e.mu.Lock()
	for _, text := range texts {
		e.asked[text]++
		for word, k := range e.knobs {
			if !strings.Contains(text, word) {
				continue
			}
			delay, status = max(delay, k.delay), cmp.Or(k.status, status)
			if k.gate != nil {
				gates = append(gates, k.gate)
			}
		}
	}
	e.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	for _, gate := range gates {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}
	return status
}

func (e *embeddings) vector(text string) []float32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v, ok := e.vectors[text]; ok {
		return v
	}
	return e.fake.Vector(text)
}
