package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/pkg/postings"
	"github.com/weir-project/weir/services/retriever/internal/config"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
	"github.com/weir-project/weir/services/retriever/internal/highlight"
	"github.com/weir-project/weir/services/retriever/internal/query"
	"github.com/weir-project/weir/services/retriever/internal/syntax"
)

// request is one attempt at a request.
type request struct {
	*messages.RetrieveRequest
	kb       *resolved
	settings config.Settings
	plan     pgstore.SearchPlan
	filtered bool   // by a filter of its own or of the knowledge base's defaults
	meaning  string // to be embedded; empty: nothing
	question string // for a rerank model: the text without its operators
	marks    highlight.Wanted
	pool     []candidate
	fellBack bool
	whole    bool        // the content of every candidate is wanted, before there is an order
	page     cursor.Page // all results in order
	owner    cursor.Owner
	fuseErr  error
	diag     messages.Diagnostics
}

// prepare makes the plan, all of it but the vector of the query.
func (e *Engine) prepare(ctx context.Context, tenant, name string, req *messages.RetrieveRequest) (*request, error) {
	kb, err := e.kbs.get(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	r := &request{RetrieveRequest: req, kb: kb}
	if err := r.prepare(config.Server{Limits: e.Limits, Models: e.Models}, e.Reranker, e.CandidateBytes); err != nil {
		return nil, e.checked(ctx, kb, err)
	}
	if r.plan.Reading.Bytes == 0 {
		r.plan.Reading = e.pageReading(r)
	}
	return r, nil
}

func (r *request) prepare(server config.Server, reranker Reranker, candidateBytes int) error {
	var err error
	if r.listing() {
		r.settings, err = config.ResolveFilter(server, r.kb.defaults, r.Configuration)
	} else {
		r.settings, err = config.Resolve(server, r.kb.IndexType, r.kb.defaults, r.Configuration)
	}
	if err != nil {
		return err
	}
	if err := CheckQuery(r.settings.Limits, r.RetrieveRequest); err != nil { // the knowledge base may have tighter limits
		return err
	}
	if err := r.kb.Schema.CheckProjection(r.settings.Output.Fields); err != nil {
		return err
	}
	r.owner = cursor.Owner{Tenant: r.kb.Tenant, KB: r.kb.Name}
	if r.owner.Request, err = cursor.RequestHash(r.RetrieveRequest); err != nil {
		return err
	}
	r.plan = pgstore.SearchPlan{KB: r.kb.KB, Keep: r.keep, Vectors: r.settings.Output.Vector}
	if err := r.restrict(); err != nil {
		return err
	}
	r.diag.Generation = r.kb.Generation.ID
	if r.listing() {
		return r.checkListing()
	}
	if err := r.legs(); err != nil {
		return err
	}
	return r.model(reranker, candidateBytes)
}

// restrict sets what may be found at all. Everything that reads chunks takes it from the plan.
func (r *request) restrict() error {
	var err error
	if r.plan.Subspaces, err = Subspaces(r.kb.Subspaces, r.settings.Limits, r.Subspace); err != nil {
		return err
	}
	r.plan.Where, err = r.where()
	return err
}

// where joins the mandatory filter of the knowledge base with the request's, each whole; nil is no filter.
func (r *request) where() (pgstore.Predicate, error) {
	own, given, err := filter.OfRetrieval(r.settings.Filters, filter.LimitsOf(r.settings.Limits.Filter), r.kb.Schema)
	if err != nil {
		return nil, err
	}
	r.filtered = given
	var all []filter.Bound
	if r.kb.mandatory != nil {
		all = append(all, *r.kb.mandatory)
	}
	if given {
		all = append(all, own)
	}
	if len(all) == 0 {
		return nil, nil
	}
	both := filter.Conjunction(all...)
	return func(arg func(any) string) string { return both.Predicate("d.live_typed", arg) }, nil
}

// legs fills in the legs that have a say.
func (r *request) legs() error {
	space, legs := r.kb.Generation.Space, r.settings.Fusion.Active()
	if err := CheckVector(space, r.Query.Vector); err != nil {
		return err
	}
	blank := strings.TrimSpace(r.Query.Text) == ""
	if blank && legs.Text {
		return messages.Invalid("retrievalQuery.text", "is missing, and the full-text leg needs it")
	}
	if legs.Dense && space == nil {
		return messages.Errorf(messages.CodeEmbedModelNotFound, "the knowledge base has no embedding model")
	}
	r.meaning = r.Query.Text
	var text *pgstore.TextPlan
	if !blank {
		var err error
		if text, err = r.text(); err != nil {
			return err
		}
	}
	r.question = r.meaning
	switch {
	case legs.Text:
		r.plan.Text = text
	case r.settings.Fallback:
		r.plan.Fallback = text
	}
	if !legs.Dense {
		r.meaning = ""
		return nil
	}
	r.settings.Fusion.Metric = fusion.Metric(space.Metric)
	if r.Query.Vector != nil {
		r.meaning = ""
		r.plan.Dense = &pgstore.DensePlan{Vector: r.Query.Vector, Limit: r.settings.DenseLimit}
	}
	return nil
}

// text analyses the query.
func (r *request) text() (*pgstore.TextPlan, error) {
	plain := r.Query.Text
	p := &pgstore.TextPlan{K1: r.settings.K1, B: r.settings.B, Limit: r.settings.TextLimit}
	if r.settings.Simple {
		q, err := syntax.Parse(r.kb.analyzer, r.Query.Text)
		if err != nil {
			return nil, err
		}
		plain, r.meaning = q.Plain, q.Meaning
		r.plan.Match, p.Prefixes = pgstore.Condition(q.Clauses), q.Prefixes
		r.markClauses(q)
	}
	q := r.kb.analyzer.Query(plain)
	p.Terms, p.More = terms(q.Terms), terms(q.Second)
	r.marks.Analyzer, r.marks.Terms, r.marks.Second = r.kb.analyzer, names(q.Terms), names(q.Second)
	if q.Truncated {
		r.note(fmt.Sprintf("terms of the query beyond %d were left out", lexical.MaxQueryTerms))
	}
	return p, nil
}

// markClauses has phrases and prefixes highlighted.
func (r *request) markClauses(q syntax.Query) {
	for _, p := range q.Prefixes {
		r.marks.Prefixes = append(r.marks.Prefixes, p.Lexeme)
	}
	for _, c := range q.Clauses {
		if !c.Exclude {
			r.marks.Phrases = append(r.marks.Phrases, c.Steps)
		}
	}
}

func (r *request) note(text string) { r.diag.Notes = append(r.diag.Notes, text) }

func names(list []lexical.QueryTerm) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.Term
	}
	return out
}

func terms(list []lexical.QueryTerm) []postings.Term {
	out := make([]postings.Term, len(list))
	for i, t := range list {
		out[i] = postings.Term{Hash: postings.TermHash(t.Term), Weight: float64(t.Weight)}
	}
	return out
}

// CheckVector checks the vector of a query, which may be none, against the space of a knowledge base.
func CheckVector(space *messages.Space, vector []float32) error {
	const field = "retrievalQuery.vector"
	switch {
	case vector == nil:
		return nil
	case space == nil:
		return messages.Invalid(field, "the knowledge base has no vectors")
	case len(vector) != space.Dims:
		return messages.Invalid(field, fmt.Sprintf("has %d dimensions, the knowledge base has %d", len(vector), space.Dims))
	}
	if reason := query.Unusable(vector); reason != "" {
		return messages.Invalid(field, reason)
	}
	return nil
}

// embedShare is how many tenths of the time left embedding may take when something could do without.
const embedShare = 6

// share bounds ctx to the part of its time that embedding may take.
func share(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Until(deadline)*embedShare/10, context.DeadlineExceeded)
}

// embed computes the query's vector. When that fails and the caller takes a part for the whole, the
// full-text leg answers alone.
func (e *Engine) embed(ctx context.Context, r *request, embedder Embedder) error {
	if r.meaning == "" {
		return nil
	}
	began := time.Now()
	partial := r.AllowPartial && r.plan.Text != nil
	within, cancel := context.WithCancel(ctx)
	if partial {
		cancel()
		within, cancel = share(ctx)
	}
	defer cancel()
	vectors, err := embedder.Embed(within, *r.kb.Generation.Space, []string{r.meaning})
	r.diag.Timing.EmbedMillis = millis(time.Since(began))
	if err == nil {
		r.plan.Dense = &pgstore.DensePlan{Vector: vectors[0], Limit: r.settings.DenseLimit}
		return nil
	}
	if !partial || ctx.Err() != nil {
		return err
	}
	code := messages.CodeEmbeddingUnavailable
	if known, ok := messages.AsError(err); ok {
		code = known.Code
	}
	r.degraded(messages.DenseVector, code)
	r.settings.Fusion.Legs.Dense = false
	return nil
}
