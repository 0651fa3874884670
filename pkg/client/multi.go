package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// Source is a knowledge base of a MultiRetriever.
type Source struct {
	KB        string // its name in results
	Retriever Retriever
	Subspace  []string // in place of the request's, where not nil
}

// MultiRetriever asks several retrievers at once and puts what they find together by its text: of equal
// texts one entry remains, with the highest scores and the names of all knowledge bases that hold it. Scores
// are compared as they are, so the sources should score alike: mode vector over one model does. Services do
// better over their own knowledge bases, see Client.RetrieveMulti. Safe for concurrent use.
type MultiRetriever struct {
	sources []Source
	close   func() error
}

// MultiResult is what several knowledge bases found.
type MultiResult struct {
	Results  []MultiKBRetrievalResult
	Failures []KBFailure // in order of the sources
}

// KBFailure is a knowledge base that could not be asked.
type KBFailure struct {
	KB  string
	Err error
}

// multiAtOnce is how many sources are asked at once.
const multiAtOnce = 16

// NewMultiRetriever returns a retriever over sources, of which there may be none. A source without a
// retriever is RETRIEVER_NOT_FOUND, a name twice or none a VALIDATION_ERROR.
func NewMultiRetriever(sources ...Source) (*MultiRetriever, error) {
	seen := map[string]bool{}
	for i, s := range sources {
		switch {
		case s.Retriever == nil:
			return nil, messages.Errorf(messages.CodeRetrieverNotFound, "source %d, %q, has no retriever", i, s.KB)
		case s.KB == "":
			return nil, messages.Invalid(fmt.Sprintf("sources[%d].kb", i), "is missing")
		case seen[s.KB]:
			return nil, messages.Invalid(fmt.Sprintf("sources[%d].kb", i), fmt.Sprintf("%q is there twice", s.KB))
		}
		seen[s.KB] = true
	}
	m := &MultiRetriever{sources: slices.Clone(sources)}
	m.close = sync.OnceValue(m.closeAll)
	return m, nil
}

// Close closes all retrievers that can be closed, once.
func (m *MultiRetriever) Close() error { return m.close() }

func (m *MultiRetriever) closeAll() error {
	var errs []error
	for _, s := range m.sources {
		if c, ok := s.Retriever.(io.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", s.KB, err))
			}
		}
	}
	return errors.Join(errs...)
}

// RetrieveWithSource asks all sources. A source that fails on its way (a timeout, an overload) is named in
// Failures and the others answer; when all fail so, the error is ALL_KNOWLEDGE_BASES_FAILED. What is wrong with
// the request fails the whole call.
func (m *MultiRetriever) RetrieveWithSource(ctx context.Context, query string, cfg RetrievalConfig) (MultiResult, error) {
	topK := DefaultTopK
	if cfg.TopK != nil {
		topK = *cfg.TopK
	}
	if topK < 1 {
		return MultiResult{}, &messages.Error{Code: messages.CodeTopKInvalid, Field: "topK", Message: "must be 1 or more"}
	}
	found, failed, err := m.ask(ctx, query, cfg)
	if err != nil {
		return MultiResult{}, err
	}
	out := MultiResult{Results: []MultiKBRetrievalResult{}}
	for i, err := range failed {
		if err != nil {
			out.Failures = append(out.Failures, KBFailure{m.sources[i].KB, err})
		}
	}
	if n := len(out.Failures); n > 0 && n == len(m.sources) {
		first := out.Failures[0]
		return out, errors.Join(messages.Errorf(messages.CodeAllKBsFailed, "all %d knowledge bases failed, the first, %s: %v", n, first.KB, first.Err), first.Err)
	}
	out.Results = m.merge(found, topK)
	return out, nil
}

// ask asks every source at once. err is that of the request.
func (m *MultiRetriever) ask(ctx context.Context, query string, cfg RetrievalConfig) (found [][]RetrievalResult, failed []error, err error) {
	found, failed = make([][]RetrievalResult, len(m.sources)), make([]error, len(m.sources))
	g, running := guard.WithContext(ctx)
	g.SetLimit(multiAtOnce)
	for i, s := range m.sources {
		g.Go(func() error {
			mine := cfg
			if s.Subspace != nil {
				mine.Subspace = s.Subspace
			}
			var err error
			found[i], err = s.Retriever.Retrieve(running, query, mine)
			if err != nil && !tolerable(err) {
				return fmt.Errorf("retrieve from %s: %w", s.KB, err)
			}
			failed[i] = err
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, nil, context.Cause(ctx)
	}
	return found, failed, nil
}

// tolerable tells what happened on the way from what is wrong with the request.
func tolerable(err error) bool {
	e, ok := messages.AsError(err)
	return !ok || slices.Contains([]messages.Code{
		messages.CodeDeadlineExceeded, messages.CodeOverloaded, messages.CodeUnavailable, messages.CodeEmbeddingUnavailable,
		messages.CodeRerankModel, messages.CodeResponseTooLarge, messages.CodeInternal,
	}, e.Code)
}

// merge joins the lists by text.
func (m *MultiRetriever) merge(found [][]RetrievalResult, topK int) []MultiKBRetrievalResult {
	out, at := []MultiKBRetrievalResult{}, map[string]int{}
	for i, list := range found {
		kb := m.sources[i].KB
		for _, r := range list {
			p, known := at[r.Text]
			if !known {
				p = len(out)
				at[r.Text] = p
				out = append(out, first(r))
			}
			out[p].add(kb, r)
		}
	}
	slices.SortStableFunc(out, func(a, b MultiKBRetrievalResult) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), topK)]
}

func first(r RetrievalResult) MultiKBRetrievalResult {
	raw, scaled := r.scores()
	return MultiKBRetrievalResult{
		Text: r.Text, Score: r.Score, RawScore: raw, RawScoreScaled: scaled, KBIDs: []string{}, Metadata: maps.Clone(r.Metadata),
		DocID: r.DocID, ChunkID: r.ChunkID,
	}
}

func (r RetrievalResult) scores() (raw, scaled float64) {
	raw, scaled = r.Score, r.Score
	if r.RawScore != nil {
		raw = *r.RawScore
	}
	if r.RawScoreScaled != nil {
		scaled = *r.RawScoreScaled
	}
	return raw, scaled
}

// add takes one more place of the text in.
func (e *MultiKBRetrievalResult) add(kb string, r RetrievalResult) {
	raw, scaled := r.scores()
	if r.Score > e.Score {
		e.Metadata, e.DocID, e.ChunkID = maps.Clone(r.Metadata), r.DocID, r.ChunkID
	}
	e.Score, e.RawScore, e.RawScoreScaled = max(e.Score, r.Score), max(e.RawScore, raw), max(e.RawScoreScaled, scaled)
	if !slices.Contains(e.KBIDs, kb) {
		e.KBIDs = append(e.KBIDs, kb)
	}
	e.Sources = append(e.Sources, ResultSource{KB: kb, Subspace: r.Subspace, DocID: r.DocID, ChunkID: r.ChunkID, Score: r.Score})
	if e.Metadata == nil {
		e.Metadata = map[string]any{}
	}
}

// Retrieve is RetrieveWithSource in the form of other retrievers' results. It fails when any source does:
// this form has no place to tell of it.
func (m *MultiRetriever) Retrieve(ctx context.Context, query string, cfg RetrievalConfig) ([]RetrievalResult, error) {
	all, err := m.RetrieveWithSource(ctx, query, cfg)
	if err != nil {
		return nil, err
	}
	for _, f := range all.Failures {
		return nil, fmt.Errorf("retrieve from %s: %w", f.KB, f.Err)
	}
	out := make([]RetrievalResult, len(all.Results))
	for i, r := range all.Results {
		out[i] = RetrievalResult{
			Text: r.Text, Score: r.Score, Metadata: r.Metadata, DocID: r.DocID, ChunkID: r.ChunkID,
			RawScore: &r.RawScore, RawScoreScaled: &r.RawScoreScaled,
		}
		if len(r.Sources) > 0 {
			out[i].Subspace = r.best().Subspace
		}
	}
	return out, nil
}

func (e MultiKBRetrievalResult) best() ResultSource {
	return slices.MaxFunc(e.Sources, func(a, b ResultSource) int { return cmp.Compare(a.Score, b.Score) })
}

// BatchRetrieve answers queries at the same time, in their order.
func (m *MultiRetriever) BatchRetrieve(ctx context.Context, queries []string, cfg RetrievalConfig) ([][]RetrievalResult, error) {
	return batch(ctx, queries, func(ctx context.Context, query string) ([]RetrievalResult, error) {
		return m.Retrieve(ctx, query, cfg)
	})
}

// RetrieveTexts returns the passages alone, best first, each text once, and the knowledge bases that failed.
func (m *MultiRetriever) RetrieveTexts(ctx context.Context, query string, cfg RetrievalConfig) ([]string, []KBFailure, error) {
	all, err := m.RetrieveWithSource(ctx, query, cfg)
	texts := make([]string, len(all.Results))
	for i, r := range all.Results {
		texts[i] = r.Text
	}
	return texts, all.Failures, err
}

var (
	_ Retriever      = (*MultiRetriever)(nil)
	_ BatchRetriever = (*MultiRetriever)(nil)
)
