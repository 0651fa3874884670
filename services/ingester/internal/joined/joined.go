// Package joined is the store of a busy ingester: what several documents ask of the database at the same time
// goes there in one transaction. A document that comes alone waits for nobody.
package joined

import (
	"context"
	"time"

	"github.com/weir-project/weir/pkg/batch"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Bounds of a transaction.
const (
	maxDocs    = 64
	maxContent = 4 << 20 // bytes
	maxChunks  = 2000
	linger     = 4 * time.Millisecond // what a transaction of one costs, about
)

// Store joins calls of the methods it has; the others are those of the store within. Safe for concurrent use.
type Store struct {
	*pgstore.Store
	accept *batch.Joiner[pgstore.Submission, pgstore.Acceptance]
	begin  *batch.Joiner[messages.Ref, *pgstore.Version]
	stage  *batch.Joiner[pgstore.Staging, pgstore.Staged]
}

// New returns a store over s.
func New(s *pgstore.Store) *Store {
	return &Store{
		Store: s,
		accept: batch.New(batch.Config[pgstore.Submission]{
			Max: maxDocs, MaxCost: maxContent, Cost: func(sub pgstore.Submission) int64 { return int64(len(sub.Content)) }, Linger: linger, Split: splits,
		}, each(s.AcceptSubmits)),
		begin: batch.New(batch.Config[messages.Ref]{Max: maxDocs, Linger: linger, Split: splits}, each(s.BeginParses)),
		stage: batch.New(batch.Config[pgstore.Staging]{
			Max: maxDocs, MaxCost: maxChunks, Cost: func(st pgstore.Staging) int64 { return int64(len(st.Chunks)) }, Linger: linger, Split: splits,
		}, each(s.StageAll)),
	}
}

// splits reports errors that may be those of one of several. An outage is everybody's.
func splits(err error) bool { return !pgstore.Retryable(err) }

// each makes a batch of a method over many.
func each[In, Out any](run func(context.Context, []In) ([]Out, error)) batch.Func[In, Out] {
	return func(ctx context.Context, calls []In) ([]batch.Result[Out], error) {
		outs, err := run(ctx, calls)
		if err != nil {
			return nil, err
		}
		results := make([]batch.Result[Out], len(outs))
		for i, out := range outs {
			results[i].Out = out
		}
		return results, nil
	}
}

// AcceptSubmit is the store's, joined.
func (s *Store) AcceptSubmit(ctx context.Context, sub pgstore.Submission) (pgstore.Acceptance, error) {
	return s.accept.Do(ctx, sub)
}

// BeginParse is the store's, joined.
func (s *Store) BeginParse(ctx context.Context, ref messages.Ref) (pgstore.Version, error) {
	v, err := s.begin.Do(ctx, ref)
	if err != nil {
		return pgstore.Version{}, err
	}
	if v == nil {
		return pgstore.Version{}, pgstore.ErrStale
	}
	return *v, nil
}

// Stage is the store's, joined.
func (s *Store) Stage(ctx context.Context, st pgstore.Staging) (reused int, err error) {
	staged, err := s.stage.Do(ctx, st)
	if err == nil && staged.Stale {
		err = pgstore.ErrStale
	}
	return staged.Reused, err
}
