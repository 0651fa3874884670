package testweir

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// ServiceNames are the services that the fake pretends to be.
var serviceNames = [...]string{"weir-ingester", "weir-embedder", "weir-indexer", "weir-retriever"}

func (f *Fake) serve(t testing.TB) {
	for _, name := range serviceNames {
		svc, err := bus.NewService(f.nc, bus.ServiceInfo{Name: name, Version: "0.0.1"}, bus.ServiceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := svc.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
		if name != "weir-retriever" {
			continue
		}
		for op, handler := range f.operations() {
			err := svc.AddEndpoint(bus.Endpoint{Name: op, Subject: messages.RPCSubject(Tenant, "*", op), Handler: handler})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

type handler = func(context.Context, bus.Request) (any, error)

func (f *Fake) operations() map[string]handler {
	return map[string]handler{
		messages.OpKBCreate: func(_ context.Context, r bus.Request) (any, error) { return on(f, r, f.createKB) },
		messages.OpKBList: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(messages.Page) (any, error) {
				var out messages.KBList
				for _, name := range slices.Sorted(maps.Keys(f.kbs)) {
					out.KnowledgeBases = append(out.KnowledgeBases, f.kbs[name].info)
				}
				return out, nil
			})
		},
		messages.OpKBGet:      inKB(f, func(k *kb, _ messages.KBRef) (any, error) { return k.described(), nil }),
		messages.OpKBUpdate:   inKB(f, f.updateKB),
		messages.OpKBDelete:   inKB(f, func(k *kb, _ messages.KBRef) (any, error) { delete(f.kbs, k.info.KnowledgeBaseName); return nil, nil }),
		messages.OpDocGet:     inKB(f, getDoc),
		messages.OpDocList:    inKB(f, listDocs),
		messages.OpDocChunks:  inKB(f, chunksOf),
		messages.OpDelete:     inKB(f, f.deleteDoc),
		messages.OpRetrieve:   inKB(f, retrieve),
		messages.OpDLQList:    func(_ context.Context, r bus.Request) (any, error) { return on(f, r, f.listDead) },
		messages.OpDLQGet:     func(_ context.Context, r bus.Request) (any, error) { return on(f, r, f.getDead) },
		messages.OpDLQReplay:  f.mark("replayed"),
		messages.OpDLQDiscard: f.mark("discarded"),
		messages.OpJobStart:   func(_ context.Context, r bus.Request) (any, error) { return on(f, r, f.startJob) },
		messages.OpJobList:    func(_ context.Context, r bus.Request) (any, error) { return on(f, r, f.listJobs) },
		messages.OpJobGet: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(in messages.JobRef) (any, error) { return f.ofJob(in.ID, "") })
		},
		messages.OpJobPause: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(in messages.JobRef) (any, error) { return f.ofJob(in.ID, messages.JobPaused) })
		},
		messages.OpJobCancel: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(in messages.JobRef) (any, error) { return f.ofJob(in.ID, messages.JobCancelled) })
		},
		messages.OpJobRollback: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(in messages.JobRef) (any, error) { return f.ofJob(in.ID, messages.JobRolledBack) })
		},
		messages.OpJobResume: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(in messages.ResumeJob) (any, error) { return f.ofJob(in.ID, messages.JobDone) })
		},
		messages.OpJobApprove: func(_ context.Context, r bus.Request) (any, error) {
			return on(f, r, func(in messages.ApproveJob) (any, error) { return f.ofJob(in.ID, messages.JobDone) })
		},
	}
}

// on decodes the body strictly and calls work under the lock.
func on[T any](f *Fake, r bus.Request, work func(T) (any, error)) (any, error) {
	var in T
	if len(r.Body) > 0 {
		if err := messages.DecodeStrict(r.Body, &in); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return work(in)
}

func inKB[T any](f *Fake, work func(*kb, T) (any, error)) handler {
	return func(_ context.Context, r bus.Request) (any, error) {
		return on(f, r, func(in T) (any, error) {
			k := f.kbs[r.Scope]
			if k == nil {
				return nil, messages.Errorf(messages.CodeKBNotFound, "there is no knowledge base %s", r.Scope)
			}
			return work(k, in)
		})
	}
}

func (f *Fake) createKB(in messages.CreateKB) (any, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	if f.kbs[in.KnowledgeBaseName] != nil {
		return nil, messages.Errorf(messages.CodeAlreadyExists, "%s exists", in.KnowledgeBaseName)
	}
	chunking := messages.Chunking{}
	if in.Chunking != nil {
		chunking = *in.Chunking
	}
	if in.IndexType == "" {
		in.IndexType = messages.IndexTypeHybrid
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := f.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: messages.UploadBucket(Tenant), Storage: jetstream.MemoryStorage}); err != nil {
		return nil, err
	}
	k := &kb{docs: map[string]*doc{}, info: messages.KBInfo{
		KnowledgeBaseName: in.KnowledgeBaseName, ID: int64(len(f.kbs) + 1), Description: in.Description, Tags: in.Tags, MandatoryFilter: in.MandatoryFilter,
		IndexType: in.IndexType, Subspace: in.Subspace, Metadata: in.Metadata, Chunking: chunking.WithDefaults(), Analyzer: "lex1",
		Retrieval:  in.Retrieval,
		Embedding:  &messages.Space{Model: "fake", Dims: 8, Metric: "cosine"},
		Generation: 1, CreatedAt: time.Unix(1700000000, 0).UTC(), UpdatedAt: time.Unix(1700000000, 0).UTC(),
	}}
	f.kbs[in.KnowledgeBaseName] = k
	return k.info, nil
}

func (f *Fake) updateKB(k *kb, in messages.UpdateKB) (any, error) {
	k.info.Metadata = append(k.info.Metadata, in.Metadata...)
	if in.Retrieval != nil {
		k.info.Retrieval = in.Retrieval
	}
	switch {
	case string(in.MandatoryFilter) == "null":
		k.info.MandatoryFilter = nil
	case in.MandatoryFilter != nil:
		k.info.MandatoryFilter = in.MandatoryFilter
	}
	if string(in.Description) == "null" {
		k.info.Description = ""
	} else if len(in.Description) > 0 {
		if err := json.Unmarshal(in.Description, &k.info.Description); err != nil {
			return nil, messages.Invalid("description", err.Error())
		}
	}
	return k.info, nil
}

func (k *kb) described() messages.KBInfo {
	info := k.info
	info.Documents = &messages.DocumentCounts{Ready: int64(len(k.docs)), Chunks: int64(len(k.docs))}
	return info
}

func getDoc(k *kb, in messages.DocumentRef) (any, error) {
	d := k.docs[in.Subspace+"/"+in.DocID]
	if d == nil {
		return nil, messages.Errorf(messages.CodeDocumentNotFound, "there is no document %s", in.DocID)
	}
	return d.info, nil
}

// listDocs pages by two, so that paging is tested.
func listDocs(k *kb, in messages.ListDocuments) (any, error) {
	const page = 2
	out := messages.DocumentList{Documents: []messages.DocumentInfo{}}
	for _, key := range slices.Sorted(maps.Keys(k.docs)) {
		d := k.docs[key].info
		if key <= in.NextToken || in.Status != "" && d.Status != in.Status {
			continue
		}
		if len(out.Documents) == page {
			last := out.Documents[page-1]
			out.NextToken = last.Subspace + "/" + last.DocID
			break
		}
		out.Documents = append(out.Documents, d)
	}
	return out, nil
}

func chunksOf(k *kb, in messages.ListChunks) (any, error) {
	d := k.docs[in.Subspace+"/"+in.DocID]
	if d == nil {
		return nil, messages.Errorf(messages.CodeDocumentNotFound, "there is no document %s", in.DocID)
	}
	return messages.ChunkList{Chunks: []messages.ChunkInfo{{Content: d.text, Tokens: len(words(d.text)), Status: "active"}}}, nil
}

func (f *Fake) deleteDoc(k *kb, in messages.Delete) (any, error) {
	key := in.Subspace + "/" + in.DocID
	d := k.docs[key]
	if d == nil {
		return nil, messages.Errorf(messages.CodeDocumentNotFound, "there is no document %s", in.DocID)
	}
	delete(k.docs, key)
	id := "delete-" + in.DocID
	e := messages.Event{Tenant: Tenant, KB: k.info.KnowledgeBaseName, DocID: in.DocID, Subspace: in.Subspace, SubmitID: id, Version: d.info.Version + 1}
	go f.tell(e, messages.StatusDeleted) // tell takes the lock
	return messages.SubmitReply{DocID: in.DocID, Subspace: in.Subspace, Version: e.Version, Status: messages.StatusDeleting, SubmitID: id}, nil
}

// retrieve ranks by the number of shared words, best first, and refuses a text of more than 4096
// characters as the service does.
func retrieve(k *kb, in messages.RetrieveRequest) (any, error) {
	if in.Query == nil || in.Query.Text == "" {
		return nil, messages.Invalid("retrievalQuery.text", "is missing")
	}
	if len([]rune(in.Query.Text)) > 4096 {
		return nil, messages.Invalid("retrievalQuery.text", "has more than 4096 characters")
	}
	var hits []messages.RetrievedChunk
	query := words(in.Query.Text)
	for _, d := range k.docs {
		score := 0
		for _, w := range words(d.info.Title + " " + d.text) {
			if slices.Contains(query, w) {
				score++
			}
		}
		if score == 0 {
			continue
		}
		hit := messages.RetrievedChunk{
			DocID: d.info.DocID, Subspace: d.info.Subspace, Title: d.info.Title, Content: d.text, Score: float64(score),
			HeadingPath: []string{"Part"}, PageFrom: 1, PageTo: 2, Metadata: json.RawMessage(`{}`),
		}
		if in.Explain {
			hit.Explain = &messages.Explain{
				Fusion:   "WEIGHT",
				Dense:    &messages.LegDetail{Rank: 1, Raw: 0.5, Scaled: 0.75, Weight: 0.7},
				FullText: &messages.LegDetail{Rank: 2, Raw: float64(score), Scaled: 0.5, Weight: 0.3},
			}
		}
		hits = append(hits, hit)
	}
	slices.SortFunc(hits, func(a, b messages.RetrievedChunk) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.DocID, b.DocID))
	})
	if c := in.Configuration; c != nil && c.Reranking != nil && c.Reranking.NumberOfResults != nil {
		hits = hits[:min(len(hits), *c.Reranking.NumberOfResults)]
	}
	return messages.RetrieveReply{Results: hits, Diagnostics: messages.Diagnostics{
		Generation: 1, Fusion: "WEIGHT", Timing: messages.Timing{TotalMillis: 1.5},
		Dense:    &messages.LegDiagnostics{Exact: true, Candidates: len(hits)},
		FullText: &messages.LegDiagnostics{Exact: true, Index: "segments", Candidates: len(hits)},
	}}, nil
}

func (f *Fake) listDead(in messages.ListDeadLetters) (any, error) {
	out := messages.DeadLetterList{DeadLetters: []messages.DeadLetter{}}
	for _, d := range slices.Backward(f.dead) {
		if d.State == cmp.Or(in.State, "open") && (in.KnowledgeBaseName == "" || in.KnowledgeBaseName == d.KB) {
			out.DeadLetters = append(out.DeadLetters, d.DeadLetter)
		}
	}
	return out, nil
}

func (f *Fake) getDead(in messages.DeadLetterRef) (any, error) {
	if in.ID < 1 || in.ID > int64(len(f.dead)) {
		return nil, messages.Errorf(messages.CodeNotFound, "there is no dead letter %d", in.ID)
	}
	return f.dead[in.ID-1], nil
}

func (f *Fake) mark(state string) handler {
	return func(_ context.Context, r bus.Request) (any, error) {
		return on(f, r, func(in messages.DeadLetterRef) (any, error) {
			if in.ID < 1 || in.ID > int64(len(f.dead)) {
				return nil, messages.Errorf(messages.CodeNotFound, "there is no dead letter %d", in.ID)
			}
			f.dead[in.ID-1].State = state
			return f.dead[in.ID-1].DeadLetter, nil
		})
	}
}
