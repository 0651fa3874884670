package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// Pools are the candidates of each query of a set: everything that either leg listed among its first N, with
// both scores. A leg's list of fewer entries is the beginning of its longer one, and the scores do not depend
// on N, so every variant up to N follows from a pool exactly as the retriever makes it.
type Pools struct {
	N       int
	Metric  fusion.Metric
	Queries map[string][]fusion.Candidate
	// Refused are the ids of queries that the service would not take.
	Refused []string
	// Approximate: a list came out of an index that may miss entries, so shorter lists may differ a little from
	// what the service would give.
	Approximate bool
}

// ErrNotHybrid is returned when a knowledge base has not both legs.
var ErrNotHybrid = errors.New("the knowledge base has not both a dense and a full-text index")

// Collect asks every judged query once, for the first n entries of both lists, concurrency at a time.
func Collect(ctx context.Context, s *Set, metric fusion.Metric, n, concurrency int, retrieve Retrieve) (Pools, error) {
	c := &collecting{retrieve: retrieve, out: Pools{N: n, Metric: metric, Queries: map[string][]fusion.Candidate{}}}
	g, ctx := guard.WithContext(ctx)
	g.SetLimit(max(concurrency, 1))
	for _, q := range s.Queries {
		if relevant(s.Qrels[q.ID]) {
			g.Go(func() error { return c.query(ctx, q) })
		}
	}
	if err := g.Wait(); err != nil {
		return Pools{}, err
	}
	slices.Sort(c.out.Refused)
	return c.out, nil
}

type collecting struct {
	retrieve Retrieve

	mu  sync.Mutex
	out Pools
}

func (c *collecting) query(ctx context.Context, q Query) error {
	in := poolRequest(q.Text, c.out.N)
	var pool []fusion.Candidate
	inexact := false
	for {
		reply, _, err := patiently(ctx, c.retrieve, in)
		if refused(err) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.out.Refused = append(c.out.Refused, q.ID)
			return nil
		}
		if err != nil {
			return fmt.Errorf("query %s: %w", q.ID, err)
		}
		for i := range reply.Results {
			cand, err := candidate(&reply.Results[i])
			if err != nil {
				return fmt.Errorf("query %s: %w", q.ID, err)
			}
			pool = append(pool, cand)
		}
		inexact = inexact || approximate(reply.Diagnostics)
		if reply.NextCursor == "" {
			c.keep(q.ID, pool, inexact)
			return nil
		}
		in.Cursor = reply.NextCursor
	}
}

func (c *collecting) keep(id string, pool []fusion.Candidate, approximate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Queries[id] = pool
	c.out.Approximate = c.out.Approximate || approximate
}

func approximate(d messages.Diagnostics) bool {
	return d.Dense != nil && !d.Dense.Exact || d.FullText != nil && !d.FullText.Exact
}

// pageSize is how many candidates are asked for at a time; the others follow by cursor.
const pageSize = 500

// poolRequest asks for all candidates, told how they came about and without their contents. How they are fused
// does not matter.
func poolRequest(text string, n int) messages.RetrieveRequest {
	v := Default()
	v.N1, v.N2 = n, n
	c, page, none := v.Configuration(), min(2*n, pageSize), false
	c.Reranking.NumberOfResults = &page
	c.Output = &messages.OutputConfig{Content: &none}
	return messages.RetrieveRequest{Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: text}, Configuration: c, Explain: true}
}

// candidate reads a result's explanation.
func candidate(r *messages.RetrievedChunk) (fusion.Candidate, error) {
	if r.Explain == nil || r.Explain.Dense == nil || r.Explain.FullText == nil {
		return fusion.Candidate{}, ErrNotHybrid
	}
	d, t := r.Explain.Dense, r.Explain.FullText
	return fusion.Candidate{
		Key: fusion.Key{Subspace: r.Subspace, DocID: r.DocID, ChunkID: r.ChunkID},
		// A similarity of nothing at all, not listed, is that of a chunk without a vector.
		Dense: fusion.Standing{Raw: d.Raw, Rank: d.Rank, Known: d.Rank > 0 || d.Raw != 0},
		Text:  fusion.Standing{Raw: t.Raw, Rank: t.Rank, Known: true},
	}, nil
}

// Rank is the ranking of a variant, of whose lists none may be longer than the pools'.
func (p Pools) Rank(v Variant) (Run, error) {
	if max(v.N1, v.N2) > p.N {
		return nil, fmt.Errorf("lists of %s entries are wanted, %d are there", v.Lists(), p.N)
	}
	config, run := v.fusion(p.Metric), make(Run, len(p.Queries))
	for id, pool := range p.Queries {
		fused, err := fusion.Fuse(config, v.cut(pool))
		if err != nil {
			return nil, fmt.Errorf("rank query %s by %s: %w", id, v.Name(), err)
		}
		run[id] = foldFused(fused)
	}
	return run, nil
}

// cut leaves the candidates that lists of the variant's lengths would hold.
func (v Variant) cut(pool []fusion.Candidate) []fusion.Candidate {
	out := make([]fusion.Candidate, 0, len(pool))
	for _, c := range pool {
		if c.Dense.Rank > v.N1 || v.Legs == Sparse {
			c.Dense.Rank = 0
		}
		if c.Text.Rank > v.N2 || v.Legs == Vector {
			c.Text.Rank = 0
		}
		if c.Dense.Rank > 0 || c.Text.Rank > 0 {
			out = append(out, c)
		}
	}
	return out
}

// foldFused keeps the best chunk of each document.
func foldFused(fused []fusion.Result) []Hit {
	seen := map[string]bool{}
	hits := []Hit{}
	for _, f := range fused {
		if !seen[f.Key.DocID] {
			seen[f.Key.DocID] = true
			hits = append(hits, Hit{Doc: f.Key.DocID, Score: f.Score})
		}
	}
	return hits
}
