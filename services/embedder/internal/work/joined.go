package work

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/batch"
	"github.com/weir-project/weir/pkg/embedding"
)

// joinedTimeout bounds a joined call, whoever waits for it; the stage's own time is a little longer.
const joinedTimeout = 4 * time.Minute

// linger is how long messages wait for others to share a request where they come densely. Next to what a model takes it
// is short, and a request of many messages costs little more than one of few.
const linger = 5 * time.Millisecond

// fullRequest is the cost of texts that fill a request.
const fullRequest = 1_000_000

// Joined is an embedder that sends the texts of several messages in one request: those that come while as many
// requests as may be are under way, or within a few milliseconds where they come densely (see batch.Config). Queries
// never wait for company, nor does a message that comes alone. Safe for concurrent use.
type Joined struct {
	within   Embedder
	parallel int
	limits   func(embedding.Space) embedding.BatchLimits

	mu     sync.Mutex
	spaces map[embedding.Space]*batch.Joiner[[]string, embedding.Result]
}

// NewJoined joins calls of an embedder as far as one request may hold their texts; at most parallel requests are under way.
func NewJoined(within Embedder, parallel int, limits func(embedding.Space) embedding.BatchLimits) *Joined {
	return &Joined{
		within: within, parallel: max(parallel, 1), limits: limits,
		spaces: map[embedding.Space]*batch.Joiner[[]string, embedding.Result]{},
	}
}

// Embed is the embedder's, joined for the batch lane.
func (j *Joined) Embed(ctx context.Context, space embedding.Space, lane embedding.Lane, texts []string) (embedding.Result, error) {
	if lane != embedding.Batch || len(texts) == 0 {
		return j.within.Embed(ctx, space, lane, texts)
	}
	return j.of(space).Do(ctx, texts)
}

// maxSpaces bounds what is remembered; past it joining begins anew.
const maxSpaces = 256

// of is the joiner of a space: texts of two are never in one request.
func (j *Joined) of(space embedding.Space) *batch.Joiner[[]string, embedding.Result] {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found, ok := j.spaces[space]; ok {
		return found
	}
	if len(j.spaces) >= maxSpaces {
		clear(j.spaces)
	}
	made := batch.New(batch.Config[[]string]{
		Parallel: j.parallel, Timeout: joinedTimeout, Linger: linger,
		MaxCost: fullRequest, Cost: func(texts []string) int64 { return int64(fullRequest * j.limits(space).Share(texts)) },
	}, func(ctx context.Context, calls [][]string) ([]batch.Result[embedding.Result], error) {
		return j.together(ctx, space, calls)
	})
	j.spaces[space] = made
	return made
}

// together embeds the texts of several calls. An error is everybody's, with the vectors that each got before it; but a bad
// answer may be of one text's making, so each call is made alone then.
func (j *Joined) together(ctx context.Context, space embedding.Space, calls [][]string) ([]batch.Result[embedding.Result], error) {
	all := slices.Concat(calls...)
	result, err := j.within.Embed(ctx, space, embedding.Batch, all)
	if len(calls) > 1 && errors.Is(err, embedding.ErrBadAnswer) {
		return nil, err
	}
	out := make([]batch.Result[embedding.Result], len(calls))
	at := 0
	for i, texts := range calls {
		out[i] = batch.Result[embedding.Result]{Out: cut(result, at, len(texts), len(all)), Err: err}
		at += len(texts)
	}
	return out, nil
}

// cut is a call's part of a result over all texts.
func cut(r embedding.Result, at, n, all int) embedding.Result {
	part := embedding.Result{Usage: embedding.Usage{Tokens: r.Usage.Tokens * n / all}} // a server counts a request, not its texts
	if len(r.Vectors) == all {
		part.Vectors = r.Vectors[at : at+n : at+n]
	}
	for i, err := range r.Rejected {
		if i >= at && i < at+n {
			if part.Rejected == nil {
				part.Rejected = map[int]error{}
			}
			part.Rejected[i-at] = err
		}
	}
	return part
}
