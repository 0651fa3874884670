// Package rerank has rerank models score texts for a query, over HTTP: by the common rerank API, as served by
// vLLM, Infinity, Jina, Cohere and others, and by the one of Text Embeddings Inference.
//
// Scores belong to places in the list of texts, so equal texts keep their own. Texts, queries and keys are in no
// error and no log.
package rerank

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/service"
)

// ErrNoTime says that the request's own deadline leaves no time for the call, or ended it: the provider is not to
// blame.
var ErrNoTime = errors.New("no time is left for the rerank model")

// Defaults of a provider.
const (
	defaultTimeout   = 5 * time.Second
	defaultDocuments = 1000
	defaultBytes     = 16 << 10
	defaultInFlight  = 8
)

// Models are the providers of a process, with one HTTP client. Safe for concurrent use.
type Models struct {
	http      *http.Client
	metrics   *metrics
	providers map[string]*provider
}

// New returns the providers of the settings, which must be valid, and reads their keys. They are counted by meters;
// nil: they are not.
func New(list service.RerankProviders, meters metric.MeterProvider) (*Models, error) {
	counted, err := newMetrics(meters)
	if err != nil {
		return nil, err
	}
	m := &Models{metrics: counted, providers: map[string]*provider{}}
	conns := 0
	for _, s := range list {
		key, err := s.Key()
		if err != nil {
			return nil, err
		}
		p := &provider{RerankProvider: s, key: key, metrics: counted}
		p.fill()
		p.slots = make(chan struct{}, p.InFlight)
		conns += p.InFlight
		m.providers[p.Name] = p
	}
	m.http = newHTTP(conns)
	for _, p := range m.providers {
		p.http = m.http
	}
	return m, nil
}

func newHTTP(conns int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        conns,
			MaxIdleConnsPerHost: conns,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 5 * time.Second,
		},
		// The key and the texts go where the settings say and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes idle connections; calls under way keep theirs.
func (m *Models) Close() { m.http.CloseIdleConnections() }

// MaxDocuments is how many texts a provider takes, 0 when there is no such provider.
func (m *Models) MaxDocuments(provider string) int {
	if p := m.providers[provider]; p != nil {
		return p.MaxDocuments
	}
	return 0
}

// MaxDocumentBytes is how many bytes of a text a provider is sent, 0 when there is no such provider.
func (m *Models) MaxDocumentBytes(provider string) int {
	if p := m.providers[provider]; p != nil {
		return p.MaxDocumentBytes
	}
	return 0
}

// Query is texts to be scored.
type Query struct {
	Provider  string
	Model     string // empty: the provider's only one
	Text      string // what is looked for
	Documents []string
}

// Answer is the scores, in the order of the documents.
type Answer struct {
	Scores []Score
	Cut    int // documents that were longer than the provider takes
}

// Score is what a model says of a text. Not Known: it left the text out.
type Score struct {
	Value float64 // finite, larger is better
	Known bool
}

// Rerank has the documents of q scored within the time of ctx, less what the reply needs. Without documents nothing
// is called. Errors are ErrNoTime, *Error, and that of ctx when it was cancelled.
func (m *Models) Rerank(ctx context.Context, q Query) (Answer, error) {
	p := m.providers[q.Provider]
	switch {
	case p == nil:
		return Answer{}, &Error{Provider: q.Provider, Kind: Refused, Err: errors.New("is not configured")}
	case len(q.Documents) > p.MaxDocuments:
		return Answer{}, &Error{Provider: p.Name, Kind: Refused, Err: fmt.Errorf("%d documents, at most %d are taken", len(q.Documents), p.MaxDocuments)}
	case len(q.Documents) == 0:
		return Answer{}, nil
	}
	began := time.Now()
	answer, err := p.inTime(ctx, q)
	m.metrics.reranked(ctx, p.Name, len(q.Documents), time.Since(began), err)
	return answer, err
}

// inTime makes the calls within the time there is.
func (p *provider) inTime(ctx context.Context, q Query) (Answer, error) {
	room, late := budget(ctx, time.Duration(p.Timeout))
	if room <= 0 {
		return Answer{}, ErrNoTime
	}
	within, cancel := context.WithTimeout(ctx, room)
	defer cancel()
	answer, err := p.rerank(within, q)
	var known *Error
	_, panicked := guard.Caught(err)
	switch {
	case err == nil, panicked, errors.As(err, &known):
		return answer, err
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return Answer{}, context.Cause(ctx)
	case late || ctx.Err() != nil:
		return Answer{}, fmt.Errorf("%w: %w", ErrNoTime, err)
	}
	return Answer{}, &Error{Provider: p.Name, Kind: TimedOut, Err: fmt.Errorf("no answer within %s", room)}
}

// Time of a request that a rerank leaves for the reply, at most a quarter of what there is, and the least that
// a call is worth trying with.
const (
	forReply = 100 * time.Millisecond
	leastRun = 10 * time.Millisecond
)

// budget is the time that a rerank may take, 0 when it is not worth trying; late says that the request's deadline
// bounds it and not the provider's time limit.
func budget(ctx context.Context, timeout time.Duration) (room time.Duration, late bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return timeout, false
	}
	left := time.Until(deadline)
	switch left -= min(forReply, left/4); {
	case left < leastRun:
		return 0, true
	case left < timeout:
		return left, true
	}
	return timeout, false
}

// provider is a server with what limits its use.
type provider struct {
	service.RerankProvider
	key     service.Secret
	http    *http.Client
	slots   chan struct{}
	metrics *metrics
}

func (p *provider) fill() {
	for _, d := range []struct {
		field *int
		value int
	}{{&p.MaxDocuments, defaultDocuments}, {&p.MaxDocumentBytes, defaultBytes}, {&p.InFlight, defaultInFlight}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if p.Timeout == 0 {
		p.Timeout = service.Duration(defaultTimeout)
	}
	if p.BatchDocuments == 0 {
		p.BatchDocuments = p.MaxDocuments
	}
}

// rerank makes one call, or several where the server takes fewer documents at once.
func (p *provider) rerank(ctx context.Context, q Query) (Answer, error) {
	out := Answer{Scores: make([]Score, len(q.Documents))}
	texts := make([]string, len(q.Documents))
	for i, d := range q.Documents {
		texts[i] = cut(d, p.MaxDocumentBytes)
		if len(texts[i]) < len(d) {
			out.Cut++
		}
	}
	g, ctx := guard.WithContext(ctx)
	for from := 0; from < len(texts); from += p.BatchDocuments {
		to := min(from+p.BatchDocuments, len(texts))
		g.Go(func() error { return p.batch(ctx, q, texts[from:to], out.Scores[from:to]) })
	}
	return out, g.Wait()
}

// cut shortens a text to n bytes at most, at the border of a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// batch makes one call, and a second one when the first failed in a way that may pass.
func (p *provider) batch(ctx context.Context, q Query, texts []string, scores []Score) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.slots }()
	err := p.call(ctx, q, texts, scores)
	if wait, again := pause(err); again && sleep(ctx, wait) {
		if second := p.call(ctx, q, texts, scores); ctx.Err() == nil { // else the first error is the cause
			err = second
		}
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
