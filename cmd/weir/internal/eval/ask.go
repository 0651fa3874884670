package eval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

// Retrieve asks the retriever.
type Retrieve func(ctx context.Context, in messages.RetrieveRequest) (messages.RetrieveReply, error)

// Answers are the replies to the queries of a set.
type Answers struct {
	Run Run
	// Refused are the ids of queries that the service would not take, most of them too long: they count as
	// unanswered.
	Refused []string
	// P50 and P95 are the times of one request and its reply.
	P50, P95 time.Duration
}

// busyFor is how long a query is repeated while the service is overloaded.
const busyFor = 30 * time.Second

// Ask puts every query that has judgments, concurrency of them at a time.
func Ask(ctx context.Context, s *Set, mode Mode, n, concurrency int, retrieve Retrieve) (Answers, error) {
	a := &asking{mode: mode, n: n, retrieve: retrieve, out: Answers{Run: Run{}}}
	g, ctx := guard.WithContext(ctx)
	g.SetLimit(max(concurrency, 1))
	for _, q := range s.Queries {
		if !relevant(s.Qrels[q.ID]) {
			continue
		}
		g.Go(func() error { return a.query(ctx, q) })
	}
	if err := g.Wait(); err != nil {
		return Answers{}, err
	}
	slices.Sort(a.took)
	a.out.P50, a.out.P95 = percentile(a.took, 50), percentile(a.took, 95)
	slices.Sort(a.out.Refused)
	return a.out, nil
}

type asking struct {
	mode     Mode
	n        int
	retrieve Retrieve

	mu   sync.Mutex
	out  Answers
	took []time.Duration
}

func (a *asking) query(ctx context.Context, q Query) error {
	in, err := Request(a.mode, q.Text, a.n)
	if err != nil {
		return err
	}
	reply, took, err := patiently(ctx, a.retrieve, in)
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused(err) {
		a.out.Refused = append(a.out.Refused, q.ID)
		return nil
	}
	if err != nil {
		return err
	}
	a.took = append(a.took, took)
	a.out.Run[q.ID] = Fold(reply.Results)
	return nil
}

// refused reports that the query's text itself is what the service objects to.
func refused(err error) bool {
	e, ok := messages.AsError(err)
	return ok && e.Code == messages.CodeValidation && strings.HasPrefix(e.Field, "retrievalQuery")
}

// patiently repeats a query while the service is too busy. The time is that of the last try.
func patiently(ctx context.Context, retrieve Retrieve, in messages.RetrieveRequest) (messages.RetrieveReply, time.Duration, error) {
	until := time.Now().Add(busyFor)
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		began := time.Now()
		reply, err := retrieve(ctx, in)
		took := time.Since(began)
		e, ok := messages.AsError(err)
		if !ok || e.Code != messages.CodeOverloaded || time.Now().Add(pause).After(until) {
			return reply, took, err
		}
		select {
		case <-ctx.Done():
			return reply, took, errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// percentile is the nearest rank of sorted values, 0 of none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
