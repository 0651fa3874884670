package conformance_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
)

// storeStep is a store behind the Go interface that answers what the case says.
type storeStep struct {
	Vector []client.SearchResult `json:"vector"` // what the modes find
	Sparse []client.SearchResult `json:"sparse"` // hybrid joins both lists as it is told
	Dims   int                   `json:"dims"`   // of query vectors; 0: any
	Delay  string                `json:"delay"`
	Code   messages.Code         `json:"code"` // of the error of every search
	// FailsFor are words of queries whose search fails with UNAVAILABLE, at once.
	FailsFor string `json:"failsFor"`
	Error    string `json:"error"`  // an error without a code; deadline: that of a deadline
	Closer   string `json:"closer"` // none, error (Close() error) or plain (Close())
}

// stubStore counts what is asked of it.
type stubStore struct {
	storeStep
	mu        sync.Mutex
	queries   []client.StoreQuery
	cancelled int
	closed    int
}

func newStore(s *storeStep) *stubStore {
	if s == nil {
		s = &storeStep{}
	}
	return &stubStore{storeStep: *s}
}

func (s *stubStore) Search(ctx context.Context, q client.StoreQuery) ([]client.SearchResult, error) {
	s.mu.Lock()
	s.queries = append(s.queries, q)
	s.mu.Unlock()
	switch {
	case s.FailsFor != "" && strings.Contains(q.Text, s.FailsFor):
		return nil, messages.Errorf(messages.CodeUnavailable, "as the case wants it")
	case s.Dims != 0 && q.Vector != nil && len(q.Vector) != s.Dims:
		return nil, messages.Invalid("vector", "has another dimension")
	}
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	switch {
	case s.Code != "":
		return nil, messages.Errorf(s.Code, "as the case wants it")
	case s.Error == "deadline":
		return nil, context.DeadlineExceeded
	case s.Error != "":
		return nil, errors.New(s.Error)
	}
	list, err := s.list(q)
	return list[:min(len(list), q.TopK)], err
}

func (s *stubStore) wait(ctx context.Context) error {
	d, err := time.ParseDuration(s.Delay)
	if err != nil {
		return nil //nolint:nilerr // no delay is given
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		s.cancelled++
		s.mu.Unlock()
		return context.Cause(ctx)
	}
}

func (s *stubStore) list(q client.StoreQuery) ([]client.SearchResult, error) {
	switch q.Mode {
	case client.ModeVector:
		return s.Vector, nil
	case client.ModeSparse:
		return s.Sparse, nil
	}
	lists, weights := [][]client.SearchResult{s.Vector, s.Sparse}, []float64{1, 1}
	if q.Alpha != nil {
		weights = []float64{*q.Alpha, 1 - *q.Alpha}
	}
	fused, err := fusion.FuseRRF(lists, weights, fusion.DefaultK, func(r client.SearchResult) string { return r.ID })
	out := make([]client.SearchResult, len(fused))
	for i, f := range fused {
		out[i] = f.Item
		out[i].Score = f.Score
	}
	return out, err
}

func (s *stubStore) count() (queries, cancelled, closed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queries), s.cancelled, s.closed
}

func (s *stubStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

// withErrorCloser and withPlainCloser are the stub with either way to close.
type (
	withErrorCloser struct{ *stubStore }
	withPlainCloser struct{ *stubStore }
)

func (s withErrorCloser) Close() error { s.close(); return nil }
func (s withPlainCloser) Close()       { s.close() }

// closable is the store with the way to close that the case gives it.
func (s *stubStore) closable(t testing.TB) client.VectorStore {
	t.Helper()
	switch s.Closer {
	case "", "none":
		return s
	case "error":
		return withErrorCloser{s}
	case "plain":
		return withPlainCloser{s}
	}
	t.Fatalf("closer %q", s.Closer)
	return nil
}

// embedderStep is an embedder behind the Go interface.
type embedderStep struct {
	Vector []float32     `json:"vector"`
	Code   messages.Code `json:"code"` // of its error
}

type stubEmbedder struct {
	embedderStep
	mu    sync.Mutex
	calls int
}

func newEmbedder(s *embedderStep) *stubEmbedder {
	if s == nil {
		return nil
	}
	return &stubEmbedder{embedderStep: *s}
}

// orNil is no embedder at all where the case gives none.
func (e *stubEmbedder) orNil() client.Embedder {
	if e == nil {
		return nil
	}
	return e
}

func (e *stubEmbedder) Embed(context.Context, string) ([]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if e.Code != "" {
		return nil, messages.Errorf(e.Code, "as the case wants it")
	}
	return e.Vector, nil
}

func (e *stubEmbedder) count() int {
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}
