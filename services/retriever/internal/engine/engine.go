// Package engine answers retrieve requests: it resolves the knowledge base and the configuration,
// embeds and analyses the query, runs both legs, fuses them and shapes the reply. It knows no
// subjects and no envelopes.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
	"github.com/weir-project/weir/services/retriever/internal/rerank"
)

// Searcher runs search plans and reads chunks found before; *pgstore.Searcher is one.
type Searcher interface {
	Search(ctx context.Context, plan pgstore.SearchPlan) (pgstore.SearchResult, error)
	Read(ctx context.Context, plan pgstore.ReadPlan) (pgstore.SearchResult, error)
	List(ctx context.Context, plan pgstore.ListPlan) (pgstore.SearchResult, bool, error)
}

// Embedder computes query vectors; *query.Vectors is one.
type Embedder interface {
	Embed(ctx context.Context, space messages.Space, texts []string) ([][]float32, error)
}

// Reranker has rerank models score texts; *rerank.Models is one.
type Reranker interface {
	Rerank(ctx context.Context, q rerank.Query) (rerank.Answer, error)
	MaxDocuments(provider string) int
	MaxDocumentBytes(provider string) int // of a document: what is longer is cut
}

// Config is what an engine works with.
type Config struct {
	Limits   messages.RetrieveLimits  // on requests; a knowledge base may tighten them
	Models   messages.RerankProviders // that Reranker has
	Reranker Reranker
	Loader   Loader
	Searcher Searcher
	Embedder Embedder
	Cursors  *cursor.Signer
	// CandidateBytes is how much of all candidates of a request is read before there is an order: texts for a rerank
	// model, or those of several knowledge bases. What else the page needs is read behind. 1 or more.
	CandidateBytes int
	// ReplyBytes is how large the data of a reply may be. Answers are not much larger.
	ReplyBytes func() int
	Tracer     trace.Tracer
	Log        *slog.Logger
}

// Engine answers requests. Safe for concurrent use.
type Engine struct {
	Config
	kbs *kbs
}

// New returns an engine; every field of the configuration is required.
func New(c Config) *Engine { return &Engine{Config: c, kbs: newKBs(c.Loader)} }

// Retrieve answers one request about a knowledge base. The request is not changed. When the knowledge
// base changes under way, it starts once more. Errors for callers are *messages.Error; an outage of
// the database is marked by bus.Pause.
func (e *Engine) Retrieve(ctx context.Context, tenant, kb string, req *messages.RetrieveRequest) (*Answer, error) {
	return e.answer(ctx, tenant, kb, req, e.Embedder)
}

func (e *Engine) answer(ctx context.Context, tenant, kb string, req *messages.RetrieveRequest, embedder Embedder) (*Answer, error) {
	began := time.Now()
	if err := CheckQuery(e.Limits, req); err != nil {
		return nil, err
	}
	answer, err := e.attempt(ctx, tenant, kb, req, embedder)
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		if answer, err = e.attempt(ctx, tenant, kb, req, embedder); err == nil {
			answer.Reply.Diagnostics.Restarted = true
		}
	}
	if err != nil {
		return nil, outcome(ctx, err)
	}
	answer.Reply.Diagnostics.Timing.TotalMillis = millis(time.Since(began))
	return answer, nil
}

// outcome is the error of a request as its caller is told.
func outcome(ctx context.Context, err error) error {
	var leg *pgstore.LegError
	switch {
	case errors.Is(err, pgstore.ErrGenerationChanged):
		return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeUnavailable, "the knowledge base keeps changing, try again"), err)
	case ctx.Err() == nil && (pgstore.Retryable(err) || errors.As(err, &leg)):
		return bus.Pause(err, 0)
	}
	return err
}

func (e *Engine) attempt(ctx context.Context, tenant, kb string, req *messages.RetrieveRequest, embedder Embedder) (*Answer, error) {
	r, err := e.prepare(ctx, tenant, kb, req)
	if err != nil {
		return nil, err
	}
	if r.listing() {
		return e.list(ctx, r)
	}
	if r.Cursor != "" {
		return e.next(ctx, r)
	}
	if err := e.embed(ctx, r, embedder); err != nil {
		return nil, err
	}
	found, err := e.search(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.settings.Fusion.Method == fusion.Model {
		return e.rerank(ctx, r, found)
	}
	return e.first(r, found), nil
}

// search runs the plan. When one of two legs fails and the caller takes a part for the whole, the other
// answers alone.
func (e *Engine) search(ctx context.Context, r *request) (pgstore.SearchResult, error) {
	ctx, span := e.Tracer.Start(ctx, "search")
	defer span.End()
	found, err := e.Searcher.Search(ctx, r.plan)
	var leg *pgstore.LegError
	if errors.As(err, &leg) && r.AllowPartial && r.plan.Dense != nil && r.plan.Text != nil {
		e.Log.Warn("a leg failed, the other answers alone", "kb", r.kb.Name, "leg", leg.Leg, "err", err)
		r.dropLeg(leg.Leg)
		found, err = e.Searcher.Search(ctx, r.plan)
	}
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		e.kbs.forget(r.kb)
	}
	if err == nil {
		err = r.fuseErr
	}
	return found, err
}

// dropLeg leaves a leg out of the plan and says so.
func (r *request) dropLeg(leg string) {
	name := messages.DenseVector
	if leg == pgstore.TextLeg {
		name = messages.FullText
		r.plan.Text, r.settings.Fusion.Legs.Text = nil, false
	} else {
		r.plan.Dense, r.settings.Fusion.Legs.Dense = nil, false
	}
	r.degraded(name, messages.CodeUnavailable)
}

func (r *request) degraded(leg messages.SearchType, code messages.Code) {
	r.diag.Degraded = append(r.diag.Degraded, fmt.Sprintf("%s: %s", leg, code))
}

// checked makes sure that a request is not refused by what the knowledge base was some time ago.
func (e *Engine) checked(ctx context.Context, kb *resolved, refusal error) error {
	if _, ok := messages.AsError(refusal); !ok {
		return refusal
	}
	now, err := e.Loader.LoadKB(ctx, kb.Tenant, kb.Name)
	if err != nil {
		if _, known := messages.AsError(err); known {
			e.kbs.forget(kb)
			return err
		}
		return refusal
	}
	if now.ID == kb.ID && now.Revision == kb.Revision && now.Generation.ID == kb.Generation.ID {
		return refusal
	}
	e.kbs.forget(kb)
	return pgstore.ErrGenerationChanged
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
