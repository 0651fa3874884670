package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

// provider is the fake embedding server with two more ways to misbehave, by words in the texts: so
// tests that share it do not meet each other's.
type provider struct {
	*fakeserver.Server

	mu      sync.Mutex
	texts   []string
	held    map[string]chan struct{}
	waiting map[string]int
	refused map[string]bool
}

func newProvider(dims int) *provider {
	return &provider{
		Server: fakeserver.New(fakeserver.Options{Dims: dims}),
		held:   map[string]chan struct{}{}, waiting: map[string]int{}, refused: map[string]bool{},
	}
}

// ServeHTTP waits or refuses as the texts say, and passes on.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var req struct {
		Input []string `json:"input"`
	}
	_ = json.Unmarshal(body, &req) // the server behind says what is wrong with it
	if !p.wait(r, req.Input) {
		return
	}
	if p.refuses(req.Input) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"the input is invalid","type":"invalid_request_error"}}`)
		return
	}
	p.mu.Lock()
	p.texts = append(p.texts, req.Input...)
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.Server.ServeHTTP(w, r)
}

// wait keeps a request back while one of its texts holds a held word; false when the client left.
func (p *provider) wait(r *http.Request, texts []string) bool {
	p.mu.Lock()
	var gate chan struct{}
	for word, g := range p.held {
		if holds(texts, word) {
			gate = g
			p.waiting[word]++
		}
	}
	p.mu.Unlock()
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (p *provider) refuses(texts []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for word, on := range p.refused {
		if on && holds(texts, word) {
			return true
		}
	}
	return false
}

func holds(texts []string, word string) bool {
	for _, t := range texts {
		if strings.Contains(t, word) {
			return true
		}
	}
	return false
}

// hold keeps requests with the word waiting until release is called, which may be called twice.
func (p *provider) hold(word string) (release func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[word] = gate
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.held, word)
		close(gate)
	})
}

// waitingFor is how many requests with the word have come to wait.
func (p *provider) waitingFor(word string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting[word]
}

// refuse makes requests with the word a 400, or no longer.
func (p *provider) refuse(word string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[word] = on
}

// embedded is how many texts with the word got a vector.
func (p *provider) embedded(word string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, t := range p.texts {
		if strings.Contains(t, word) {
			n++
		}
	}
	return n
}
