package engine

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

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
	known := e.embedTogether(ctx, tenant, items)
	out := make([]*Answer, len(items))
	g, ctx := errgroup.WithContext(ctx)
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

// embedTogether computes the vectors of a batch as far as it goes: what it cannot, each query tries by itself,
// so that the error is the right query's.
func (e *Engine) embedTogether(ctx context.Context, tenant string, items []BatchItem) vectors {
	var requests []*request
	partial := false
	for _, it := range items {
		if r, err := e.prepare(ctx, tenant, it.KB, it.Req); err == nil {
			requests = append(requests, r)
			partial = partial || r.AllowPartial
		}
	}
	if partial {
		var cancel context.CancelFunc
		ctx, cancel = share(ctx)
		defer cancel()
	}
	return e.embedAll(ctx, requests)
}

// embedAll asks once for each space, whatever the number of requests.
func (e *Engine) embedAll(ctx context.Context, requests []*request) vectors {
	out := vectors{next: e.Embedder, known: map[meant][]float32{}}
	texts := map[messages.Space][]string{}
	var spaces []messages.Space
	for _, r := range requests {
		if r.meaning == "" || r.Cursor != "" {
			continue
		}
		space := *r.kb.Generation.Space
		if texts[space] == nil {
			spaces = append(spaces, space)
		}
		texts[space] = append(texts[space], r.meaning)
	}
	for _, space := range spaces {
		found, err := e.Embedder.Embed(ctx, space, texts[space])
		if err != nil {
			continue
		}
		for i, text := range texts[space] {
			out.known[meant{space, text}] = found[i]
		}
	}
	return out
}

type meant struct {
	space messages.Space
	text  string
}

// vectors is an embedder that knows some vectors already.
type vectors struct {
	next  Embedder
	known map[meant][]float32
}

func (v vectors) Embed(ctx context.Context, space messages.Space, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		vector, ok := v.known[meant{space, text}]
		if !ok {
			return v.next.Embed(ctx, space, texts)
		}
		out[i] = vector
	}
	return out, nil
}
