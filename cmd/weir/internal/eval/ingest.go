package eval

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// Operation is how operations are asked: of a knowledge base, or of messages.TenantScope.
type Operation func(ctx context.Context, scope, op string, in, out any) error

// Target is the knowledge base that a set is published to.
type Target struct {
	NC      *nats.Conn
	Tenant  string
	KB      string
	Chunked bool // by the chunker; else one chunk a document
	Ask     Operation
	// Watch is given the publisher before it starts, to show how far it is; what it returns is called at the
	// end. nil: nothing is shown.
	Watch func(p *publish.Publisher) (stop func())
	// OnNote is told what slows publishing down.
	OnNote func(string)
}

// Failure is a document of the corpus that could not be indexed.
type Failure struct {
	DocID string          `json:"docId"`
	Error *messages.Error `json:"error"`
}

// Ingested tells how the corpus came to be in the knowledge base.
type Ingested struct {
	Skipped bool // it was there and complete
	Failed  []Failure
}

// Ingest creates the knowledge base if it is missing and publishes the corpus unless it is there, whole.
// Documents that fail are named and the rest goes on.
func Ingest(ctx context.Context, s *Set, t Target) (Ingested, error) {
	info, err := t.ensure(ctx)
	if err != nil {
		return Ingested{}, err
	}
	if complete(info.Documents, s) {
		return Ingested{Skipped: true}, nil
	}
	return t.publish(ctx, s)
}

func complete(c *messages.DocumentCounts, s *Set) bool {
	return c != nil && c.Pending == 0 && c.Indexing == 0 && c.Ready == int64(s.Docs-s.Empty)
}

func (t Target) strategy() string {
	if t.Chunked {
		return messages.ChunkTokens
	}
	return messages.ChunkWhole
}

// ensure returns the knowledge base, made when it is missing.
func (t Target) ensure(ctx context.Context) (messages.KBInfo, error) {
	var info messages.KBInfo
	err := t.Ask(ctx, t.KB, messages.OpKBGet, messages.KBRef{}, &info)
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeKBNotFound {
		err = t.Ask(ctx, messages.TenantScope, messages.OpKBCreate, messages.CreateKB{
			KnowledgeBaseName: t.KB, Description: "made by weir eval", Chunking: &messages.Chunking{Strategy: t.strategy()},
		}, &info)
	}
	if err != nil {
		return info, fmt.Errorf("prepare knowledge base %s: %w", t.KB, err)
	}
	if info.Chunking.Strategy != t.strategy() {
		return info, messages.Invalid("kb", fmt.Sprintf("%s cuts documents by strategy %s, this evaluation needs %s: name another one",
			t.KB, info.Chunking.Strategy, t.strategy()))
	}
	return info, nil
}

func (t Target) publish(ctx context.Context, s *Set) (Ingested, error) {
	var out Ingested
	p, err := publish.New(t.NC, publish.Config{
		Tenant: t.Tenant, KB: t.KB, OnNote: t.OnNote,
		OnResult: func(r publish.Result) {
			if r.Failed() {
				out.Failed = append(out.Failed, Failure{r.DocID, r.Error})
			}
		},
	})
	if err != nil {
		return out, err
	}
	if t.Watch != nil {
		defer t.Watch(p)()
	}
	items := make(chan publish.Item)
	g, running := guard.WithContext(ctx)
	g.Go(func() error { return p.Run(running, items) })
	g.Go(func() error {
		defer close(items)
		return s.Corpus(func(d Doc) error { return offer(running, items, d) })
	})
	if err := g.Wait(); err != nil {
		return out, fmt.Errorf("publish the corpus of %s: %w", s.Name, err)
	}
	return out, nil
}

func offer(ctx context.Context, items chan<- publish.Item, d Doc) error {
	item := publish.Item{Name: d.ID, Submit: messages.Submit{DocID: d.ID, Title: d.Title, ContentType: "text/plain; charset=utf-8", Text: &d.Text}}
	item.Err = item.Submit.Validate()
	select {
	case items <- item:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
