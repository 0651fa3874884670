package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// BatchItem is one request of a batch.
type BatchItem struct {
	KB  string
	Req *messages.RetrieveRequest
}

// batchAtOnce is how many queries of one batch run at the same time: each takes a connection.
const batchAtOnce = 8

// Batch answers several requests, in their order. Query texts of one space are embedded together. The
// first that fails ends the batch: the others are cancelled, and the error's field begins with the place of
// the one that failed.
func (e *Engine) Batch(ctx context.Context, tenant string, items []BatchItem) ([]*Answer, error) {
	for i, it := range items { // what is wrong with the form costs nothing to find
		if err := CheckQuery(e.Limits, it.Req); err != nil {
			return nil, InBatch(i, err)
		}
	}
	known, stop := e.embedTogether(ctx, tenant, items)
	defer stop()
	out := make([]*Answer, len(items))
	g, ctx := guard.WithContext(ctx)
	g.SetLimit(batchAtOnce)
	for i, it := range items {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var err error
			out[i], err = e.answer(ctx, tenant, it.KB, it.Req, known)
			return InBatch(i, err)
		})
	}
	return out, g.Wait()
}

// InBatch says in an error's field which query of a batch it is of.
func InBatch(i int, err error) error {
	known, ok := messages.AsError(err)
	if !ok {
		return err
	}
	out := *known
	out.Field = fmt.Sprintf("queries[%d]", i)
	if known.Field != "" {
		out.Field += "." + known.Field
	}
	return fmt.Errorf("%w: %w", &out, err)
}

// embedTogether begins to compute the vectors of a batch as far as it goes: what it cannot, each query tries by
// itself, so that the error is the right query's. stop ends it and waits.
func (e *Engine) embedTogether(ctx context.Context, tenant string, items []BatchItem) (known vectors, stop func()) {
	var requests []*request
	partial := false
	for _, it := range items {
		if r, err := e.prepare(ctx, tenant, it.KB, it.Req); err == nil {
			requests = append(requests, r)
			partial = partial || r.AllowPartial
		}
	}
	if !partial {
		return e.embedAll(ctx, requests)
	}
	within, cancel := share(ctx)
	known, wait := e.embedAll(within, requests)
	return known, func() { cancel(); wait() }
}

// spacesAtOnce is how many embedding spaces of one request are embedded in at the same time.
const spacesAtOnce = 8

// embedAll begins to ask once for each space, whatever the number of requests. stop ends it and waits.
func (e *Engine) embedAll(ctx context.Context, requests []*request) (known vectors, stop func()) {
	known = vectors{next: e.Embedder, known: map[messages.Space]*meanings{}}
	for _, r := range requests {
		if r.meaning == "" || r.Cursor != "" {
			continue
		}
		space := *r.kb.Generation.Space
		if known.known[space] == nil {
			known.known[space] = &meanings{done: make(chan struct{})}
		}
		m := known.known[space]
		m.texts = append(m.texts, r.meaning)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	slots := make(chan struct{}, spacesAtOnce)
	for space, m := range known.known {
		running.Go(func() {
			defer close(m.done)
			slots <- struct{}{}
			defer func() { <-slots }()
			m.err = guard.Call(func() (err error) {
				m.vectors, err = e.Embedder.Embed(ctx, space, m.texts)
				return err
			})
		})
	}
	return known, func() { cancel(); running.Wait() }
}

// meanings are the texts of one space with their vectors, which are there when done is closed.
type meanings struct {
	texts   []string
	done    chan struct{}
	vectors [][]float32
	err     error
}

// vectors is an embedder that knows some vectors, or soon will.
type vectors struct {
	next  Embedder
	known map[messages.Space]*meanings
}

func (v vectors) Embed(ctx context.Context, space messages.Space, texts []string) ([][]float32, error) {
	m := v.known[space]
	if m == nil {
		return v.next.Embed(ctx, space, texts)
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return v.next.Embed(ctx, space, texts) // it knows what to call that
	}
	if m.err != nil {
		return v.next.Embed(ctx, space, texts)
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		at := slices.Index(m.texts, text)
		if at < 0 {
			return v.next.Embed(ctx, space, texts)
		}
		out[i] = m.vectors[at]
	}
	return out, nil
}
