package retriever

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/engine"
)

// operation is a line of the table of endpoints.
type operation struct {
	name     string
	tenant   bool // of the tenant, not of a knowledge base
	priority bool // interactive: may use the reserve of the service's limit
	handle   func(context.Context, bus.Request) (any, error)
}

func (s *Service) operations() []operation {
	return []operation{
		{name: messages.OpRetrieve, priority: true, handle: s.retrieve},
		{name: messages.OpBatch, priority: true, handle: s.batch},
		{name: messages.OpSearch, priority: true, handle: s.search},
		{name: messages.OpKBGet, handle: s.getKB},
		{name: messages.OpKBList, tenant: true, handle: s.listKBs},
		{name: messages.OpDocGet, handle: s.getDocument},
		{name: messages.OpDocList, handle: s.listDocuments},
		{name: messages.OpDocChunks, handle: s.listChunks},
	}
}

func (s *Service) endpoints() []bus.Endpoint {
	var out []bus.Endpoint
	for _, op := range s.operations() {
		scope := "*"
		if op.tenant {
			scope = messages.TenantScope
		}
		out = append(out, bus.Endpoint{
			Name: op.name, Subject: messages.RPCSubject("*", scope, op.name), Priority: op.priority,
			Metadata: messages.OperationMetadata(op.name),
			Handler:  op.handle,
		})
	}
	return out
}

// retrieve serves a knowledge base's subject, the tenant's, where the body names the base, and that of several
// knowledge bases. One endpoint does: a second one beside the wildcard would take every other request of the first.
func (s *Service) retrieve(ctx context.Context, r bus.Request) (any, error) {
	find := s.answer
	if r.Scope == messages.AllScope {
		find = s.several
	}
	answer, err := find(ctx, r)
	if err != nil {
		return nil, err
	}
	return answer.Reply, fit(answer, s.replyBytes())
}

func (s *Service) answer(ctx context.Context, r bus.Request) (*engine.Answer, error) {
	if err := single(r); err != nil {
		return nil, err
	}
	req := new(messages.RetrieveRequest)
	kb, err := read(r, req, &req.KnowledgeBaseName)
	if err != nil {
		return nil, err
	}
	return s.engine.Retrieve(ctx, r.Tenant, kb, req)
}

// several serves the subject of all knowledge bases: the body names those to look in, the subject the tenant that
// they are of.
func (s *Service) several(ctx context.Context, r bus.Request) (*engine.Answer, error) {
	req := new(messages.RetrieveRequest)
	if err := decode(r, req); err != nil {
		return nil, err
	}
	return s.engine.Several(ctx, r.Tenant, req)
}

// single refuses the subject of all knowledge bases.
func single(r bus.Request) error {
	if r.Scope == messages.AllScope {
		return messages.Errorf(messages.CodeNotSupported, "several knowledge bases have the operation retrieve alone")
	}
	return nil
}

// search is retrieve in the form of a store's results.
func (s *Service) search(ctx context.Context, r bus.Request) (any, error) {
	answer, err := s.answer(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := fit(answer, s.replyBytes()); err != nil {
		return nil, err
	}
	return searchReply(answer.Reply), nil
}

func searchReply(r *messages.RetrieveReply) *messages.SearchReply {
	out := &messages.SearchReply{
		Results: make([]messages.SearchResult, len(r.Results)), NextCursor: r.NextCursor, Truncated: r.Truncated, Diagnostics: r.Diagnostics,
	}
	for i, c := range r.Results {
		out.Results[i] = messages.SearchResult{
			ID: c.DocID + "#" + strconv.Itoa(c.ChunkID), Text: c.Content, Score: c.Score, Metadata: c.Metadata, Subspace: c.Subspace,
			DocID: c.DocID, ChunkID: c.ChunkID, RawScore: c.RawScore, RawScoreScaled: c.RawScoreScaled,
			RetrievalPath: c.RetrievalPath, Vector: c.Vector,
		}
	}
	return out
}

// batch serves the same subjects as retrieve; on the tenant's every query names its knowledge base.
func (s *Service) batch(ctx context.Context, r bus.Request) (any, error) {
	if err := single(r); err != nil {
		return nil, err
	}
	var in messages.BatchRetrieve
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if in.Queries == nil {
		return nil, messages.Invalid("queries", "is missing")
	}
	if n := len(in.Queries); n > messages.MaxBatchQueries {
		return nil, messages.Invalid("queries", fmt.Sprintf("has %d queries, at most %d are allowed", n, messages.MaxBatchQueries))
	}
	items := make([]engine.BatchItem, len(in.Queries))
	for i := range in.Queries {
		kb, err := scope(r, in.Queries[i].KnowledgeBaseName)
		if err != nil {
			return nil, engine.InBatch(i, err)
		}
		items[i] = engine.BatchItem{KB: kb, Req: &in.Queries[i]}
	}
	answers, err := s.engine.Batch(ctx, r.Tenant, items)
	if err != nil {
		return nil, err
	}
	return fitBatch(answers, s.replyBytes())
}

func (s *Service) getKB(ctx context.Context, r bus.Request) (any, error) {
	var req messages.KBRef
	kb, err := read(r, &req, &req.KnowledgeBaseName)
	if err != nil {
		return nil, err
	}
	return s.browse.GetKB(ctx, r.Tenant, kb)
}

func (s *Service) listKBs(ctx context.Context, r bus.Request) (any, error) {
	var req messages.Page
	if err := decode(r, &req); err != nil {
		return nil, err
	}
	return s.browse.ListKBs(ctx, r.Tenant, req)
}

func (s *Service) getDocument(ctx context.Context, r bus.Request) (any, error) {
	var req messages.DocumentRef
	kb, err := read(r, &req, &req.KnowledgeBaseName)
	if err != nil {
		return nil, err
	}
	return s.browse.GetDocument(ctx, r.Tenant, kb, req)
}

func (s *Service) listDocuments(ctx context.Context, r bus.Request) (any, error) {
	var req messages.ListDocuments
	kb, err := read(r, &req, &req.KnowledgeBaseName)
	if err != nil {
		return nil, err
	}
	return s.browse.ListDocuments(ctx, r.Tenant, kb, req)
}

func (s *Service) listChunks(ctx context.Context, r bus.Request) (any, error) {
	var req messages.ListChunks
	kb, err := read(r, &req, &req.KnowledgeBaseName)
	if err != nil {
		return nil, err
	}
	return s.browse.ListChunks(ctx, r.Tenant, kb, req)
}

// read decodes a body and returns the knowledge base of the request: the subject's, or on a subject
// of the tenant the one that the body names.
func read(r bus.Request, into any, named *string) (string, error) {
	if err := decode(r, into); err != nil {
		return "", err
	}
	return scope(r, *named)
}

// scope is the knowledge base of a request that may name one.
func scope(r bus.Request, named string) (string, error) {
	if r.Scope == messages.TenantScope {
		if named == "" {
			return "", messages.Invalid("knowledgeBaseName", "is missing")
		}
		return named, messages.ValidateName("knowledgeBaseName", named)
	}
	if err := messages.ValidateName("subject", r.Scope); err != nil {
		return "", err
	}
	if named != "" && named != r.Scope {
		return "", messages.Invalid("knowledgeBaseName", "differs from the subject's")
	}
	return r.Scope, nil
}

// decode reads a body strictly; an empty one is an empty object.
func decode(r bus.Request, into any) error {
	if err := messages.ValidateName("subject", r.Tenant); err != nil {
		return err
	}
	if len(r.Body) == 0 {
		return nil
	}
	return messages.DecodeStrict(r.Body, into)
}
