package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/config"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// maxSeveral bounds the candidates of all knowledge bases of a request together.
const maxSeveral = 4000

// atOnce is how many knowledge bases of a request are searched at the same time: each takes a connection.
const atOnce = 8

// several is a request to several knowledge bases.
type several struct {
	*messages.RetrieveRequest
	tenant string
	owner  cursor.Owner
	parts  []*part // one a knowledge base, in the order of the request
	config.Reranking
	diag     messages.Diagnostics
	failures []messages.KBFailure
	joined   cursor.Joined              // all results in order
	there    map[chunk]pgstore.Match    // chunks of results that may be found
	contents map[chunk]*pgstore.Content // as far as they were read
}

// chunk identifies one among the knowledge bases of a request.
type chunk struct {
	kb int
	id int64
}

// part is what one knowledge base has to do with it.
type part struct {
	*request
	name  string
	found pgstore.SearchResult
	err   error // it gave nothing
}

// Several answers a request to several knowledge bases (D-25): each has its own configuration, filters, subspaces
// and snapshot. What is wrong with the request in one of them is an error of the whole; one that cannot be searched
// is among the failures of the reply, and when there is no other the error is ALL_KNOWLEDGE_BASES_FAILED.
func (e *Engine) Several(ctx context.Context, tenant string, req *messages.RetrieveRequest) (*Answer, error) {
	began := time.Now()
	if err := e.checkSeveral(req); err != nil {
		return nil, err
	}
	if len(req.KnowledgeBaseNames) == 0 {
		return &Answer{Reply: &messages.RetrieveReply{Results: []messages.RetrievedChunk{}}, seal: func(int) string { return "" }}, nil
	}
	answer, err := e.severalOnce(ctx, tenant, req)
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		if answer, err = e.severalOnce(ctx, tenant, req); err == nil {
			answer.Reply.Diagnostics.Restarted = true
		}
	}
	if err != nil {
		return nil, outcome(ctx, err)
	}
	answer.Reply.Diagnostics.Timing.TotalMillis = millis(time.Since(began))
	return answer, nil
}

func (e *Engine) severalOnce(ctx context.Context, tenant string, req *messages.RetrieveRequest) (*Answer, error) {
	s := &several{
		RetrieveRequest: req, tenant: tenant, owner: cursor.Owner{Tenant: tenant, KB: messages.AllScope},
		there: map[chunk]pgstore.Match{}, contents: map[chunk]*pgstore.Content{},
	}
	var err error
	if s.owner.Request, err = cursor.RequestHash(req); err != nil {
		return nil, err
	}
	if err := e.prepareParts(ctx, s); err != nil {
		return nil, err
	}
	switch {
	case req.Query.Type == messages.QueryFilter:
		return e.listSeveral(ctx, s)
	case req.Cursor != "":
		return e.nextOfSeveral(ctx, s)
	}
	if err := e.searchParts(ctx, s); err != nil {
		return nil, err
	}
	return e.merge(ctx, s)
}

func (e *Engine) checkSeveral(req *messages.RetrieveRequest) error {
	if err := req.CheckSeveral(); err != nil {
		return err
	}
	return checkQuery(e.Limits, req)
}

// prepareParts checks the request in every knowledge base before any is searched.
func (e *Engine) prepareParts(ctx context.Context, s *several) error {
	most := 0
	for i, name := range s.KnowledgeBaseNames {
		p := &part{name: name}
		if err := e.preparePart(ctx, s, p); err != nil {
			return inKB(i, name, err)
		}
		if !p.listing() {
			most += p.mostCandidates()
		}
		s.parts = append(s.parts, p)
	}
	if most > maxSeveral {
		return messages.Invalid("knowledgeBaseNames", fmt.Sprintf("numberOfResults of their searches allow for %d candidates together, at most %d are taken", most, maxSeveral))
	}
	if err := e.agree(s); err != nil {
		return err
	}
	if s.Fusion.Method != fusion.Model || s.parts[0].listing() {
		return nil
	}
	return fits(e.Reranker, s.Model, most)
}

// preparePart makes the plan of one knowledge base, again when it turned out to be stale.
func (e *Engine) preparePart(ctx context.Context, s *several, p *part) error {
	own := *s.RetrieveRequest
	own.KnowledgeBaseNames, own.Subspaces, own.GroupBy, own.Subspace = nil, nil, nil, s.Subspaces[p.name]
	r, err := e.prepare(ctx, s.tenant, p.name, &own)
	if errors.Is(err, pgstore.ErrGenerationChanged) {
		r, err = e.prepare(ctx, s.tenant, p.name, &own)
	}
	if err != nil {
		return err
	}
	r.whole = true // texts are compared before there is an order
	p.request = r
	return nil
}

// inKB says which knowledge base an error is of.
func inKB(i int, name string, err error) error {
	known, ok := messages.AsError(err)
	if !ok {
		return err
	}
	out := *known
	switch {
	case known.Code == messages.CodeKBNotFound:
		out.Field = fmt.Sprintf("knowledgeBaseNames[%d]", i)
	case known.Field == "subspace":
		out.Field = "subspaces." + name
	}
	out.Message = messages.Errorf(out.Code, "knowledge base %s: %s", name, known.Message).Message
	return fmt.Errorf("%w: %w", &out, err)
}

// agree finds how the lists are joined: as all knowledge bases would have it, else as the request says, over the
// defaults of the system.
func (e *Engine) agree(s *several) error {
	server := config.Server{Limits: e.Limits, Models: e.Models}
	if s.parts[0].listing() {
		return s.agreeOnPage(server)
	}
	for i, p := range s.parts {
		own, err := config.ResolveReranking(server, p.kb.defaults, s.Configuration)
		if err != nil {
			return inKB(i, p.name, err)
		}
		if i == 0 {
			s.Reranking = own
		}
		if own == s.Reranking {
			continue
		}
		s.note("the knowledge bases differ in their rerankingConfiguration: the request's, over the server's, joins their lists")
		s.Reranking, err = config.ResolveReranking(server, nil, s.Configuration)
		return err
	}
	return nil
}

// agreeOnPage is agree for a query that ranks nothing.
func (s *several) agreeOnPage(server config.Server) error {
	s.Fusion.Limit = s.parts[0].settings.Fusion.Limit
	for _, p := range s.parts {
		if p.settings.Fusion.Limit == s.Fusion.Limit {
			continue
		}
		own, err := config.ResolveFilter(server, nil, s.Configuration)
		s.Fusion.Limit = own.Fusion.Limit
		return err
	}
	return nil
}

func (s *several) note(text string) { s.diag.Notes = append(s.diag.Notes, text) }

// Tenths of the time left that the searches may take together: what is late must still be told, and a rerank model
// asked.
const (
	searchShare = 8
	modelShare  = 6
)

// searchParts searches all knowledge bases. Only what makes the request wrong is an error.
func (e *Engine) searchParts(ctx context.Context, s *several) error {
	if deadline, ok := ctx.Deadline(); ok {
		tenths := searchShare
		if s.Fusion.Method == fusion.Model {
			tenths = modelShare
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(deadline)*time.Duration(tenths)/10, context.DeadlineExceeded)
		defer cancel()
	}
	known, stop := e.embedParts(ctx, s)
	defer stop()
	return s.each(func(i int, p *part) error { return inKB(i, p.name, e.searchPart(ctx, s, p, known)) })
}

// each runs fn for all knowledge bases, some at a time.
func (s *several) each(fn func(i int, p *part) error) error {
	var g guard.Group
	g.SetLimit(atOnce)
	for i, p := range s.parts {
		g.Go(func() error { return fn(i, p) })
	}
	return g.Wait()
}

// embedParts begins to embed the query for all knowledge bases.
func (e *Engine) embedParts(ctx context.Context, s *several) (known vectors, stop func()) {
	ctx, cancel := share(ctx)
	requests := make([]*request, len(s.parts))
	for i, p := range s.parts {
		requests[i] = p.request
	}
	known, wait := e.embedAll(ctx, requests)
	return known, func() { cancel(); wait() }
}

// searchPart searches one knowledge base, once more when it changed under way.
func (e *Engine) searchPart(ctx context.Context, s *several, p *part, embedder Embedder) error {
	p.err = e.look(ctx, s, p, embedder)
	if errors.Is(p.err, pgstore.ErrGenerationChanged) {
		if err := e.preparePart(ctx, s, p); err != nil {
			return err
		}
		p.diag.Restarted = true
		p.err = e.look(ctx, s, p, embedder)
	}
	if p.err != nil {
		if ctx.Err() != nil {
			p.err = fmt.Errorf("%w: %w", messages.Errorf(messages.CodeDeadlineExceeded, "the knowledge base was not searched in time"), p.err)
		}
		e.Log.Warn("a knowledge base of several failed", "kb", p.name, "err", p.err)
	}
	return nil
}

func (e *Engine) look(ctx context.Context, s *several, p *part, embedder Embedder) error {
	p.plan.Reading = pgstore.Reading{Bytes: max(e.CandidateBytes/len(s.parts), 1), Hashes: true}
	if s.Fusion.Method == fusion.Model {
		p.plan.Reading.Prefix = e.Reranker.MaxDocumentBytes(s.Model.Provider) + 1
	}
	err := e.embed(ctx, p.request, embedder)
	if err == nil {
		p.found, err = e.search(ctx, p.request)
	}
	return err
}

// failure is what callers are told of a knowledge base that gave nothing.
func (p *part) failure() messages.KBFailure {
	f := messages.KBFailure{KB: p.name, Code: messages.CodeInternal, Message: "the knowledge base could not be searched"}
	var leg *pgstore.LegError
	if known, ok := messages.AsError(p.err); ok {
		f.Code, f.Message = known.Code, known.Message
	} else if errors.Is(p.err, pgstore.ErrGenerationChanged) {
		f.Code, f.Message = messages.CodeUnavailable, "the knowledge base keeps changing, try again"
	} else if pgstore.Retryable(p.err) || errors.As(p.err, &leg) {
		f.Code, f.Message = messages.CodeUnavailable, "something the search needs is away"
	}
	return f
}

// report is the diagnostics of a knowledge base that answered.
func (p *part) report() messages.KBReport {
	p.remark(p.found)
	d := p.diag
	p.diagnose(&d, p.found)
	return messages.KBReport{
		KB: p.name, Generation: d.Generation, Dense: d.Dense, FullText: d.FullText, Degraded: d.Degraded, Restarted: d.Restarted, Notes: d.Notes,
	}
}

// legs are those that gave the candidates.
func (p *part) legs() fusion.Legs {
	return fusion.Legs{Dense: p.plan.Dense != nil && !p.fellBack, Text: p.plan.Text != nil || p.fellBack}
}
