// Package engine answers retrieve requests: it resolves the knowledge base and the configuration,
// embeds and analyses the query, runs both legs, fuses them and shapes the reply. It knows no
// subjects and no envelopes.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/postings"
	"github.com/weir-project/weir/services/retriever/internal/config"
	"github.com/weir-project/weir/services/retriever/internal/fusion"
)

// Searcher runs search plans; *pgstore.Searcher is one.
type Searcher interface {
	Search(ctx context.Context, plan pgstore.SearchPlan) (pgstore.SearchResult, error)
}

// Embedder computes query vectors; *query.Vectors is one.
type Embedder interface {
	Embed(ctx context.Context, space messages.Space, text string) ([]float32, error)
}

// Engine answers requests. Safe for concurrent use.
type Engine struct {
	limits   messages.RetrieveLimits
	kbs      *kbs
	searcher Searcher
	embedder Embedder
	tracer   trace.Tracer
}

// New returns an engine.
func New(limits messages.RetrieveLimits, kbs Loader, searcher Searcher, embedder Embedder, tracer trace.Tracer) *Engine {
	return &Engine{limits: limits, kbs: newKBs(kbs), searcher: searcher, embedder: embedder, tracer: tracer}
}

// Retrieve answers one request about a knowledge base. The request is not changed. When the knowledge
// base changes under way, it starts once more. Errors for callers are *messages.Error; an outage of
// the database is marked by bus.Pause.
func (e *Engine) Retrieve(ctx context.Context, tenant, kb string, req *messages.RetrieveRequest) (*messages.RetrieveReply, error) {
	began := time.Now()
	if err := CheckQuery(e.limits, req); err != nil {
		return nil, err
	}
	reply, err := e.attempt(ctx, tenant, kb, req)
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		if reply, err = e.attempt(ctx, tenant, kb, req); err == nil {
			reply.Diagnostics.Restarted = true
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, pgstore.ErrGenerationChanged):
		return nil, fmt.Errorf("%w: %w", messages.Errorf(messages.CodeUnavailable, "the knowledge base keeps changing, try again"), err)
	case ctx.Err() == nil && pgstore.Retryable(err):
		return nil, bus.Pause(err, 0)
	default:
		return nil, err
	}
	reply.Diagnostics.Timing.TotalMillis = millis(time.Since(began))
	return reply, nil
}

// request is one attempt at a request.
type request struct {
	*messages.RetrieveRequest
	kb       *resolved
	settings config.Settings
	plan     pgstore.SearchPlan
	fused    []fusion.Result
	fuseErr  error
	diag     messages.Diagnostics
}

func (e *Engine) attempt(ctx context.Context, tenant, name string, req *messages.RetrieveRequest) (*messages.RetrieveReply, error) {
	kb, err := e.kbs.get(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	r := &request{RetrieveRequest: req, kb: kb}
	if err := e.prepare(ctx, r); err != nil {
		return nil, e.checked(ctx, r, err)
	}
	ctx, span := e.tracer.Start(ctx, "search")
	found, err := e.searcher.Search(ctx, r.plan)
	span.End()
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		e.kbs.forget(kb)
	}
	if err == nil {
		err = r.fuseErr
	}
	if err != nil {
		return nil, err
	}
	return r.reply(found), nil
}

// checked makes sure that a request is not refused by what the knowledge base was some time ago.
func (e *Engine) checked(ctx context.Context, r *request, refusal error) error {
	known, ok := messages.AsError(refusal)
	if !ok || known.Code != messages.CodeValidation && known.Code != messages.CodeRetrieverModeInvalid {
		return refusal
	}
	now, err := e.kbs.load.LoadKB(ctx, r.kb.Tenant, r.kb.Name)
	if err != nil {
		if _, known := messages.AsError(err); known {
			e.kbs.forget(r.kb)
			return err
		}
		return refusal
	}
	if now.ID == r.kb.ID && now.Revision == r.kb.Revision && now.Generation.ID == r.kb.Generation.ID {
		return refusal
	}
	e.kbs.forget(r.kb)
	return pgstore.ErrGenerationChanged
}

// prepare makes the plan.
func (e *Engine) prepare(ctx context.Context, r *request) error {
	var err error
	if r.settings, err = config.Resolve(e.limits, r.kb.IndexType, r.kb.defaults, r.Configuration); err != nil {
		return err
	}
	r.plan = pgstore.SearchPlan{KB: r.kb.KB, Keep: r.keep}
	if r.plan.Subspaces, err = Subspaces(r.kb.Subspaces, e.limits, r.Subspace); err != nil {
		return err
	}
	r.diag.Generation = r.kb.Generation.ID
	legs := r.settings.Fusion.Active()
	if legs.Dense {
		if r.kb.Generation.Space == nil {
			return messages.Errorf(messages.CodeEmbedModelNotFound, "the knowledge base has no embedding model")
		}
		r.settings.Fusion.Metric = fusion.Metric(r.kb.Generation.Space.Metric)
		if err := e.dense(ctx, r, legs.Text); err != nil {
			return err
		}
	}
	if legs.Text {
		r.text()
	}
	return nil
}

// dense embeds the query. When that fails and the caller takes a part for the whole, the full-text leg
// answers alone.
func (e *Engine) dense(ctx context.Context, r *request, canDo bool) error {
	began := time.Now()
	partial := r.AllowPartial && canDo
	within, cancel := context.WithCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok && partial {
		cancel()
		within, cancel = context.WithTimeoutCause(ctx, time.Until(deadline)*embedShare/10, context.DeadlineExceeded)
	}
	defer cancel()
	vector, err := e.embedder.Embed(within, *r.kb.Generation.Space, r.Query.Text)
	r.diag.Timing.EmbedMillis = millis(time.Since(began))
	if err == nil {
		r.plan.Dense = &pgstore.DensePlan{Vector: vector, Limit: r.settings.DenseLimit}
		return nil
	}
	if !partial || ctx.Err() != nil {
		return err
	}
	code := messages.CodeEmbeddingUnavailable
	if known, ok := messages.AsError(err); ok {
		code = known.Code
	}
	r.diag.Degraded = append(r.diag.Degraded, fmt.Sprintf("%s: %s", messages.DenseVector, code))
	r.settings.Fusion.Legs.Dense = false
	return nil
}

// embedShare is how many tenths of the time left embedding may take when the other leg could answer.
const embedShare = 6

// text analyses the query.
func (r *request) text() {
	q := r.kb.analyzer.Query(r.Query.Text)
	r.plan.Text = &pgstore.TextPlan{
		Terms: terms(q.Terms), More: terms(q.Second), K1: r.settings.K1, B: r.settings.B, Limit: r.settings.TextLimit,
	}
	if q.Truncated {
		r.diag.Notes = append(r.diag.Notes, fmt.Sprintf("terms of the query beyond %d were left out", lexical.MaxQueryTerms))
	}
}

func terms(list []lexical.QueryTerm) []postings.Term {
	out := make([]postings.Term, len(list))
	for i, t := range list {
		out[i] = postings.Term{Hash: postings.TermHash(t.Term), Weight: float64(t.Weight)}
	}
	return out
}

// keep fuses the legs and says whose content is wanted.
func (r *request) keep(found pgstore.Found) []int64 {
	ids := make(map[fusion.Key]int64, len(found.Matches))
	candidates := make([]fusion.Candidate, len(found.Matches))
	for i, m := range found.Matches {
		k := fusion.Key{Subspace: m.Subspace, DocID: m.DocID, ChunkID: m.Ordinal}
		ids[k] = m.ChunkID
		candidates[i] = fusion.Candidate{
			Key:   k,
			Dense: fusion.Standing{Raw: m.Similarity, Known: m.HasSimilarity, Rank: m.DenseRank},
			Text:  fusion.Standing{Raw: m.BM25, Known: r.plan.Text != nil, Rank: m.TextRank},
		}
	}
	r.fused, r.fuseErr = fusion.Fuse(r.settings.Fusion, candidates)
	kept := make([]int64, len(r.fused))
	for i, f := range r.fused {
		kept[i] = ids[f.Key]
	}
	return kept
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
