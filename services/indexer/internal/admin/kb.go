// Package admin answers the requests that change knowledge bases and dead letters.
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// ParserVersion names the parse layer of new generations.
const ParserVersion = "p1"

// Store is what the requests need of the database.
type Store interface {
	CreateKB(ctx context.Context, n pgstore.NewKB) (pgstore.KB, error)
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
	UpdateKB(ctx context.Context, tenant, name string, u pgstore.KBUpdate) (pgstore.KB, error)
	DeleteKB(ctx context.Context, tenant, name string) error
	SetChunkStatus(
		ctx context.Context, kbID int64, subspace, docID string, ordinal int, status messages.ChunkStatus, shown pgstore.MetadataCondition,
	) error
	ListDeadLetters(ctx context.Context, tenant, kb, stage, state string, before int64, limit int) ([]messages.DeadLetter, error)
	GetDeadLetter(ctx context.Context, tenant string, id int64) (messages.DeadLetterDetail, error)
	MarkDeadLetter(ctx context.Context, tenant string, id int64, state string) error
	ReopenVersion(ctx context.Context, tenant, kb, subspace, docID string, version int64) (messages.Ref, bool, error)
	JobStore
}

// Prober embeds one text to learn whether a space is served as declared. Its errors are for the caller.
type Prober func(ctx context.Context, space messages.Space) error

// Publisher stores messages.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Admin answers the requests. Safe for concurrent use.
type Admin struct {
	store   Store
	js      jetstream.JetStream
	publish Publisher
	probe   Prober
	space   messages.Space // of knowledge bases that name no model
	rerank  messages.RerankProviders
	wake    func() // of what runs jobs
}

// New returns an Admin. space is that of knowledge bases that name no model, rerank what their defaults may name;
// wake is called when there may be something to do for a job.
func New(
	store Store, js jetstream.JetStream, publish Publisher, probe Prober, space messages.Space, rerank messages.RerankProviders, wake func(),
) *Admin {
	return &Admin{store: store, js: js, publish: publish, probe: probe, space: space, rerank: rerank, wake: wake}
}

// uploadBucketBytes bounds what a tenant may have waiting in its upload bucket.
const uploadBucketBytes = 4 << 30

// CreateKB creates a knowledge base with everything resolved, after the embedding server has shown that
// it serves the space.
func (a *Admin) CreateKB(ctx context.Context, r bus.Request) (any, error) {
	var in messages.CreateKB
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	n, err := a.resolve(r.Tenant, in)
	if err != nil {
		return nil, err
	}
	if n.Generation.Space != nil {
		if err := a.probe(ctx, *n.Generation.Space); err != nil {
			return nil, err
		}
	}
	if err := a.openUploads(ctx, r.Tenant); err != nil {
		return nil, err
	}
	kb, err := a.store.CreateKB(ctx, n)
	if err != nil {
		return nil, err
	}
	return kb.Info(), nil
}

// openUploads makes sure the tenant has a bucket for contents over the maximum payload.
func (a *Admin) openUploads(ctx context.Context, tenant string) error {
	_, err := a.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: messages.UploadBucket(tenant), Description: "contents on their way to Weir", TTL: messages.UploadTTL, MaxBytes: uploadBucketBytes,
	})
	if err != nil {
		return fmt.Errorf("open upload bucket of %s: %w", tenant, err)
	}
	return nil
}

func (a *Admin) resolve(tenant string, in messages.CreateKB) (pgstore.NewKB, error) {
	n := pgstore.NewKB{
		Tenant: tenant, Name: in.KnowledgeBaseName, IndexType: in.IndexType, Subspaces: in.Subspace, Schema: in.Metadata,
		Description: in.Description, Tags: in.Tags, Retrieval: orNone(in.Retrieval),
		Generation: pgstore.Generation{Parser: ParserVersion, Analyzer: in.Analyzer},
	}
	if n.IndexType == "" {
		n.IndexType = messages.IndexTypeHybrid
	}
	if err := a.checkRetrieval(in.Retrieval, n.IndexType, in.Metadata); err != nil {
		return n, err
	}
	if err := filter.CheckMandatory(in.MandatoryFilter, in.Metadata); err != nil {
		return n, err
	}
	n.Mandatory = orNone(in.MandatoryFilter)
	if n.Generation.Analyzer == "" {
		n.Generation.Analyzer = lexical.Default
	}
	if _, err := lexical.Lookup(n.Generation.Analyzer); err != nil {
		return n, messages.Invalid("analyzer", err.Error())
	}
	if in.Chunking != nil {
		n.Generation.Chunking = *in.Chunking
	}
	n.Generation.Chunking = n.Generation.Chunking.WithDefaults()
	if err := n.Generation.Chunking.Validate("chunkingConfiguration"); err != nil {
		return n, err
	}
	if n.IndexType == messages.IndexTypeBM25 {
		return n, nil
	}
	space, err := a.resolveSpace(in.Embedding)
	n.Generation.Space = &space
	return n, err
}

// resolveSpace fills what the request leaves open: from the server's default, or from what is known of
// the model it names.
func (a *Admin) resolveSpace(e *messages.Embedding) (messages.Space, error) {
	if e == nil {
		return a.space, nil
	}
	return a.spaceFrom(a.space, e)
}

// spaceFrom fills what is left open from a space, when the model is the same.
func (a *Admin) spaceFrom(space messages.Space, e *messages.Embedding) (messages.Space, error) {
	switch {
	case e.Model == "" || e.Model == space.Model:
	case e.Model == a.space.Model && (e.Dims == 0 || e.Dims == a.space.Dims):
		space = a.space
	case e.Dims == 0:
		return space, messages.Invalid("embeddingConfiguration.dims", "must be given with a model")
	default:
		space = messages.Space(embedding.SpaceOf(e.Model, e.Dims))
	}
	if e.Dims != 0 {
		space.Dims = e.Dims
	}
	if e.Metric != "" {
		space.Metric = e.Metric
	}
	if e.Normalized != nil {
		space.Normalized = *e.Normalized
	}
	if e.QueryPrefix != nil {
		space.QueryPrefix = *e.QueryPrefix
	}
	if e.PassagePrefix != nil {
		space.PassagePrefix = *e.PassagePrefix
	}
	for _, f := range []struct{ name, value string }{
		{"model", space.Model}, {"queryPrefix", space.QueryPrefix}, {"passagePrefix", space.PassagePrefix},
	} {
		if err := messages.ValidText("embeddingConfiguration."+f.name, f.value); err != nil {
			return space, err
		}
	}
	if err := embedding.Space(space).Validate(); err != nil {
		return space, messages.Invalid("embeddingConfiguration", err.Error())
	}
	return space, nil
}

// UpdateKB changes description, tags, default retrieval configuration and mandatory filter, and adds metadata
// fields.
func (a *Admin) UpdateKB(ctx context.Context, r bus.Request) (any, error) {
	var in messages.UpdateKB
	if err := decodeScoped(r, &in, &in.KnowledgeBaseName); err != nil {
		return nil, err
	}
	u, err := update(in)
	if err != nil {
		return nil, err
	}
	if u.Retrieval != nil || u.Mandatory != nil {
		now, err := a.store.LoadKB(ctx, r.Tenant, r.Scope)
		if err != nil {
			return nil, err
		}
		schema := slices.Concat(now.Schema, in.Metadata) // fields are only ever added, so what fits now will fit
		if err := a.checkRetrieval(u.Retrieval, now.IndexType, schema); err != nil {
			return nil, err
		}
		if err := filter.CheckMandatory(u.Mandatory, schema); err != nil {
			return nil, err
		}
	}
	return a.updateAndReindex(ctx, r, in, u)
}

// updateAndReindex starts a job where the request asks for another configuration of the index, and changes the
// rest at once. Nothing of it happens when the job cannot begin.
func (a *Admin) updateAndReindex(ctx context.Context, r bus.Request, in messages.UpdateKB, u pgstore.KBUpdate) (any, error) {
	var job messages.JobInfo
	if in.Reindexes() {
		now, err := a.store.LoadKB(ctx, r.Tenant, r.Scope)
		if err != nil {
			return nil, err
		}
		n, err := a.newJob(now, messages.StartJob{Embedding: in.Embedding, Chunking: in.Chunking, Analyzer: in.Analyzer})
		if err != nil {
			return nil, err
		}
		n.Target.Parser = now.Generation.Parser
		if !reflect.DeepEqual(n.Target.Config(), now.Generation.Config()) {
			n.Target.Parser = ParserVersion
			if job, err = a.start(ctx, n, false); err != nil {
				return nil, err
			}
		}
	}
	kb, err := a.store.UpdateKB(ctx, r.Tenant, r.Scope, u)
	if err != nil {
		return nil, err
	}
	info := kb.Info()
	info.JobID = job.ID
	return info, nil
}

// checkRetrieval checks a default retrieval configuration whole, its filters and its rerank model as well.
func (a *Admin) checkRetrieval(raw json.RawMessage, index messages.IndexType, schema messages.MetadataSchema) error {
	if err := messages.CheckStoredRetrieval(raw, index, schema); err != nil || raw == nil {
		return err
	}
	var c messages.RetrievalConfiguration
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("read a retrieval configuration that passed its check: %w", err)
	}
	if err := c.CheckModel(a.rerank); err != nil {
		return err
	}
	limits := c.Tightened(messages.DefaultRetrieveLimits()).Filter
	_, _, err := filter.OfRetrieval(&c, filter.LimitsOf(limits), schema)
	return err
}

var null = []byte("null")

// orNone is nil for null.
func orNone(raw json.RawMessage) json.RawMessage {
	if bytes.Equal(raw, null) {
		return nil
	}
	return raw
}

func update(in messages.UpdateKB) (pgstore.KBUpdate, error) {
	u := pgstore.KBUpdate{AddFields: in.Metadata}
	if in.Description == nil && in.Tags == nil && in.Metadata == nil && in.Retrieval == nil && in.MandatoryFilter == nil && !in.Reindexes() {
		return u, messages.Invalid("body", "must give description, tags, metadata, retrievalConfiguration, mandatoryFilter, embeddingConfiguration, chunkingConfiguration or analyzer")
	}
	if in.Description != nil {
		u.Description = new(string)
		if !bytes.Equal(in.Description, null) && json.Unmarshal(in.Description, u.Description) != nil {
			return u, messages.Invalid("description", "must be a string or null")
		}
	}
	if in.Tags != nil {
		u.Tags = map[string]string{}
		if !bytes.Equal(in.Tags, null) && json.Unmarshal(in.Tags, &u.Tags) != nil {
			return u, messages.Invalid("tags", "must be an object of strings or null")
		}
	}
	u.SetRetrieval, u.Retrieval = in.Retrieval != nil, orNone(in.Retrieval)
	u.SetMandatory, u.Mandatory = in.MandatoryFilter != nil, orNone(in.MandatoryFilter)
	description := ""
	if u.Description != nil {
		description = *u.Description
	}
	return u, messages.ValidateDescription(description, u.Tags)
}

// DeleteKB hides a knowledge base at once; its data is removed in the background.
func (a *Admin) DeleteKB(ctx context.Context, r bus.Request) (any, error) {
	var in messages.KBRef
	if err := decodeScoped(r, &in, &in.KnowledgeBaseName); err != nil {
		return nil, err
	}
	if err := a.store.DeleteKB(ctx, r.Tenant, r.Scope); err != nil {
		return nil, err
	}
	return messages.KBRef{KnowledgeBaseName: r.Scope}, nil
}

// decode reads a request's body strictly; an empty one is the empty object. The names in the subject may be
// any bytes.
func decode(r bus.Request, in any) error {
	if err := messages.ValidateName("tenant", r.Tenant); err != nil {
		return err
	}
	if len(r.Body) == 0 {
		return nil
	}
	return messages.DecodeStrict(r.Body, in)
}

// decodeScoped is decode for requests of a knowledge base, whose subject is authoritative.
func decodeScoped(r bus.Request, in any, name *string) error {
	if err := decode(r, in); err != nil {
		return err
	}
	if err := messages.ValidateName("knowledgeBaseName", r.Scope); err != nil {
		return err
	}
	if *name != "" && *name != r.Scope {
		return messages.Invalid("knowledgeBaseName", fmt.Sprintf("is %q, but the subject says %q", *name, r.Scope))
	}
	return nil
}
